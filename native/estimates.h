// Figures that are computed from a cell's buckets and never written to them. The counterpart of
// src/algorithms/window/estimates.ts. Each figure is a snapshot, which other threads may outdate.
#pragma once

#include "cell.h"

namespace millrace {

/** The figures of a decision. */
struct Figures {
  Word remaining;
  double retryAfterMs;
  double resetMs;
};

template <typename Sums>
class Estimates {
 public:
  Estimates(Word* words, const Shape& shape, Cells<Sums>& cells)
      : words_(words), shape_(shape), cells_(cells) {}

  /**
   * The units of the limit that are left after the last decision of `cells`, 0 if the key is blocked. If the
   * cell has changed since, the result may be too low: it then uses the admission word of the decision, which
   * errs high.
   */
  Word remaining(size_t way, Word limit, const Reading& reading) {
    const size_t base = cells_.base(way);
    const Decided& decided = cells_.decided();
    if (cells_.isBlocked(base, decided.adm, reading.nowMs)) return 0;
    uint64_t used = this->used(base, reading);
    if (!cells_.isStillUnchanged(way, decided.adm, decided.tick)) used = decided.adm & COUNT;
    return leftOf(limit, used);
  }

  /**
   * All figures of the last decision of `cells`, an admission or a refusal of `cost` units that was not by a
   * block. If the cell has changed since, they are bounds, as in src/engines/inline/decision-estimates.ts. A figure
   * is NaN if the times are too far apart for this class.
   */
  Figures figures(size_t way, bool isAdmitted, Word cost, Word limit, const Reading& reading) {
    const Decided decided = cells_.decided();
    if (isAdmitted) return {remaining(way, limit, reading), 0, untilGone(decided, reading)};
    const Foresight seen = foresee(cells_.base(way), limit - cost, reading);
    if (cells_.isStillUnchanged(way, decided.adm, decided.tick))
      return {leftOf(limit, seen.used), seen.fitsMs < 1 ? 1 : seen.fitsMs, seen.emptyMs};
    const double goneMs = untilGone(decided, reading);
    return {leftOf(limit, decided.adm & COUNT), goneMs < 1 ? 1 : goneMs, goneMs};
  }

  /**
   * The units charged in the last `lastMs` (at most the window). Counts every granule that overlaps them
   * whole.
   */
  double usedInLast(size_t base, const Reading& reading, double lastMs) {
    Ring<Sums>& ring = cells_.ring();
    const double from = std::floor(shape_.position(reading.nowMs - lastMs));
    for (Word tries = 0;; tries++) {
      const Word tick = load(words_, base + TICK);
      const auto behind = static_cast<double>(ring.behind(base, tick, reading));
      const double newest = reading.absoluteTick - behind;
      const double length = std::min(ring.size - std::max(behind, 0.0), newest - from + 1);
      const uint64_t used = length >= 1 ? ring.sumOf(base, tick, static_cast<uint32_t>(length), 0) : 0;
      if (tries == MOST_TRIES || read(words_, base + TICK) == tick) return static_cast<double>(used);
    }
  }

  /**
   * Whole milliseconds from the reading until `cost` (at most `limit`) fits. Ignores a block. NaN if the
   * times are too far apart for this class: then TypeScript computes the answer.
   */
  double untilFits(size_t base, Word cost, Word limit, const Reading& reading) {
    for (Word tries = 0;; tries++) {
      const View view = viewOf(base, reading);
      const double ms = untilRoom(base, view, usedIn(base, view), wholeIn(base, view), limit - cost, reading);
      if (tries == MOST_TRIES || read(words_, base + TICK) == view.tick) return ms;
    }
  }

  /**
   * Whole milliseconds from the reading until a charge of the decision's tick has left the window, by the strict
   * edge.
   * Keeps the last answer, because the charges of one tick all leave at once.
   */
  double untilGone(const Decided& decided, const Reading& reading) {
    const Word tick = decided.tick;
    const double fromMs = reading.nowMs;
    const int64_t behind = shape_.distance(reading.tick, tick);
    const int64_t age = 2 * behind > shape_.modulus ? behind - shape_.modulus : behind;
    const double position = reading.absoluteTick - static_cast<double>(age) + cells_.ring().size;
    if (position != gone_.position || fromMs != gone_.fromMs) {
      gone_ = {position, fromMs, shape_.untilPosition(fromMs, position)};
    }
    return gone_.ms;
  }

 private:
  /** A cell's buckets, seen from a reading. */
  struct View {
    Word tick;
    /** The same tick, not wrapped by the modulus. */
    double newest;
    /** The number of ticks up to `tick` that are in the window. */
    int64_t length;
    /** The sixteenths of the oldest of these ticks that are outside of the window. */
    uint32_t outside;
    /** The end of the window, in granules. */
    double now;
  };

  /** The last answer of `untilGone`. */
  struct Gone {
    double position = std::nan("");
    double fromMs = 0;
    double ms = 0;
  };

  /** Several figures from one view of the cell, as in src/algorithms/window/estimates.ts. */
  struct Foresight {
    uint64_t used;
    double fitsMs;
    double emptyMs;
  };

  Foresight foresee(size_t base, uint64_t room, const Reading& reading) {
    for (Word tries = 0;; tries++) {
      const View view = viewOf(base, reading);
      const uint64_t used = usedIn(base, view);
      const uint64_t whole = shape_.isSmooth ? wholeIn(base, view) : used;
      const double fitsMs = untilRoom(base, view, used, whole, room, reading);
      const double emptyMs = untilEmpty(base, view, whole, reading);
      if (tries == MOST_TRIES || read(words_, base + TICK) == view.tick) return {used, fitsMs, emptyMs};
    }
  }

  /** Milliseconds until at most `room` units count. `used` do now, `whole` with the whole oldest bucket. */
  double untilRoom(size_t base, const View& view, uint64_t used, uint64_t whole, uint64_t room,
                   const Reading& reading) {
    if (used <= room) return 0;
    const int64_t age = lastToLeave(base, view, whole, room);
    if (age == NONE) return 0;
    const double tick = view.newest - static_cast<double>(age);
    double position = tick + cells_.ring().size;
    if (shape_.isSmooth) {
      const Word count = cells_.ring().countAt(base, view.tick, static_cast<uint32_t>(age));
      position = leaves(tick, count, static_cast<double>(room) - static_cast<double>(sumOf(base, view, age)));
    }
    return shape_.untilPosition(reading.nowMs, std::max(position, view.now));
  }

  /** Milliseconds until nothing counts any more, 0 if nothing does. */
  double untilEmpty(size_t base, const View& view, uint64_t whole, const Reading& reading) {
    const int64_t age = lastToLeave(base, view, whole, 0);
    if (age == NONE) return 0;
    const double position = view.newest - static_cast<double>(age) + cells_.ring().size;
    const double ms = shape_.untilPosition(reading.nowMs, position);
    return ms < 0 ? 0 : ms;
  }

  static Word leftOf(Word limit, uint64_t used) {
    return used < limit ? limit - static_cast<Word>(used) : 0;
  }

  View viewOf(size_t base, const Reading& reading) {
    Ring<Sums>& ring = cells_.ring();
    const Word tick = load(words_, base + TICK);
    const int64_t behind = ring.behind(base, tick, reading);
    const double newest = reading.absoluteTick - static_cast<double>(behind);
    const int64_t length = std::max<int64_t>(0, ring.size - std::max<int64_t>(behind, 0));
    const uint32_t outside = shape_.isSmooth && behind >= 0 ? reading.sixteenth : 0;
    const double now = behind < 0 ? newest : reading.absoluteTick + outside / double{SIXTEENTHS};
    return {tick, newest, length, outside, now};
  }

  uint64_t sumOf(size_t base, const View& view, int64_t length) {
    return length > 0 ? cells_.ring().sumOf(base, view.tick, static_cast<uint32_t>(length), 0) : 0;
  }

  /** The units in the view's window, with the whole oldest bucket. */
  uint64_t wholeIn(size_t base, const View& view) { return sumOf(base, view, view.length); }

  /** The units in the view's window, with the part of the oldest bucket that is inside. */
  uint64_t usedIn(size_t base, const View& view) {
    if (view.length == 0) return 0;
    return cells_.ring().sumOf(base, view.tick, static_cast<uint32_t>(view.length), view.outside);
  }

  /** The units that count against a decision at the reading. Repeats until the cell's tick stays the same. */
  uint64_t used(size_t base, const Reading& reading) {
    for (Word tries = 0;; tries++) {
      const View view = viewOf(base, reading);
      const uint64_t used = usedIn(base, view);
      if (tries == MOST_TRIES || read(words_, base + TICK) == view.tick) return used;
    }
  }

  /**
   * The age in ticks of the newest bucket that has to leave before at most `room` units count, or NONE.
   * `whole` units are in the window. With nodes, verifies the result of `find` by sums, which decide: after a
   * thread died, a node may count more than its buckets.
   */
  int64_t lastToLeave(size_t base, const View& view, uint64_t whole, uint64_t room) {
    if (whole <= room) return NONE;
    Ring<Sums>& ring = cells_.ring();
    const uint32_t slot = ring.slot(view.tick);
    const auto units = static_cast<int64_t>(whole - room - 1);
    const int64_t found = ring.sums().find(base, slot, ring.lap(), static_cast<uint32_t>(view.length), units);
    if (!Sums::HAS_NODES) return found;
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

  /** With the smooth edge: the first position at which a bucket counts at most `most` units. */
  double leaves(double tick, Word count, double most) {
    const double outside = std::ceil(SIXTEENTHS - SIXTEENTHS * most / count);
    const double sixteenths = count > most ? std::min(double{SIXTEENTHS}, outside) : 1;
    return tick + cells_.ring().size - 1 + sixteenths / SIXTEENTHS;
  }

  Word* const words_;
  const Shape& shape_;
  Cells<Sums>& cells_;
  Gone gone_;
};

}  // namespace millrace
