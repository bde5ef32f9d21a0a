// Asks Linux to back memory by pages of 2 MiB, so that the processor finds the cells of many keys by few of its
// entries for pages.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>

#include <cerrno>
#endif

namespace millrace {

constexpr uintptr_t HUGE_PAGE_BYTES = 2 << 20;

#if defined(__linux__)
constexpr bool HAS_HUGE_PAGES = true;

/** Returns 0, or the number of the error. Only whole huge pages inside the memory are asked for. */
inline int useHugePages(void* data, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t from = (start + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
  const uintptr_t to = (start + bytes) & ~(HUGE_PAGE_BYTES - 1);
  if (from >= to) return 0;
  return madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE) == 0 ? 0 : errno;
}
#else
constexpr bool HAS_HUGE_PAGES = false;

inline int useHugePages(void*, size_t) { return 0; }
#endif

}  // namespace millrace
