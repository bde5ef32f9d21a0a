// What sums a cell's buckets is one of three, and each is the contract of src/range-sum/range-sum.ts by these names:
//
//     HAS_NODES   whether there is anything above the buckets
//     charge      what stands above the bucket of a tick, the largest first: CHARGED, or LATE or OVERFLOWN and nothing
//     takeOut     units out of it, the smallest first
//     sum         of the `length` ticks up to a place in the ring, given as `slot` and `lap`
//     find        how many ticks before a place that tick is at which more than so many units have been counted, or NONE
//     sweep       the broom
//     fetch       asks for the memory that a charge needs above the bucket
//
// Which one it is stands in the type of whatever is made of it, so that a cell without nodes pays nothing for those that have
// some.
#pragma once

#include <algorithm>

#include "shape.h"

namespace millrace {

/** In place of a bucket that was looked for. */
inline constexpr int64_t NONE = -1;

/** Where ticks are in the ring. */
class Laps {
 public:
  explicit Laps(uint32_t slots) : slots_(slots) {}

  /** The slot of a tick; `lap` then says its lap. Most calls ask for the tick of the call before. */
  uint32_t slot(Word tick) {
    if (tick != locatedTick_) {
      locatedTick_ = tick;
      const Word lap = tick / slots_;
      slot_ = tick - lap * slots_;
      lap_ = lap * ONE_LAP;
    }
    return slot_;
  }

  Word lap() const { return lap_; }

  /** The lap that a slot has in the ring that ends in `tick`. */
  Word lapOf(uint32_t slot, Word tick) { return slot <= this->slot(tick) ? lap_ : lap_ - ONE_LAP; }

 private:
  const uint32_t slots_;
  Word locatedTick_ = 0;
  uint32_t slot_ = 0;
  Word lap_ = 0;
};

#if defined(__GNUC__)
inline void prefetch(const Word* at) { __builtin_prefetch(at, 1); }
#if defined(__x86_64__)
/** As above, from another processor's cache too. Not what the compiler makes of a hint: to those without it, it is no operation. */
inline void prefetchToWrite(const Word* at) { asm volatile("prefetchw %0" : : "m"(*at)); }
#else
inline void prefetchToWrite(const Word* at) { __builtin_prefetch(at, 1); }
#endif
#else
inline void prefetch(const Word*) {}
inline void prefetchToWrite(const Word*) {}
#endif

}  // namespace millrace
