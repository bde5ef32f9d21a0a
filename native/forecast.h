// What a cell has left, worked out from its buckets and never written to it: src/algorithms/forecast.ts. A snapshot, which
// other threads may overtake.
#pragma once

#include "cell.h"

namespace millrace {

template <typename Sums>
class Forecast {
 public:
  Forecast(Word* words, const Shape& shape, Cells<Sums>& cells) : words_(words), shape_(shape), cells_(cells) {}

  /**
   * Units of the limit that are left after the decision just made on the way by the reading, none where it is blocked. Where the
   * cell has changed since, less: what the admission word counted then errs high.
   */
  Word remaining(size_t way, Word limit, const Reading& reading) {
    const size_t base = cells_.base(way);
    const Charge& decided = cells_.charged();
    if ((decided.adm & COUNT) == BLOCKED && cells_.isShut(base, decided.adm, reading.nowMs)) return 0;
    uint64_t used = this->used(base, reading);
    if (!cells_.isStillUnchanged(way, decided.adm, decided.tick)) used = decided.adm & COUNT;
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

  /**
   * Whole milliseconds from the reading until `cost` (at most `limit`) fits, if the cell is not blocked; NaN where TypeScript has
   * to say: of times too far apart.
   */
  double untilFits(size_t base, Word cost, Word limit, const Reading& reading) {
    Ring<Sums>& ring = cells_.ring();
    const uint64_t room = limit - cost;
    for (;;) {
      const View view = viewOf(base, reading);
      double free = 0;
      if (usedIn(base, view) > room) {
        const int64_t age = lastToLeave(base, view, room);
        if (age != NONE) {
          const Word count = ring.countAt(base, view.tick, static_cast<uint32_t>(age));
          const double most = static_cast<double>(room) - static_cast<double>(sumOf(base, view, age));
          const double position = leaves(view.newest - static_cast<double>(age), count, most);
          free = shape_.untilPosition(reading.nowMs, std::max(position, view.now));
        }
      }
      if (read(words_, base + TICK) == view.tick) return free;
    }
  }

 private:
  /** A cell's buckets as seen from a reading. */
  struct View {
    Word tick;
    /** The same, not wrapped. */
    double newest;
    /** How many ticks up to that one are in the window. */
    int64_t length;
    /** The sixteenths of the first of them that are outside. */
    uint32_t outside;
    /** Where the window ends, in granules. */
    double now;
  };

  View viewOf(size_t base, const Reading& reading) {
    Ring<Sums>& ring = cells_.ring();
    const Word tick = load(words_, base + TICK);
    const int64_t behind = ring.behind(base, tick, reading);
    const double newest = reading.absoluteTick - static_cast<double>(behind);
    const int64_t length = std::max<int64_t>(0, ring.size - std::max<int64_t>(behind, 0));
    const uint32_t outside = shape_.isSmooth && behind >= 0 ? reading.sixteenth : 0;
    return {tick, newest, length, outside, behind < 0 ? newest : reading.absoluteTick + outside / double{SIXTEENTHS}};
  }

  uint64_t sumOf(size_t base, const View& view, int64_t length) {
    return length > 0 ? cells_.ring().sumOf(base, view.tick, static_cast<uint32_t>(length), 0) : 0;
  }

  /** What counts in the view's window, of its oldest bucket by the part inside. */
  uint64_t usedIn(size_t base, const View& view) {
    if (view.length == 0) return 0;
    return cells_.ring().sumOf(base, view.tick, static_cast<uint32_t>(view.length), view.outside);
  }

  /** Units that count against a decision at the reading; the cell's tick being the same before and after. */
  uint64_t used(size_t base, const Reading& reading) {
    for (;;) {
      const View view = viewOf(base, reading);
      const uint64_t used = usedIn(base, view);
      if (read(words_, base + TICK) == view.tick) return used;
    }
  }

  /** How many ticks before the view's the last one is that has to leave for at most `room` to count, or NONE. */
  int64_t lastToLeave(size_t base, const View& view, uint64_t room) {
    const uint64_t whole = sumOf(base, view, view.length);
    if (whole <= room) return NONE;
    Ring<Sums>& ring = cells_.ring();
    const uint32_t slot = ring.slot(view.tick);
    const auto units = static_cast<int64_t>(whole - room - 1);
    const int64_t found = ring.sums().find(base, slot, ring.lap(), static_cast<uint32_t>(view.length), units);
    const auto fits = [&](int64_t age) { return sumOf(base, view, age) <= room; };
    if (found != NONE && fits(found) && !fits(found + 1)) return found;
    int64_t low = 0;
    for (int64_t high = view.length - 1; low < high;) {
      const int64_t middle = (low + high + 1) / 2;
      if (fits(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The first position at which a bucket counts at most `most`. */
  double leaves(double tick, Word count, double most) {
    double sixteenths = SIXTEENTHS;
    if (shape_.isSmooth) sixteenths = count > most ? std::min(double{SIXTEENTHS}, std::ceil(SIXTEENTHS - SIXTEENTHS * most / count)) : 1;
    return tick + cells_.ring().size - 1 + sixteenths / SIXTEENTHS;
  }

  Word* const words_;
  const Shape& shape_;
  Cells<Sums>& cells_;
};

}  // namespace millrace
