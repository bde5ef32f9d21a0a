// The ring of buckets of a cell, and its tick: src/algorithms/ring.ts, which explains it.
#pragma once

#include "blocks.h"
#include "fenwick.h"
#include "plain.h"

namespace millrace {

/** How far a cell's tick moved. */
struct Move {
  int64_t ticks;
  /** It is further ahead of the reading than is believed: go on only with a reading taken after this. */
  bool isFarAhead;
};

/** Its buckets are summed by `Sums`: Plain, Blocks or Fenwick. */
template <typename Sums>
class Ring {
 public:
  /** The granules that a window may reach into: n, and the one under way. */
  const uint32_t size;
  /** The buckets there are: as many, or some more below nodes. */
  const uint32_t slots;

  Ring(const Ring&) = delete;
  Ring(Word* words, const Shape& shape)
      : size(shape.buckets + 1),
        slots(shape.ring),
        words_(words),
        shape_(shape),
        laps_(shape.ring),
        sums_(words, shape, laps_),
        aheadTicks_(static_cast<int64_t>(std::min(std::max(std::ceil(MAX_AHEAD_MS / shape.granuleMs), MIN_AHEAD_TICKS), MAX_AHEAD_TICKS))) {}

  uint32_t slot(Word tick) { return laps_.slot(tick); }
  /** Of the tick last given to `slot`. */
  Word lap() const { return laps_.lap(); }
  /** What stands above the buckets. */
  Sums& sums() { return sums_; }

  /** What the buckets of the window that ends in `tick` have counted, at most MAX_TOTAL. */
  Word sum(size_t base, Word tick, uint32_t sixteenth) {
    return static_cast<Word>(std::min<uint64_t>(sumOf(base, tick, size, sixteenth), MAX_TOTAL));
  }

  /** What `length` ticks up to this one have counted (1 to `size`): the first without so many sixteenths of it, rounded up. */
  uint64_t sumOf(size_t base, Word tick, uint32_t length, uint32_t sixteenth) {
    const uint32_t slot = this->slot(tick);
    if (sixteenth == 0) return sums_.sum(base, slot, lap(), length);
    const uint64_t oldest = countAt(base, tick, length - 1);
    return sums_.sum(base, slot, lap(), length - 1) + (oldest * (SIXTEENTHS - sixteenth) + SIXTEENTHS - 1) / SIXTEENTHS;
  }

  /** What the bucket of the tick `age` before `tick` has counted. */
  Word countAt(size_t base, Word tick, uint32_t age) {
    const int64_t at = int64_t{slot(tick)} - age;
    const Word b = read(words_, base + BUCKETS + static_cast<size_t>(at < 0 ? at + slots : at));
    return (b & LAP) == (at < 0 ? lap() - ONE_LAP : lap()) ? b & COUNT : 0;
  }

  /** Moves a cell's tick on to the reading's and brooms what it passed. */
  Move advance(size_t base, Word seen, const Reading& reading) {
    const int64_t reach = int64_t{SWEEP_LAPS} * slots;
    const int64_t all = int64_t{LAPS} * slots;
    int64_t moved = 0;
    for (Word tick = seen;;) {
      const int64_t behind = shape_.distance(reading.tick, tick);
      if (behind == 0) return {moved, false};
      const Side side = sideOf(base, behind, reading);
      if (side == Side::STANDS_AHEAD) return {moved, false};
      if (side == Side::FAR_AHEAD) return {moved, true};
      const int64_t hop = behind <= reach ? behind : reach + all * ((behind - reach) / all);
      const Word next = hop == behind ? reading.tick : static_cast<Word>((int64_t{tick} + hop) % shape_.modulus);
      raiseNewest(reading);
      const Word found = compareExchange(words_, base + TICK, tick, next);
      if (found != tick) {
        tick = found;
        continue;
      }
      sums_.sweep(base, tick, hop, next);
      moved += hop;
      tick = next;
    }
  }

  /** How many ticks the reading is after the cell's `tick`; below 0 where the cell's stands ahead of it. */
  int64_t behind(size_t base, Word tick, const Reading& reading) {
    const int64_t behind = shape_.distance(reading.tick, tick);
    return sideOf(base, behind, reading) == Side::STANDS_AHEAD ? behind - shape_.modulus : behind;
  }

 private:
  enum class Side { BEHIND, STANDS_AHEAD, FAR_AHEAD };


  Side sideOf(size_t base, int64_t behind, const Reading& reading) {
    if (2 * behind <= shape_.modulus) return Side::BEHIND;
    const int64_t ahead = shape_.modulus - behind;
    load(words_, base + TICK);  // acquire: NEWEST rose before this tick did, and is read after it
    const Word word = load(words_, HEADER_NEWEST);
    const double newest = (word + 2.0) * (1000.0 / PER_SECOND);
    const double aheadMs = (reading.absoluteTick + static_cast<double>(ahead)) * shape_.granuleMs;
    if (!(aheadMs - shape_.originMs < newest) && word != MOST_NEWEST) return Side::BEHIND;
    return ahead <= aheadTicks_ ? Side::STANDS_AHEAD : Side::FAR_AHEAD;
  }

  void raiseNewest(const Reading& reading) {
    const double since = std::floor((reading.nowMs - shape_.originMs) * PER_SECOND / 1000);
    if (!(since > 0)) return;
    const auto newest = static_cast<Word>(std::min(since, static_cast<double>(MOST_NEWEST)));
    // Relaxed: a late value is a lower one, and costs a compare-exchange.
    for (Word seen = read(words_, HEADER_NEWEST); seen < newest;) {
      const Word found = compareExchange(words_, HEADER_NEWEST, seen, newest);
      if (found == seen) return;
      seen = found;
    }
  }

  Word* const words_;
  const Shape& shape_;
  Laps laps_;
  Sums sums_;
  const int64_t aheadTicks_;
};

}  // namespace millrace
