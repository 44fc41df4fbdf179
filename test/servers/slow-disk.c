// Makes the disk of one process slow, and only that: LD_PRELOAD it. Each fsync and fdatasync takes so
// many microseconds longer as the file says that HOLDFAST_DISK_DELAY names: one little-endian 64-bit
// number.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int64_t *delay_us;

__attribute__((constructor)) static void open_delay(void) {
  const char *path = getenv("HOLDFAST_DISK_DELAY");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) delay_us = memory;
  close(file);
}

static void be_slow(void) {
  if (delay_us && *delay_us > 0) usleep((useconds_t)*delay_us);
}

int fsync(int file) {
  be_slow();
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  be_slow();
  return (int)syscall(SYS_fdatasync, file);
}
