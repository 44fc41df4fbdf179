// Makes the disk of one process slow, and only that: LD_PRELOAD it. Each fsync and fdatasync takes so
// many microseconds longer as the file says that HOLDFAST_DISK_DELAY names: a little-endian 64-bit
// number. The number after it counts the syncs that took longer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The delay, and the count. */
static volatile int64_t *shared;

__attribute__((constructor)) static void open_delay(void) {
  const char *path = getenv("HOLDFAST_DISK_DELAY");
  int file = path ? open(path, O_RDWR) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, 2 * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) shared = memory;
  close(file);
}

static void be_slow(void) {
  if (!shared || shared[0] <= 0) return;
  usleep((useconds_t)shared[0]);
  __sync_fetch_and_add(&shared[1], 1);
}

int fsync(int file) {
  be_slow();
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  be_slow();
  return (int)syscall(SYS_fdatasync, file);
}
