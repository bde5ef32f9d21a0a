// What a cell has left, worked out from its buckets and never written to it: src/algorithms/forecast.ts. A snapshot, which
// other threads may overtake.
#pragma once

#include "cell.h"

namespace millrace {

template <typename Sums>
class Forecast {
 public:
  Forecast(Word* words, const Shape& shape, Cells<Sums>& cells) : words_(words), shape_(shape), cells_(cells) {}

  /** Units of the limit that are left at the reading; none where the cell is blocked. */
  Word remaining(size_t base, Word limit, const Reading& reading) {
    if (cells_.isShut(base, load(words_, base + ADM), reading.nowMs)) return 0;
    const uint64_t used = this->used(base, reading);
    return used < limit ? limit - static_cast<Word>(used) : 0;
  }

  /** Units charged in the last `lastMs` (at most the window): every granule that overlaps them, counted whole. */
  double usedInLast(size_t base, const Reading& reading, double lastMs) {
    Ring<Sums>& ring = cells_.ring();
    const double from = std::floor(shape_.position(reading.nowMs - lastMs));
    for (;;) {
      const Word tick = load(words_, base + TICK);
      const auto behind = static_cast<double>(ring.behind(base, tick, reading));
      const double newest = reading.absoluteTick - behind;
      const double length = std::min(ring.size - std::max(behind, 0.0), newest - from + 1);
      const uint64_t used = length >= 1 ? ring.sumOf(base, tick, static_cast<uint32_t>(length), 0) : 0;
      if (read(words_, base + TICK) == tick) return static_cast<double>(used);
    }
  }

 private:
  /** Units that count against a decision at the reading; the cell's tick being the same before and after. */
  uint64_t used(size_t base, const Reading& reading) {
    Ring<Sums>& ring = cells_.ring();
    for (;;) {
      const Word tick = load(words_, base + TICK);
      const int64_t behind = ring.behind(base, tick, reading);
      const int64_t length = ring.size - std::max<int64_t>(behind, 0);
      const uint32_t outside = shape_.isSmooth && behind >= 0 ? reading.sixteenth : 0;  // of the oldest
      const uint64_t used = length > 0 ? ring.sumOf(base, tick, static_cast<uint32_t>(length), outside) : 0;
      if (read(words_, base + TICK) == tick) return used;
    }
  }

  Word* const words_;
  const Shape& shape_;
  Cells<Sums>& cells_;
};

}  // namespace millrace
