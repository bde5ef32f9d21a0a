// Three classes sum the buckets of a cell: Linear, Blocks and Fenwick. Each has the members of RangeSum in
// src/range-sum/range-sum.ts:
//
//     HAS_NODES   whether there are nodes above the buckets
//     charge      charges the nodes above a tick's bucket, the largest first. Returns CHARGED; or LATE or
//                 OVERFLOWN, and then no node is charged
//     takeOut     takes units out of these nodes, the smallest first
//     sum         the units of the `length` ticks up to a place in the ring, which is given by `slot` and
//                 `lap`
//     find        how many ticks before a place the count from the oldest tick on exceeds the given units, or
//                 NONE
//     sweep       removes counts that are too old, after the cell's tick has moved
//     prefetch    prefetches the nodes that a charge needs
//
// The class is a template parameter of every class above it, so a cell without nodes spends no time on them.
#pragma once

#include <algorithm>

#include "prefetch.h"
#include "shape.h"

namespace millrace {

/** Returned by `find` if there is no such bucket. */
inline constexpr int64_t NONE = -1;

/** Converts a tick to its slot in the ring and its lap. */
class Laps {
 public:
  explicit Laps(uint32_t slots) : slots_(slots) {}

  /** The slot of a tick. Then `lap` returns its lap. Most calls repeat the tick of the call before. */
  uint32_t slot(Word tick) {
    if (tick != locatedTick_) {
      locatedTick_ = tick;
      const Word lap = tick / slots_;
      slot_ = tick - lap * slots_;
      lap_ = lap * ONE_LAP;
    }
    return slot_;
  }

  /** The lap of the tick last given to `slot`, as a bucket holds it. */
  Word lap() const { return lap_; }

  /** The lap of a slot's bucket in the ring that ends in `tick`. */
  Word lapOf(uint32_t slot, Word tick) { return slot <= this->slot(tick) ? lap_ : lap_ - ONE_LAP; }

 private:
  const uint32_t slots_;
  Word locatedTick_ = 0;
  uint32_t slot_ = 0;
  Word lap_ = 0;
};

}  // namespace millrace
