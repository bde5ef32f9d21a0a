// What a cell has left, worked out from its buckets and never written to it: src/algorithms/forecast.ts. A snapshot, which
// other threads may overtake.
#pragma once

#include "cell.h"

namespace millrace {

class Forecast {
 public:
  Forecast(Word* words, const Shape& shape, Cells& cells) : words_(words), shape_(shape), cells_(cells) {}

  /** Units of the limit that are left at the reading; none where the cell is blocked. */
  Word remaining(size_t base, Word limit, const Reading& reading) {
    if (cells_.isShut(base, load(words_, base + ADM), reading.nowMs)) return 0;
    const uint64_t used = this->used(base, reading);
    return used < limit ? limit - static_cast<Word>(used) : 0;
  }

 private:
  /** Units that count against a decision at the reading. Ticks here are not wrapped. */
  uint64_t used(size_t base, const Reading& reading) {
    Ring& ring = cells_.ring();
    const auto now = static_cast<int64_t>(reading.absoluteTick);
    const int64_t newest = now - ring.behind(base, load(words_, base + TICK), reading);
    const int64_t end = std::max(newest, now);
    const int64_t oldest = end - ring.size + 1;
    const uint32_t outside = shape_.isSmooth && newest <= now ? reading.sixteenth : 0;  // of the oldest, in sixteenths
    const int64_t wrapped = oldest % shape_.modulus;
    uint32_t slot = ring.slot(static_cast<Word>(wrapped < 0 ? wrapped + shape_.modulus : wrapped));
    Word lap = ring.lap();
    uint64_t used = 0;
    for (int64_t tick = oldest; tick <= newest; tick++) {
      const Word b = read(words_, base + BUCKETS + slot);
      const uint64_t count = (b & LAP) == lap ? b & COUNT : 0;
      used += tick == oldest ? (count * (16 - outside) + 15) / 16 : count;
      if (++slot < ring.size) continue;
      slot = 0;
      lap += ONE_LAP;  // on across the modulus, too: it is so many whole laps
    }
    return used;
  }

  Word* const words_;
  const Shape& shape_;
  Cells& cells_;
};

}  // namespace millrace
