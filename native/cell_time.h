// Compares the tick of a cell with a reading of the clock. The counterpart of src/algorithms/word/cell-time.ts, which
// explains it.
#pragma once

#include <algorithm>

#include "shape.h"

namespace millrace {

/** The position of a cell's tick relative to a reading. */
enum class Side { BEHIND, STANDS_AHEAD, FAR_AHEAD };

/** How far `advance` moved a cell's tick. */
struct Move {
  int64_t ticks;
  /**
   * The tick is too far ahead of the reading to be plausible. The caller continues only with a newer reading.
   */
  bool isFarAhead;
};

class CellTime {
 public:
  CellTime(Word* words, const Shape& shape)
      : words_(words), shape_(shape), aheadTicks_(aheadTicksFor(shape)) {}

  /**
   * How many ticks the reading is after the cell's `tick`. Negative if the cell's tick stands ahead of the
   * reading.
   */
  int64_t behind(size_t base, Word tick, const Reading& reading) const {
    const int64_t behind = shape_.distance(reading.tick, tick);
    return sideOf(base, behind, reading) == Side::STANDS_AHEAD ? behind - shape_.modulus : behind;
  }

  /**
   * Moves a cell's tick forward to the reading's. `seen` is the tick as last read. `hops` says by how many ticks
   * at once (`hop(behind)`), and what happens to the old counts after that (`sweep(base, from, hop, to)`).
   */
  template <typename Hops>
  Move advance(size_t base, Word seen, const Reading& reading, Hops& hops) const {
    int64_t moved = 0;
    Word tick = seen;
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const int64_t behind = shape_.distance(reading.tick, tick);
      if (behind == 0) return {moved, false};
      const Side side = sideOf(base, behind, reading);
      if (side == Side::STANDS_AHEAD) return {moved, false};
      if (side == Side::FAR_AHEAD) return {moved, true};
      const int64_t hop = hops.hop(behind);
      const Word next = hop == behind ? reading.tick : after(tick, hop);
      raiseNewest(reading);
      const Word found = compareExchange(words_, base + TICK, tick, next);
      if (found != tick) {
        tick = found;
        continue;
      }
      hops.sweep(base, tick, hop, next);
      moved += hop;
      tick = next;
    }
    return {moved, true};
  }

  /** The tick that is `ticks` after `tick`. */
  Word after(Word tick, int64_t ticks) const {
    return static_cast<Word>((int64_t{tick} + ticks) % shape_.modulus);
  }

  Side sideOf(size_t base, int64_t behind, const Reading& reading) const {
    if (2 * behind <= shape_.modulus) return Side::BEHIND;
    const int64_t ahead = shape_.modulus - behind;
    // This load acquires. The thread that moved the tick raised NEWEST before, so NEWEST is read after the
    // tick.
    load(words_, base + TICK);
    // The tick of a newer record is ahead of every reading by this one. Its name changed before its tick.
    if ((load(words_, base + HI) & CELL_RECORD) != shape_.record) return Side::STANDS_AHEAD;
    const Word word = load(words_, HEADER_NEWEST);
    const double newest = (word + 2.0) * (1000.0 / PER_SECOND);
    const double aheadMs = shape_.startMs(reading.absoluteTick + static_cast<double>(ahead));
    if (!(aheadMs - shape_.originMs < newest) && word != MOST_NEWEST) return Side::BEHIND;
    return ahead <= aheadTicks_ ? Side::STANDS_AHEAD : Side::FAR_AHEAD;
  }

  void raiseNewest(const Reading& reading) const {
    const double since = std::floor((reading.nowMs - shape_.originMs) * PER_SECOND / 1000);
    if (!(since > 0)) return;
    const auto newest = static_cast<Word>(std::min(since, static_cast<double>(MOST_NEWEST)));
    // Relaxed: NEWEST only rises, so a stale value is lower, and costs one compare-exchange.
    Word seen = read(words_, HEADER_NEWEST);
    for (Word tries = 0; tries < MOST_TRIES && seen < newest; tries++) {
      const Word found = compareExchange(words_, HEADER_NEWEST, seen, newest);
      if (found == seen) return;
      seen = found;
    }
  }

 private:
  static int64_t aheadTicksFor(const Shape& shape) {
    const double ticks = std::max(std::ceil(MAX_AHEAD_MS / shape.granuleMs), MIN_AHEAD_TICKS);
    return static_cast<int64_t>(std::min(ticks, MAX_AHEAD_TICKS));
  }

  Word* const words_;
  const Shape& shape_;
  const int64_t aheadTicks_;
};

}  // namespace millrace
