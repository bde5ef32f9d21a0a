// The places in an arena of one shape, and time in ticks there: src/memory/layout.ts, src/core/ticks.ts and
// src/core/reading.ts. All arithmetic on doubles is theirs, operation by operation, so that both sides agree to the tick.
#pragma once

#include <cmath>

#include "layout.h"

namespace millrace {

struct Shape {
  double windowMs;
  /** The clock's reading from which UNTIL and NEWEST count. */
  double originMs;
  bool isSmooth;
  uint32_t buckets;
  uint32_t sets;
  /** What stands above the buckets: SUMS_LINEAR (nothing), SUMS_BLOCKS or SUMS_FENWICK. */
  Word sums;
  uint32_t ring;
  /** Nodes that sum a block each, and those of the second level. */
  uint32_t blocks;
  uint32_t upper;
  /** Up to 2^32 itself, where 256 rings divide it. */
  int64_t modulus;
  uint32_t wayWords;
  uint64_t waysAt;
  uint64_t besideAt;
  uint64_t words;
  double granuleMs;
  bool isWhole;

  Shape(double windowMs, uint32_t buckets, uint32_t sets, double originMs, bool isSmooth, Word sums = SUMS_LINEAR)
      : windowMs(windowMs), originMs(originMs), isSmooth(isSmooth), buckets(buckets), sets(sets), sums(sums) {
    const bool isPlain = sums == SUMS_LINEAR;
    const bool hasUpper = sums == SUMS_BLOCKS && buckets > MOST_BLOCKS * BLOCK;
    const uint32_t span = hasUpper ? BLOCK * BLOCK : BLOCK;
    ring = isPlain ? buckets + 1 : ((buckets + span) / span + 1) * span;
    blocks = isPlain ? 0 : ring / BLOCK;
    upper = hasUpper ? ring / span : 0;
    const uint64_t ways = uint64_t{sets} * WAYS_PER_SET;
    const int64_t rings = int64_t{LAPS} * ring;
    modulus = (int64_t{1} << 32) / rings * rings;
    wayWords = BUCKETS + ring + blocks + upper;
    waysAt = NAMES_AT + ways;
    besideAt = waysAt + ways * wayWords;
    words = besideAt + ways * BESIDE_WORDS;
    granuleMs = windowMs / buckets;
    isWhole = granuleMs == std::floor(granuleMs);
  }

  /** `nowMs` in granules, with its fraction. */
  double position(double nowMs) const { return isWhole ? nowMs / granuleMs : nowMs * buckets / windowMs; }

  /**
   * How many whole milliseconds after `nowMs` the clock first stands at or behind `position`; NaN where a few steps do not find
   * it, as doubles are too coarse there.
   */
  double untilPosition(double nowMs, double position) const {
    double ms = std::ceil(position * granuleMs - nowMs);
    for (int step = 0; step < 16; step++) {
      if (this->position(nowMs + ms) < position) ms++;
      else if (this->position(nowMs + ms - 1) >= position) ms--;
      else return ms;
    }
    return std::nan("");
  }

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
    sixteenth = static_cast<int64_t>(std::floor(position * SIXTEENTHS)) & (SIXTEENTHS - 1);
  }

  /** Whether granules can be told apart there; no other reading may be made. */
  static bool isSound(const Shape& shape, double nowMs) {
    return std::abs(nowMs) <= MAX_SAFE_INTEGER && std::abs(shape.position(nowMs)) * SIXTEENTHS + SIXTEENTHS <= MAX_SAFE_INTEGER;
  }
};

}  // namespace millrace
