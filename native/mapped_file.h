// Files that processes map together: their space, their lock, their mapping. What the file system can do by itself, opening
// and checking, is in src/shared-file/; here is what Node.js has no call for. No Node-API, and nothing kept past a call.
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

enum class Lock { kAlone, kShared, kBusy, kFailed };

#if MILLRACE_MAPS_FILES

// Takes the space of the whole file, so that no write into the mapping finds the disk full. 0, or an errno.
inline int Allocate(int fd, int64_t bytes) {
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

// Locks the open file: exclusively where nobody else has it open, or else, if `only_alone` is false, shared where others have it
// shared. It waits for nothing: the caller tries again. The system lets go of a lock when its holder dies.
//
// flock, not fcntl's record locks: those belong to the process, so two threads of one process would not see each other, and
// closing any descriptor of the file would let go of them.
inline Lock TryLock(int fd, bool only_alone) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return Lock::kAlone;
  if (errno == EINTR) return Lock::kBusy;
  if (errno != EWOULDBLOCK) return Lock::kFailed;
  if (only_alone) return Lock::kBusy;
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return Lock::kShared;
  return errno == EWOULDBLOCK || errno == EINTR ? Lock::kBusy : Lock::kFailed;
}

// From alone to shared. The lock may be another's for a moment in between; whoever calls this has not begun to decide.
inline Lock TryShareLock(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return Lock::kShared;
  return errno == EWOULDBLOCK || errno == EINTR ? Lock::kBusy : Lock::kFailed;
}

// A mapping and a descriptor of its own, which has the lock for as long.
struct Mapping {
  void* data;
  size_t bytes;
  int fd;
};

// Maps the whole file. 0, or an errno. Longer than the file it is refused: what lies behind a file's end ends the process.
inline int Map(int fd, size_t bytes, Mapping* mapping) {
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

inline void Unmap(const Mapping& mapping) {
  munmap(mapping.data, mapping.bytes);
  close(mapping.fd);  // and with it goes the lock
}

// By how many milliseconds the wall clock may be wrong. Linux keeps a bound on it for as long as a daemon (NTP, PTP) steers the
// clock, and drops it when somebody sets the clock by hand. Infinity where there is none; always so on other systems.
inline double WallErrorMs() {
#if defined(__linux__)
  timex state = {};  // no modes: it is only read
  const int found = adjtimex(&state);
  if (found != -1 && found != TIME_ERROR && (state.status & STA_UNSYNC) == 0) return static_cast<double>(state.maxerror) / 1e3;
#endif
  return std::numeric_limits<double>::infinity();
}

#endif

}  // namespace millrace
