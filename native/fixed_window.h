// Counts in windows that follow each other. The counterpart of src/algorithms/word/fixed-window.ts.
#pragma once

#include "word_cells.h"

namespace millrace {

class FixedWindow {
 public:
  explicit FixedWindow(const Shape& shape) : shape_(shape) {}

  /** Whether the cell's tick stays. One of a window without units moves: the window begins with the next charge. */
  bool stays(Word v) const { return (v & METER) != 0; }

  bool isPresent(Word v, Word w, const Reading& reading) const {
    return isSettled(w) && reading.tick - tickOf(w) < (stays(v) ? shape_.buckets : 1);
  }

  bool isOver(int64_t behind) const { return behind >= shape_.buckets; }
  bool isBehind(Word, Word) const { return false; }
  Word emptyAt(Word) const { return 0; }

  /** The word with `cost` more, or `v` itself if there is no room. */
  Word charged(Word v, Word, Word cost, Word limit, const Reading&) const {
    return (v & METER) + cost > limit ? v : v + cost;
  }

  Word unitsAt(Word v, Word w, const Reading& reading, Word) const {
    return ticksSince(shape_, w, reading) >= shape_.buckets ? 0 : v & METER;
  }

  /** Whole milliseconds after the reading until `cost` fits. NaN if the times are too far apart. */
  double untilRoom(Word v, Word w, Word cost, Word limit, const Reading& reading) const {
    return (v & METER) + cost > limit ? untilEnd(w, reading) : 0;
  }

  /** The same until nothing counts. */
  double untilOver(Word v, Word w, const Reading& reading) const {
    return (v & METER) == 0 ? 0 : untilEnd(w, reading);
  }

 private:
  double untilEnd(Word w, const Reading& reading) const {
    const auto age = static_cast<double>(ticksSince(shape_, w, reading));
    const double ms = shape_.untilPosition(reading.nowMs, reading.absoluteTick - age + shape_.buckets);
    return ms < 0 ? 0 : ms;
  }

  const Shape& shape_;
};

}  // namespace millrace
