// Every operation on shared memory, one 32-bit word each; the counterpart of src/memory/words.ts. JavaScript works on
// the same words at the same time by Atomics, so these must be of the same strength:
//
//   load, compareExchange, add    sequentially consistent, as Atomics are. C++ and JavaScript engines compile that to
//                                 the same instructions (x64: a plain load, lock cmpxchg; arm64: ldar, casal), so the
//                                 one total order is of both sides' operations.
//   read, write                   JavaScript's plain accesses to a word: whole, but in no order, which is `relaxed`.
//                                 What stands behind a load in the program stays behind it: a load acquires.
//   readInOrder                   nothing behind it overtakes it. A sequentially consistent load, which on x64 is
//                                 the plain one that TypeScript uses there.
//   isStill                       nothing before it is later than it.
#pragma once

#include <atomic>
#include <cstddef>

#include "constants.h"

namespace millrace {

static_assert(std::atomic_ref<Word>::is_always_lock_free);
static_assert(std::atomic_ref<Word>::required_alignment == sizeof(Word));

inline Word load(Word* words, size_t index) { return std::atomic_ref(words[index]).load(); }

/** Puts `next` where `expected` stands. Returns what stood there: `expected` if and only if it was replaced. */
inline Word compareExchange(Word* words, size_t index, Word expected, Word next) {
  std::atomic_ref(words[index]).compare_exchange_strong(expected, next);
  return expected;
}

/** Adds with wrap-around. Returns what stood there before. */
inline Word add(Word* words, size_t index, Word value) { return std::atomic_ref(words[index]).fetch_add(value); }

inline void store(Word* words, size_t index, Word value) { std::atomic_ref(words[index]).store(value); }

inline Word read(Word* words, size_t index) {
  return std::atomic_ref(words[index]).load(std::memory_order_relaxed);
}

inline Word readInOrder(Word* words, size_t index) { return load(words, index); }

/**
 * Whether `value` still stands there, after all reads before this. A load lets relaxed reads before it be late on machines that
 * reorder reads: there it takes a compare-exchange, which changes nothing.
 */
inline bool isStill(Word* words, size_t index, Word value) {
#if defined(__x86_64__)
  return load(words, index) == value;
#else
  return compareExchange(words, index, value, value) == value;
#endif
}

inline void write(Word* words, size_t index, Word value) {
  std::atomic_ref(words[index]).store(value, std::memory_order_relaxed);
}

}  // namespace millrace
