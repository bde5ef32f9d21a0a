// Faults that the sanitizers have to report. `npm run dev -- test:sanitize` enables one at a time by -D; without -D
// there is none. Included before the headers that the faults change.
#pragma once

#include "../shape.h"

/**
 * SEED_SHORT_ARENA: the arena ends one word before its last bucket ends, so a read of that is out of bounds.
 */
inline size_t seededLength(const millrace::Shape& shape) {
#if defined(SEED_SHORT_ARENA)
  return shape.extraAt - 1;
#else
  return shape.words;
#endif
}

/** SEED_MISALIGNED: the arena does not begin at a multiple of a word. */
inline millrace::Word* seededShift(millrace::Word* words) {
#if defined(SEED_MISALIGNED)
  return reinterpret_cast<millrace::Word*>(reinterpret_cast<char*>(words) + 2);
#else
  return words;
#endif
}

/** SEED_PLAIN_INCREMENT: an increment by one is a load and a plain store. */
#if defined(SEED_PLAIN_INCREMENT)
namespace millrace {
inline Word seededCompareExchange(Word* words, size_t index, Word expected, Word next) {
  if (next != expected + 1) return compareExchange(words, index, expected, next);
  const Word found = load(words, index);
  if (found == expected) words[index] = next;
  return found;
}
}  // namespace millrace
#define compareExchange seededCompareExchange
#endif
