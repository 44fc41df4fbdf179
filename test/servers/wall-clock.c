// Moves the clocks of one process, and only that: LD_PRELOAD it. A jump moves the wall clock alone,
// as a real step of the clock would. A drift makes the monotonic clock and the wall clock run faster
// or slower. HOLDFAST_WALL_OFFSET names a file with little-endian 64-bit numbers, see wall-clock.ts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
#define FIRST_WALL_S 1000000000LL
#ifdef __x86_64__
#define CONDITION_VERSION "GLIBC_2.3.2"
#else
#define CONDITION_VERSION "GLIBC_2.17"
#endif

struct drift {
  int64_t gained_ns, since_ns, ppm;
};

// `present` names the newest one. Until it begins, the other one counts, so the clock never jumps.
struct clocks {
  int64_t wall_offset_ns, present;
  struct drift drifts[2];
};

static volatile struct clocks *clocks;

__attribute__((constructor)) static void open_clocks(void) {
  const char *path = getenv("HOLDFAST_WALL_OFFSET");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, sizeof(struct clocks), PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) clocks = memory;
  close(file);
}

static int64_t to_ns(const struct timespec *time) { return time->tv_sec * SECOND_NS + time->tv_nsec; }

// How far the clocks of this process are ahead of the machine's at that time of the monotonic clock.
static int64_t gained_at(int64_t now_ns) {
  int64_t present = clocks->present & 1;
  volatile struct drift *drift = &clocks->drifts[present];
  if (now_ns < drift->since_ns) drift = &clocks->drifts[1 - present];
  return drift->gained_ns + (now_ns - drift->since_ns) / 1000 * drift->ppm / 1000;
}

static void add(struct timespec *time, int64_t ns) {
  int64_t sum = to_ns(time) + ns;
  time->tv_sec = sum / SECOND_NS;
  time->tv_nsec = sum % SECOND_NS;
}

int clock_gettime(clockid_t clock, struct timespec *result) {
  int failed = (int)syscall(SYS_clock_gettime, clock, result);
  int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  int is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
  if (failed || !clocks) return failed;
  // From one reading: a pause between two of them would make the clock go back.
  if (is_monotonic) add(result, gained_at(to_ns(result)));
  if (is_wall) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    add(result, gained_at(to_ns(&now)));
    add(result, clocks->wall_offset_ns);
  }
  return failed;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  result->tv_sec = now.tv_sec;
  result->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

// The kernel knows nothing of a moved wall clock. Without this, a server whose clock was set back
// would wait for moments that have passed, again and again, with all the time of a processor.
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", CONDITION_VERSION);
  struct timespec moved = *until;
  // A monotonic clock counts from the start of the machine.
  if (clocks && until->tv_sec > FIRST_WALL_S) add(&moved, -clocks->wall_offset_ns);
  return real(cond, mutex, &moved);
}
