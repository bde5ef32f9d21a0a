// What all algorithms do with the head of a cell: name, admission word, tick, and block. The counterpart of
// src/algorithms/keyed-cells.ts.
#pragma once

#include "prefetch.h"
#include "shape.h"

namespace millrace {

/** The result of `attempt` and `decide`. The last two are only returned by the classes above Cells. */
enum class Result { UNDECIDED, GONE, FULL, ADMITTED, NEEDS_READING, BAD_COST };

/** A key's fingerprint. In `hi`, only the bits of HASH count. */
struct Name {
  Word lo;
  Word hi;
};

/** The state of the cell that a decision left or saw. */
struct Decided {
  /** The cell's tick. An admitted cost was charged in it. */
  Word tick;
  /** The stamp of the charge (src/algorithms/window/refund-marks.ts), which only a window of buckets has. */
  Word stamp;
  /** The admission word. Estimates compare it to see whether the cell has changed since. */
  Word adm;
  /** UNTIL, if a block refused. */
  Word until;
};

class KeyedCells {
 public:
  /** The last decision. */
  const Decided& decided() const { return decided_; }

  size_t base(size_t way) const { return shape_.waysAt + way * shape_.wayWords; }

  /** Whether the way is LIVE and the key's, by this record. Reads the name after the admission word `v`. */
  bool isOf(Word v, size_t way, Name name) const {
    if ((v & STATE) != LIVE || read(words_, NAMES_AT + way) != name.lo) return false;
    return read(words_, base(way) + HI) == ((name.hi & HASH) | shape_.record);
  }

  /** Whether no operation on the way has ended since its admission word was `v` and its tick `e`. */
  bool isUnchanged(size_t way, Name name, Word v, Word e) const {
    return load(words_, base(way) + ADM) == v && isCurrent(v, way, name, e);
  }

  /**
   * The same after the caller has read the way's buckets. The result is only meaningful if `isUnchanged`
   * returned true before these reads.
   */
  bool isStillUnchanged(size_t way, Word v, Word e) const {
    const size_t base = this->base(way);
    return isStill(words_, base + ADM, v) && read(words_, base + TICK) == e;
  }

  /** Sets `decided` to the admission word `v` and the way's tick, without a decision. */
  void see(size_t way, Word v) { full(v, read(words_, base(way) + TICK)); }

 protected:
  KeyedCells(Word* words, const Shape& shape) : words_(words), shape_(shape) {}

  Result full(Word v, Word e) {
    decided_.adm = v;
    decided_.tick = e;
    return Result::FULL;
  }

  /** Whether the cell's tick is `e`, and the way the key's. */
  bool isCurrent(Word v, size_t way, Name name, Word e) const {
    return read(words_, base(way) + TICK) == e && isOf(v, way, name);
  }

  /** Loads UNTIL and keeps it in `decided`. */
  Word untilOf(size_t base) { return decided_.until = load(words_, base + UNTIL); }

  /** Whether the time `until`, a word of UNTIL, is still to come. */
  bool isBefore(double nowMs, Word until) const {
    if (until == FOR_EVER) return true;
    const double since = (nowMs - shape_.originMs) * PER_SECOND / 1000;
    const double whole = std::floor(since);
    // The distance is computed in 32 bits, because UNTIL wraps every 8.5 years.
    const auto left = static_cast<int32_t>(until - static_cast<Word>(static_cast<int64_t>(whole)));
    return left - (since - whole) > 0;
  }

  Word* const words_;
  const Shape& shape_;
  Decided decided_{};
};

}  // namespace millrace
