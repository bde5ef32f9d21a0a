// The ring of buckets of a cell, and the cell's tick. The counterpart of src/algorithms/ring.ts, which
// explains both.
#pragma once

#include "blocks.h"
#include "fenwick.h"
#include "linear.h"

namespace millrace {

/** How far `advance` moved a cell's tick. */
struct Move {
  int64_t ticks;
  /**
   * The tick is too far ahead of the reading to be plausible. The caller continues only with a newer reading.
   */
  bool isFarAhead;
};

/** `Sums` sums the buckets: Linear, Blocks or Fenwick. */
template <typename Sums>
class Ring {
 public:
  /** The granules that a window may overlap: n, and the one in progress. */
  const uint32_t size;
  /** The number of buckets. Equals `size`, or a little more below nodes. */
  const uint32_t slots;

  Ring(const Ring&) = delete;
  Ring(Word* words, const Shape& shape)
      : size(shape.buckets + 1),
        slots(shape.ring),
        words_(words),
        shape_(shape),
        laps_(shape.ring),
        sums_(words, shape, laps_),
        aheadTicks_(aheadTicksFor(shape)) {}

  uint32_t slot(Word tick) { return laps_.slot(tick); }
  /** The lap of the tick last given to `slot`. */
  Word lap() const { return laps_.lap(); }
  Sums& sums() { return sums_; }

  /** The units in the window that ends in `tick`, at most MAX_TOTAL. */
  Word sum(size_t base, Word tick, uint32_t sixteenth) {
    return static_cast<Word>(std::min<uint64_t>(sumOf(base, tick, size, sixteenth), MAX_TOTAL));
  }

  /**
   * The units of the `length` ticks (1 to `size`) up to `tick`. `sixteenth` sixteenths of the oldest tick are
   * left out, and the rest of it is rounded up.
   */
  uint64_t sumOf(size_t base, Word tick, uint32_t length, uint32_t sixteenth) {
    const uint32_t slot = this->slot(tick);
    if (sixteenth == 0) return sums_.sum(base, slot, lap(), length);
    const uint64_t oldest = countAt(base, tick, length - 1);
    const uint64_t inside = (oldest * (SIXTEENTHS - sixteenth) + SIXTEENTHS - 1) / SIXTEENTHS;
    return sums_.sum(base, slot, lap(), length - 1) + inside;
  }

  /** The units in the bucket `age` ticks before `tick`. */
  Word countAt(size_t base, Word tick, uint32_t age) {
    const int64_t at = int64_t{slot(tick)} - age;
    const Word b = read(words_, base + BUCKETS + static_cast<size_t>(at < 0 ? at + slots : at));
    return (b & LAP) == (at < 0 ? lap() - ONE_LAP : lap()) ? b & COUNT : 0;
  }

  /**
   * Moves a cell's tick forward to the reading's, and sweeps what it passes. `seen` is the tick as last read.
   */
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
      const Word next = hop == behind ? reading.tick : after(tick, hop);
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

  /**
   * How many ticks the reading is after the cell's `tick`. Negative if the cell's tick stands ahead of the
   * reading.
   */
  int64_t behind(size_t base, Word tick, const Reading& reading) {
    const int64_t behind = shape_.distance(reading.tick, tick);
    return sideOf(base, behind, reading) == Side::STANDS_AHEAD ? behind - shape_.modulus : behind;
  }

 private:
  /** The position of a cell's tick relative to a reading. */
  enum class Side { BEHIND, STANDS_AHEAD, FAR_AHEAD };

  Word after(Word tick, int64_t ticks) const {
    return static_cast<Word>((int64_t{tick} + ticks) % shape_.modulus);
  }

  static int64_t aheadTicksFor(const Shape& shape) {
    const double ticks = std::max(std::ceil(MAX_AHEAD_MS / shape.granuleMs), MIN_AHEAD_TICKS);
    return static_cast<int64_t>(std::min(ticks, MAX_AHEAD_TICKS));
  }

  Side sideOf(size_t base, int64_t behind, const Reading& reading) {
    if (2 * behind <= shape_.modulus) return Side::BEHIND;
    const int64_t ahead = shape_.modulus - behind;
    // This load acquires. The thread that moved the tick raised NEWEST before, so NEWEST is read after the
    // tick.
    load(words_, base + TICK);
    // The tick of a newer record is ahead of every reading by this one. Its name changed before its tick.
    if ((load(words_, base + HI) & CELL_RECORD) != shape_.record) return Side::STANDS_AHEAD;
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
    // Relaxed: NEWEST only rises, so a stale value is lower, and costs one compare-exchange.
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
