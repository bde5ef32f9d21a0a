// Hints to the processor to bring a cache line closer. They change no value.
#pragma once

#include "words.h"

namespace millrace {

/** Words in a cache line of 64 bytes. */
inline constexpr size_t LINE_WORDS = 64 / sizeof(Word);

#if defined(__GNUC__)

inline void prefetch(const Word* at) { __builtin_prefetch(at, 1); }

#if defined(__x86_64__)
/**
 * Also takes the line away from another processor's cache. Without a target flag the compiler emits a read
 * hint for the builtin, so the instruction is written out. Processors without it treat it as a no-op.
 */
inline void prefetchToWrite(const Word* at) { asm volatile("prefetchw %0" : : "m"(*at)); }
#else
inline void prefetchToWrite(const Word* at) { __builtin_prefetch(at, 1); }
#endif

#else

inline void prefetch(const Word*) {}
inline void prefetchToWrite(const Word*) {}

#endif

}  // namespace millrace
