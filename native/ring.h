// The ring of buckets of a cell, and the cell's tick. The counterpart of src/algorithms/window/ring.ts, which
// explains both.
#pragma once

#include "blocks.h"
#include "cell_time.h"
#include "fenwick.h"
#include "linear.h"

namespace millrace {

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
        time_(words, shape) {}

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
  Move advance(size_t base, Word seen, const Reading& reading) { return time_.advance(base, seen, reading, *this); }

  /** @see CellTime.advance */
  int64_t hop(int64_t behind) const {
    const int64_t reach = int64_t{SWEEP_LAPS} * slots;
    const int64_t all = int64_t{LAPS} * slots;
    return behind <= reach ? behind : reach + all * ((behind - reach) / all);
  }

  void sweep(size_t base, Word from, int64_t hop, Word to) { sums_.sweep(base, from, hop, to); }

  /**
   * How many ticks the reading is after the cell's `tick`. Negative if the cell's tick stands ahead of the
   * reading.
   */
  int64_t behind(size_t base, Word tick, const Reading& reading) {
    return time_.behind(base, tick, reading);
  }

 private:
  Word* const words_;
  const Shape& shape_;
  Laps laps_;
  Sums sums_;
  CellTime time_;
};

}  // namespace millrace
