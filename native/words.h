// Every operation on shared memory, each on one 32-bit word: the counterpart of src/memory/words.ts.
// JavaScript accesses the same words at the same time through Atomics, so each operation here has the
// strength of its twin there:
//
//   load, compareExchange, add, store
//                   Sequentially consistent, as Atomics are. C++ compilers and JavaScript engines emit the
//                   same instructions for them (x64: a plain load, lock cmpxchg; arm64: ldar, casal). So one
//                   total order covers the operations of both sides. A load also acquires: accesses after it
//                   in the program stay after it, relaxed reads too.
//   read, write     JavaScript's plain accesses to one word: never torn and in no order, which is `relaxed`.
//   readInOrder     A read that no later access overtakes. Here it is a sequentially consistent load, which
//                   on x64 is the plain load that TypeScript uses.
//   isStill         A comparison that no earlier read passes.
#pragma once

#include <atomic>
#include <cstddef>

#include "constants.h"

namespace millrace {

static_assert(std::atomic_ref<Word>::is_always_lock_free);
static_assert(std::atomic_ref<Word>::required_alignment == sizeof(Word));

inline Word load(Word* words, size_t index) { return std::atomic_ref(words[index]).load(); }

/**
 * Replaces `expected` by `next`. Returns the previous value, which is `expected` if and only if it was
 * replaced.
 */
inline Word compareExchange(Word* words, size_t index, Word expected, Word next) {
  std::atomic_ref(words[index]).compare_exchange_strong(expected, next);
  return expected;
}

/** Adds with wrap-around. Returns the previous value. */
inline Word add(Word* words, size_t index, Word value) {
  return std::atomic_ref(words[index]).fetch_add(value);
}

inline void store(Word* words, size_t index, Word value) { std::atomic_ref(words[index]).store(value); }

inline Word read(Word* words, size_t index) {
  return std::atomic_ref(words[index]).load(std::memory_order_relaxed);
}

inline Word readInOrder(Word* words, size_t index) { return load(words, index); }

/**
 * Whether the word still holds `value`, after all earlier reads. On machines that reorder reads, an earlier
 * relaxed read may pass a load. There it takes a compare-exchange, which changes nothing.
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
