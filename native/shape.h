// The positions of all words in an arena of one shape, and time in ticks: the counterpart of
// src/memory/layout.ts, src/core/ticks.ts and src/core/reading.ts. The arithmetic on doubles repeats theirs
// operation by operation, so that both sides compute the same tick.
#pragma once

#include <cmath>

#include "layout.h"

namespace millrace {

/** What a shape needs to know of a rule beside its window: as in src/memory/layout.ts. */
struct CellRule {
  Word counting;
  uint32_t units;
  double offsetMs;
};

struct Shape {
  double windowMs;
  /** The clock's reading at the arena's creation. UNTIL and NEWEST count from it. */
  double originMs;
  bool isSmooth;
  /** Granules in a window of the record. */
  uint32_t buckets;
  uint32_t sets;
  /** The index of the record, and what it adds to each tick. */
  Word record;
  Word shift;
  /** How buckets are summed: SUMS_LINEAR, SUMS_BLOCKS or SUMS_FENWICK. */
  Word sums;
  /** Buckets in a way. */
  uint32_t ring;
  /** Nodes of the lowest level; each sums one block. */
  uint32_t blocks;
  /** Nodes of the second level. */
  uint32_t upper;
  /** The most granules of a window that a cell can count. */
  uint32_t mostBuckets;
  /** Ticks in shared memory count modulo this. It is at most 2^32, and with buckets a multiple of 256 rings. */
  int64_t modulus;
  /** How a cell counts: COUNTING_BUCKETS, or another one. */
  Word counting;
  /** The time units of a token bucket that is full, or the entries of a log. */
  uint32_t units;
  /** Added to each reading, in milliseconds. */
  double offsetMs;
  uint32_t wayWords;
  uint64_t waysAt;
  uint64_t extraAt;
  uint64_t words;
  double granuleMs;
  bool isWhole;

  /** `cellBuckets`: the granules of the window for which the cells are made. 0: `buckets`. */
  Shape(double windowMs, uint32_t buckets, uint32_t sets, double originMs, bool isSmooth,
        Word sums = SUMS_LINEAR, uint32_t cellBuckets = 0, Word record = 0, Word shift = 0,
        CellRule rule = {COUNTING_BUCKETS, 0, 0})
      : windowMs(windowMs),
        originMs(originMs),
        isSmooth(isSmooth),
        buckets(buckets),
        sets(sets),
        record(record),
        shift(shift),
        sums(sums),
        counting(rule.counting),
        units(rule.units),
        offsetMs(rule.offsetMs) {
    if (cellBuckets == 0) cellBuckets = buckets;
    const bool hasBuckets = counting == COUNTING_BUCKETS;
    const bool isLinear = sums == SUMS_LINEAR;
    const bool hasUpper = sums == SUMS_BLOCKS && cellBuckets > MOST_BLOCKS * BLOCK;
    const uint32_t span = hasUpper ? BLOCK * BLOCK : BLOCK;
    const bool isLog = counting == COUNTING_LOG;
    ring = isLinear ? cellBuckets + 1 : ((cellBuckets + span) / span + 1) * span;
    mostBuckets = isLinear ? cellBuckets : ring - span - 1;
    if (!hasBuckets) mostBuckets = isLog ? MOST_LOG_TICKS : MOST_WORD_BUCKETS;
    blocks = isLinear ? 0 : ring / BLOCK;
    upper = hasUpper ? ring / span : 0;
    const uint64_t ways = uint64_t{sets} * WAYS_PER_SET;
    const int64_t ringsTicks = int64_t{LAPS} * ring;
    modulus = int64_t{1} << 32;
    if (hasBuckets) modulus = modulus / ringsTicks * ringsTicks;
    else if (!isLog) modulus = WORD_MODULUS;
    wayWords = BUCKETS + (hasBuckets ? ring + blocks + upper : isLog ? WORDS_BEFORE_ENTRIES + units : 0);
    waysAt = NAMES_AT + ways;
    extraAt = waysAt + ways * wayWords;
    words = extraAt + ways * ((hasBuckets ? EXTRA_WORDS : 0) + PAST_WORDS);
    granuleMs = windowMs / buckets;
    isWhole = granuleMs == std::floor(granuleMs);
  }

  /** `nowMs` in granules, with its fraction. */
  double position(double nowMs) const {
    const double ms = nowMs + offsetMs;
    return isWhole ? ms / granuleMs : ms * buckets / windowMs;
  }

  /** The reading at which a tick, not wrapped, begins. */
  double startMs(double tick) const { return tick * granuleMs - offsetMs; }

  /**
   * The number of whole milliseconds after `nowMs` until the clock first reaches `position`. NaN if 16 steps
   * do not find it, because doubles are too coarse there.
   */
  double untilPosition(double nowMs, double position) const {
    double ms = std::ceil(startMs(position) - nowMs);
    for (int step = 0; step < 16; step++) {
      if (this->position(nowMs + ms) < position) ms++;
      else if (this->position(nowMs + ms - 1) >= position) ms--;
      else return ms;
    }
    return std::nan("");
  }

  /** How many ticks `tick` is after `earlier`: 0 to modulus - 1. */
  int64_t distance(Word tick, Word earlier) const {
    const int64_t distance = int64_t{tick} - int64_t{earlier};
    return distance < 0 ? distance + modulus : distance;
  }
};

/** A reading of the clock, and its tick. */
struct Reading {
  double nowMs;
  /** The tick before it is wrapped by the modulus. */
  double absoluteTick;
  /** The tick as a word of shared memory. */
  Word tick;
  /** The part of the reading's granule that has passed, in sixteenths: 0 to 15. */
  uint32_t sixteenth;

  /** Requires `isSound(shape, nowMs)`. */
  Reading(const Shape& shape, double nowMs) : nowMs(nowMs) {
    const double position = shape.position(nowMs);
    absoluteTick = std::floor(position);
    const int64_t rest = (static_cast<int64_t>(absoluteTick) + shape.shift) % shape.modulus;
    tick = static_cast<Word>(rest < 0 ? rest + shape.modulus : rest);
    sixteenth = static_cast<int64_t>(std::floor(position * SIXTEENTHS)) & (SIXTEENTHS - 1);
  }

  /** Whether doubles can tell one granule from the next at this time. */
  static bool isSound(const Shape& shape, double nowMs) {
    return std::abs(nowMs) <= MAX_SAFE_INTEGER &&
           std::abs(shape.position(nowMs)) * SIXTEENTHS + SIXTEENTHS <= MAX_SAFE_INTEGER;
  }
};

}  // namespace millrace
