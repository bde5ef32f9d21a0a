// What the tests of the protocol are written with.
#pragma once

#include <atomic>
#include <cstdio>
#include <vector>

#include "seeds.h"

#include "../batch.h"

using namespace millrace;

namespace {

std::atomic<int> failed{0};
constexpr int MOST_PRINTED = 20;

#define CHECK(is, ...)                                     \
  do {                                                     \
    if (!(is) && failed++ < MOST_PRINTED) {                \
      std::printf("%s:%d: %s: ", __FILE__, __LINE__, #is); \
      std::printf(__VA_ARGS__);                            \
      std::printf("\n");                                   \
    }                                                      \
  } while (false)

/** Sanitizers take so long over each access that threads are held up in most decisions, and do less together. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool IS_HELD_UP = true;
#else
constexpr bool IS_HELD_UP = false;
#endif

constexpr double WINDOW_MS = 10'000;
constexpr uint32_t GRANULES = 10;
/** Above 4,096 block sums have a second level. */
constexpr uint32_t MANY_GRANULES = 5'000;
constexpr double GRANULE_MS = WINDOW_MS / GRANULES;
constexpr double START_MS = 1'000'123;

template <typename Sums>
constexpr Word KIND = SUMS_LINEAR;
template <>
constexpr Word KIND<Blocks> = SUMS_BLOCKS;
template <>
constexpr Word KIND<Fenwick> = SUMS_FENWICK;

/** An arena in which keys have been given their homes; TypeScript does that otherwise. */
template <typename Sums>
struct Arena {
  Shape shape;
  std::vector<Word> words;

  explicit Arena(uint32_t sets, bool isSmooth = false, uint32_t granules = GRANULES)
      : shape(granules * GRANULE_MS, granules, sets, START_MS, isSmooth, KIND<Sums>), words(shape.words - SEEDED_SHORTFALL) {}

  Word* data() { return seededShift(words.data()); }

  size_t insert(Name name, double nowMs) {
    const size_t way = (uint64_t{name.lo} * shape.sets >> 32) * WAYS_PER_SET + (name.lo & (WAYS_PER_SET - 1));
    const size_t base = shape.waysAt + way * shape.wayWords;
    words[NAMES_AT + way] = name.lo;
    words[base + HI] = name.hi;
    words[base + TICK] = Reading(shape, nowMs).tick;
    words[base + ADM] = LIVE;
    return way;
  }
};

constexpr Name KEY{0x1234, 0x5678};

/** As the engine decides: the attempt first, then at length. */
template <typename Sums>
Found decide(Cells<Sums>& cells, size_t way, Word cost, Word limit, const Reading& reading, Name name = KEY) {
  const Found found = cells.attempt(way, name, cost, limit, reading);
  if (found != Found::UNDECIDED) return found;
  if (!cells.enter(cells.base(way), reading)) return Found::NEEDS_READING;
  return cells.decide(way, name, cost, limit, reading);
}

template <typename Sums>
bool admits(Cells<Sums>& cells, size_t way, Word cost, Word limit, const Reading& reading, Name name = KEY) {
  const Found found = decide(cells, way, cost, limit, reading, name);
  CHECK(found == Found::ADMITTED || found == Found::FULL, "found %d", static_cast<int>(found));
  return found == Found::ADMITTED;
}

}  // namespace
