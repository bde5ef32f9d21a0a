// The places in an arena of one shape, and time in ticks there: src/memory/layout.ts, src/core/ticks.ts and
// src/core/reading.ts. All arithmetic on doubles is theirs, operation by operation, so that both sides agree to the tick.
#pragma once

#include <cmath>

#include "layout.h"

namespace millrace {

/** Cells of more buckets than this are not summed bucket by bucket, and not decided here. */
inline constexpr uint32_t MOST_BUCKETS = 256;
inline constexpr double MAX_SAFE_INTEGER = 9007199254740991.0;

struct Shape {
  double windowMs;
  /** The clock's reading from which UNTIL and NEWEST count. */
  double originMs;
  bool isSmooth;
  uint32_t buckets;
  uint32_t sets;
  uint32_t ring;
  /** Up to 2^32 itself, where 256 rings divide it. */
  int64_t modulus;
  uint32_t wayWords;
  uint64_t waysAt;
  uint64_t words;
  double granuleMs;
  bool isWhole;

  Shape(double windowMs, uint32_t buckets, uint32_t sets, double originMs, bool isSmooth)
      : windowMs(windowMs), originMs(originMs), isSmooth(isSmooth), buckets(buckets), sets(sets), ring(buckets + 1) {
    const uint64_t ways = uint64_t{sets} * WAYS_PER_SET;
    const int64_t rings = int64_t{LAPS} * ring;
    modulus = (int64_t{1} << 32) / rings * rings;
    wayWords = BUCKETS + ring;
    waysAt = NAMES_AT + ways;
    words = waysAt + ways * wayWords;
    granuleMs = windowMs / buckets;
    isWhole = granuleMs == std::floor(granuleMs);
  }

  /** `nowMs` in granules, with its fraction. */
  double position(double nowMs) const { return isWhole ? nowMs / granuleMs : nowMs * buckets / windowMs; }

  /** How many ticks `tick` is after `earlier`, 0 to modulus - 1. */
  int64_t distance(Word tick, Word earlier) const {
    const int64_t distance = int64_t{tick} - int64_t{earlier};
    return distance < 0 ? distance + modulus : distance;
  }
};

/** A reading of the clock, and its tick. */
struct Reading {
  double nowMs;
  /** Not wrapped. */
  double absoluteTick;
  /** As its word in shared memory. */
  Word tick;
  /** How many sixteenths of its granule the reading is into it. */
  uint32_t sixteenth;

  Reading(const Shape& shape, double nowMs) : nowMs(nowMs) {
    const double position = shape.position(nowMs);
    absoluteTick = std::floor(position);
    const int64_t rest = static_cast<int64_t>(absoluteTick) % shape.modulus;
    tick = static_cast<Word>(rest < 0 ? rest + shape.modulus : rest);
    sixteenth = static_cast<int64_t>(std::floor(position * 16)) & 15;
  }

  /** Whether granules can be told apart there; no other reading may be made. */
  static bool isSound(const Shape& shape, double nowMs) {
    return std::abs(nowMs) <= MAX_SAFE_INTEGER && std::abs(shape.position(nowMs)) * 16 + 16 <= MAX_SAFE_INTEGER;
  }
};

}  // namespace millrace
