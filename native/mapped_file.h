// The system calls for shared files that Node.js does not offer: allocation, locks and mappings.
// src/shared-file/ opens and checks the files. This header uses no Node-API and keeps nothing between calls.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(_WIN32)
#define MILLRACE_MAPS_FILES 0
#else
#define MILLRACE_MAPS_FILES 1
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/timex.h>
#endif
#endif

namespace millrace {

/** The lock that a call got. FAILED: the reason is in `errno`. */
enum class Lock { ALONE, SHARED, BUSY, FAILED };

#if MILLRACE_MAPS_FILES

/**
 * Reserves disk space for the whole file, so that no write to the mapping finds the disk full. Returns 0 or
 * an errno.
 */
inline int allocate(int fd, int64_t bytes) {
#if defined(__APPLE__)
  fstore_t wanted = {F_ALLOCATECONTIG | F_ALLOCATEALL, F_PEOFPOSMODE, 0, bytes, 0};
  if (fcntl(fd, F_PREALLOCATE, &wanted) == -1) {
    wanted.fst_flags = F_ALLOCATEALL;
    if (fcntl(fd, F_PREALLOCATE, &wanted) == -1) return errno;
  }
  return ftruncate(fd, bytes) == 0 ? 0 : errno;
#else
  int error;
  do error = posix_fallocate(fd, 0, bytes);
  while (error == EINTR);
  return error;
#endif
}

/**
 * Locks the open file: exclusively if no other descriptor has a lock. Otherwise shared, unless `onlyAlone` is
 * set. Never waits. The system releases the lock when its process dies.
 *
 * It uses flock, because fcntl's record locks belong to the process. Two threads of one process would not
 * exclude each other, and closing any descriptor of the file would release the lock.
 */
inline Lock tryLock(int fd, bool onlyAlone) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return Lock::ALONE;
  if (errno == EINTR) return Lock::BUSY;
  if (errno != EWOULDBLOCK) return Lock::FAILED;
  if (onlyAlone) return Lock::BUSY;
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return Lock::SHARED;
  return errno == EWOULDBLOCK || errno == EINTR ? Lock::BUSY : Lock::FAILED;
}

/**
 * Turns an exclusive lock into a shared one. Another process may have the lock for a moment in between, so
 * the caller must not have made a decision yet.
 */
inline Lock tryShareLock(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return Lock::SHARED;
  return errno == EWOULDBLOCK || errno == EINTR ? Lock::BUSY : Lock::FAILED;
}

/** A mapping, and its own descriptor, which holds the lock. */
struct Mapping {
  void* data;
  size_t bytes;
  int fd;
};

/**
 * Maps the first `bytes` of the file. Returns 0 or an errno. It refuses more bytes than the file has, because
 * an access after a file's end kills the process.
 */
inline int map(int fd, size_t bytes, Mapping* mapping) {
  struct stat file;
  if (fstat(fd, &file) != 0) return errno;
  if (!S_ISREG(file.st_mode) || bytes == 0 || static_cast<uint64_t>(file.st_size) < bytes) return EINVAL;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own == -1) return errno;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    close(own);
    return error;
  }
  *mapping = {data, bytes, own};
  return 0;
}

inline void unmap(const Mapping& mapping) {
  munmap(mapping.data, mapping.bytes);
  close(mapping.fd);  // releases the lock
}

/**
 * The bound on the error of the wall clock, in milliseconds. Linux has one while a daemon (NTP, PTP) steers
 * the clock, and drops it when the clock is set by hand. Infinity if there is none, and on every other
 * system.
 */
inline double wallErrorMs() {
#if defined(__linux__)
  timex state = {};  // no modes: adjtimex only reads
  const int found = adjtimex(&state);
  const bool isSynchronised = found != -1 && found != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  if (isSynchronised) return static_cast<double>(state.maxerror) / 1e3;
#endif
  return std::numeric_limits<double>::infinity();
}

#endif

}  // namespace millrace
