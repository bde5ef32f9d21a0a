// Mistakes for the sanitizers to find, one at a time, as `npm run test:sanitize` asks for them by -D. Included ahead of what
// they are made in; without -D there are none.
#pragma once

#include "../words.h"

/** SEED_SHORT_ARENA: the arena ends a word too early, and whoever reads the last bucket reads past it. */
#if defined(SEED_SHORT_ARENA)
inline constexpr size_t SEEDED_SHORTFALL = 1;
#else
inline constexpr size_t SEEDED_SHORTFALL = 0;
#endif

/** SEED_MISALIGNED: the arena begins within a word. */
inline millrace::Word* seededShift(millrace::Word* words) {
#if defined(SEED_MISALIGNED)
  return reinterpret_cast<millrace::Word*>(reinterpret_cast<char*>(words) + 2);
#else
  return words;
#endif
}

/** SEED_PLAIN_INCREMENT: a word that is raised by one is looked at, and then written plainly. */
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
