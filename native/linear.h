// No nodes: the buckets of a short window are added one by one. The counterpart of src/range-sum/linear.ts.
#pragma once

#include "range_sum.h"

namespace millrace {

class Linear {
 public:
  static constexpr bool HAS_NODES = false;

  Linear(Word* words, const Shape& shape, Laps& laps) : words_(words), ring_(shape.ring), laps_(laps) {}

  Word charge(size_t, Word, uint32_t, Word, Word) { return CHARGED; }
  void takeOut(size_t, uint32_t, Word, Word) {}
  void prefetch(size_t, uint32_t) const {}

  /**
   * Relaxed reads are enough. The caller has loaded the admission word before, and everything that word
   * counts was in the buckets earlier.
   */
  uint64_t sum(size_t base, uint32_t slot, Word lap, uint32_t length) const {
    const size_t first = base + BUCKETS;
    const size_t end = first + slot + 1;
    if (length <= slot + 1) return sumOf(end - length, end, lap);
    const size_t ringEnd = first + ring_;
    return sumOf(first, end, lap) + sumOf(ringEnd - (length - slot - 1), ringEnd, lap - ONE_LAP);
  }

  int64_t find(size_t base, uint32_t slot, Word lap, uint32_t length, int64_t left) const {
    for (int64_t age = int64_t{length} - 1; age >= 0; age--) {
      const int64_t at = int64_t{slot} - age;
      const Word b = read(words_, base + BUCKETS + static_cast<size_t>(at < 0 ? at + ring_ : at));
      if ((b & LAP) != (at < 0 ? lap - ONE_LAP : lap)) continue;
      left -= b & COUNT;
      if (left < 0) return age;
    }
    return NONE;
  }

  /** Visits one slot for every SWEEP_LAPS ticks passed. Removes a count whose lap has left the ring. */
  void sweep(size_t base, Word from, int64_t hop, Word to) {
    const int64_t end = (int64_t{from} + hop) / SWEEP_LAPS;
    int64_t p = from / SWEEP_LAPS + 1;
    if (p > end) return;
    for (p = std::max(p, end - ring_ + 1); p <= end; p++) {
      const auto slot = static_cast<uint32_t>(p % ring_);
      const size_t at = base + BUCKETS + slot;
      const Word b = load(words_, at);
      if ((b & COUNT) == 0 || (b & LAP) == laps_.lapOf(slot, to)) continue;
      // Other threads may have moved the tick on. The tick is read after the bucket, so the bucket's charges
      // are of this tick or of an earlier one.
      if ((b & LAP) == laps_.lapOf(slot, read(words_, base + TICK))) continue;
      compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
  }

 private:
  uint64_t sumOf(size_t from, size_t end, Word lap) const {
    uint64_t sum = 0;
    for (size_t i = from; i < end; i++) {
      const Word b = read(words_, i);
      if ((b & LAP) == lap) sum += b & COUNT;
    }
    return sum;
  }

  Word* const words_;
  const int64_t ring_;
  Laps& laps_;
};

}  // namespace millrace
