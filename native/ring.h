// The ring of buckets of a cell, and its tick: src/algorithms/ring.ts, which explains it.
#pragma once

#include <algorithm>

#include "shape.h"

namespace millrace {

class Ring {
 public:
  struct Move {
    int64_t ticks;
    /** The cell's tick is further ahead of the reading than is believed: go on only with a reading taken after this. */
    bool isFarAhead;
  };

  const uint32_t size;

  Ring(Word* words, const Shape& shape)
      : size(shape.ring),
        words_(words),
        shape_(shape),
        aheadTicks_(static_cast<int64_t>(std::min(std::max(std::ceil(HOUR_MS / shape.granuleMs), 2.0), MAX_AHEAD))) {}

  /** The slot of a tick; `lap` then says its lap. Most calls ask for the tick of the call before. */
  uint32_t slot(Word tick) {
    if (tick != locatedTick_) {
      locatedTick_ = tick;
      const Word lap = tick / size;
      slot_ = tick - lap * size;
      lap_ = lap << 24;
    }
    return slot_;
  }

  Word lap() const { return lap_; }

  /** What the buckets of the window that ends in `tick` have counted, at most MAX_TOTAL. */
  Word sum(size_t base, Word tick, uint32_t sixteenth) {
    const size_t first = base + BUCKETS;
    const size_t end = first + size;
    const size_t own = first + slot(tick);
    const size_t oldest = own + 1 == end ? first : own + 1;
    const Word lapBefore = lap_ - ONE_LAP;
    const Word b = read(words_, oldest);
    uint64_t sum = (b & LAP) == (oldest > own ? lapBefore : lap_) ? b & COUNT : 0;
    if (sixteenth > 0) sum = (sum * (16 - sixteenth) + 15) / 16;
    for (size_t i = oldest == first ? first + 1 : first; i <= own; i++) {
      const Word b = read(words_, i);
      if ((b & LAP) == lap_) sum += b & COUNT;
    }
    for (size_t i = oldest + 1; i < end && oldest > own; i++) {
      const Word b = read(words_, i);
      if ((b & LAP) == lapBefore) sum += b & COUNT;
    }
    return static_cast<Word>(std::min<uint64_t>(sum, MAX_TOTAL));
  }

  /** Moves a cell's tick on to the reading's and brooms what it passed. */
  Move advance(size_t base, Word seen, const Reading& reading) {
    const int64_t reach = int64_t{BROOM_LAPS} * size;
    const int64_t all = int64_t{LAPS} * size;
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
      broom(base, tick, hop, next);
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

  static constexpr uint32_t BROOM_LAPS = LAPS / 4;
  static constexpr double HOUR_MS = 3'600'000;
  static constexpr double MAX_AHEAD = 1 << 20;
  static constexpr Word MOST_NEWEST = 0xffffffff;

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

  /** One slot for every 64 ticks passed: a count in it that is of no lap still in the window goes. */
  void broom(size_t base, Word from, int64_t hop, Word to) {
    const int64_t end = (int64_t{from} + hop) / BROOM_LAPS;
    int64_t p = from / BROOM_LAPS + 1;
    if (p > end) return;
    for (p = std::max(p, end - size + 1); p <= end; p++) {
      const auto i = static_cast<uint32_t>(p % size);
      const size_t at = base + BUCKETS + i;
      const Word b = load(words_, at);
      if ((b & COUNT) == 0 || (b & LAP) == lapOf(i, to)) continue;
      // By the tick read after the bucket: what it counts was charged in that tick or before, if others have moved on.
      if ((b & LAP) == lapOf(i, read(words_, base + TICK))) continue;
      compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
  }

  /** The lap that a slot has in the window that ends in `tick`. */
  Word lapOf(uint32_t slot, Word tick) { return slot <= this->slot(tick) ? lap_ : lap_ - ONE_LAP; }

  Word* const words_;
  const Shape& shape_;
  const int64_t aheadTicks_;
  Word locatedTick_ = 0;
  uint32_t slot_ = 0;
  Word lap_ = 0;
};

}  // namespace millrace
