// Operations on shared memory of which one word changes before each of them, as if another thread never rested. Takes
// the place of ../words.h, so it is the first header of the project that a test includes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "../constants.h"

// Fewer tries: loops inside loops end soon.
#define MOST_TRIES 20u
namespace sound {
using millrace::Word;
}
#define millrace sound
#include "../words.h"
#undef millrace

namespace millrace {

using sound::add, sound::store, sound::write;

/** The word that changes, by how much, and whether it changes back with the next operation. */
struct Restless {
  size_t at = SIZE_MAX;
  Word more = 0;
  bool isToAndFro = false;
  /** It rests for so many operations, on any word. */
  uint64_t rests = 0;
  /** An admission word whose epoch changes from the beginning. */
  size_t adm = SIZE_MAX;
  /** Operations since it was chosen. */
  uint64_t steps = 0;
};
inline Restless restless;

/** No call needs as many steps: this one would not return. */
constexpr uint64_t MOST_STEPS = 1'000'000;

inline void disturb(Word* words, size_t index) {
  if (restless.at == SIZE_MAX) return;
  if (++restless.steps > MOST_STEPS) {
    std::printf("a call that does not return: word %zu changes by %x\n", restless.at, restless.more);
    std::exit(1);
  }
  if (index == restless.adm) add(words, index, ONE_EPOCH);
  if (index != restless.at || restless.steps <= restless.rests) return;
  add(words, index, restless.more);
  if (restless.isToAndFro) restless.more = -restless.more;
}

inline Word load(Word* words, size_t index) {
  disturb(words, index);
  return sound::load(words, index);
}

inline Word read(Word* words, size_t index) {
  disturb(words, index);
  return sound::read(words, index);
}

inline Word readInOrder(Word* words, size_t index) {
  disturb(words, index);
  return sound::readInOrder(words, index);
}

inline bool isStill(Word* words, size_t index, Word value) {
  disturb(words, index);
  return sound::isStill(words, index, value);
}

inline Word compareExchange(Word* words, size_t index, Word expected, Word next) {
  disturb(words, index);
  return sound::compareExchange(words, index, expected, next);
}

}  // namespace millrace
