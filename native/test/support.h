// Helpers for the tests of the protocol.
#pragma once

#include <atomic>
#include <cstdio>
#include <vector>

#include "seeds.h"

#include "../algorithm.h"
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

/** The tests with threads take this part of their times. Sanitizers slow each access down. */
#ifdef SHORT_TEST
constexpr int ONE_IN = 10;
#else
constexpr int ONE_IN = 1;
#endif

constexpr double WINDOW_MS = 10'000;
constexpr uint32_t GRANULES = 10;
/** Block sums have a second level above 4,096 granules. */
constexpr uint32_t MANY_GRANULES = 5'000;
constexpr double GRANULE_MS = WINDOW_MS / GRANULES;
constexpr double START_MS = 1'000'123;

template <typename Sums>
constexpr Word SUMS_OF = SUMS_LINEAR;
template <>
constexpr Word SUMS_OF<Blocks> = SUMS_BLOCKS;
template <>
constexpr Word SUMS_OF<Fenwick> = SUMS_FENWICK;

/** HI: the lowest bit of the hash. */
constexpr Word ONE_HASH = HASH & (~HASH + 1);

/** The shape of a record of that many granules, in cells that are made for `cellBuckets`. */
template <typename Sums>
Shape shapeBy(Word record, Word shift, uint32_t granules = GRANULES, uint32_t cellBuckets = GRANULES) {
  const double windowMs = granules * GRANULE_MS;
  return Shape(windowMs, granules, 2, START_MS, false, SUMS_OF<Sums>, cellBuckets, record, shift);
}

/** An arena and its keys. In production TypeScript inserts the keys. */
template <typename Sums>
struct Arena {
  Shape shape;
  std::vector<Word> words;

  explicit Arena(const Shape& shape) : shape(shape), words(seededLength(shape)) {}
  explicit Arena(uint32_t sets, bool isSmooth = false, uint32_t granules = GRANULES)
      : Arena(Shape(granules * GRANULE_MS, granules, sets, START_MS, isSmooth, SUMS_OF<Sums>)) {}

  Word* data() { return seededShift(words.data()); }

  size_t insert(Name name, double nowMs) {
    const size_t way = (uint64_t{name.lo} * shape.sets >> 32) * WAYS_PER_SET + (name.lo & (WAYS_PER_SET - 1));
    const size_t base = shape.waysAt + way * shape.wayWords;
    words[NAMES_AT + way] = name.lo;
    words[base + HI] = name.hi | shape.record;
    words[base + TICK] = Reading(shape, nowMs).tick;
    words[base + ADM] = LIVE;
    return way;
  }
};

constexpr Name KEY{0x1234, 0x5600};

/** Decides as Decider does, on a way that is known. */
template <typename Cells>
Result decide(Cells& cells, size_t way, Word cost, Word limit, const Reading& reading,
              Name name = KEY) {
  const Result found = cells.attempt(way, name, cost, limit, reading);
  if (found != Result::UNDECIDED) return found;
  if (!cells.enter(cells.base(way), reading)) return Result::NEEDS_READING;
  return cells.decide(way, name, cost, limit, reading);
}

template <typename Cells>
bool admits(Cells& cells, size_t way, Word cost, Word limit, const Reading& reading, Name name = KEY) {
  const Result found = decide(cells, way, cost, limit, reading, name);
  CHECK(found == Result::ADMITTED || found == Result::FULL, "found %d", static_cast<int>(found));
  return found == Result::ADMITTED;
}

}  // namespace
