// What both structures of nodes share: src/range-sum/nodes.ts, which tells how a node takes its next lap, and what guards a
// block. Whatever is changed here is changed there.
#pragma once

#include "range_sum.h"

namespace millrace {

/**
 * `Structure` has charge, takeOut and fetch, and for this one
 *
 *     sumOfBlocks  counts of the blocks `from` to `to` of one lap, of which nothing behind `to` has been charged unless it
 *                  ends the ring
 *     findInLap    the slot of two at which more than `left` have been counted, or NONE; takes from `left` what was
 *     sweepBlock   takes what is too old out of a block, its guard, and whatever else begins with it
 */
template <typename Structure>
class Nodes {
 public:
  static constexpr bool HAS_NODES = true;

  uint64_t sum(size_t base, uint32_t slot, Word lap, uint32_t length) const {
    if (length <= slot + 1) return sumOfLap(base, slot + 1 - length, slot, lap);
    const uint64_t before = sumOfLap(base, slot + 1 + ring_ - length, ring_ - 1, lap - ONE_LAP);
    return before + sumOfLap(base, 0, slot, lap);
  }

  int64_t find(size_t base, uint32_t slot, Word lap, uint32_t length, int64_t left) const {
    const int64_t from = int64_t{slot} - length + 1;
    if (from < 0) {
      const auto first = static_cast<uint32_t>(from + ring_);
      const int64_t found = structure().findInLap(base, first, ring_ - 1, lap - ONE_LAP, left);
      if (found != NONE) return slot - found + ring_;
    }
    if (length == 0) return NONE;
    const auto first = static_cast<uint32_t>(std::max<int64_t>(from, 0));
    const int64_t found = structure().findInLap(base, first, slot, lap, left);
    return found == NONE ? NONE : slot - found;
  }

  /** One block for every 64 times as many ticks as it has. */
  void sweep(size_t base, Word from, int64_t hop, Word to) {
    constexpr int64_t TICKS = int64_t{SWEEP_LAPS} * BLOCK;
    const int64_t end = (int64_t{from} + hop) / TICKS;
    int64_t p = from / TICKS + 1;
    if (p > end) return;
    for (p = std::max(p, end - blocks_ + 1); p <= end; p++) {
      static_cast<Structure*>(this)->sweepBlock(base, static_cast<uint32_t>(p % blocks_), to);
    }
  }

 protected:
  Nodes(Word* words, const Shape& shape, Laps& laps)
      : words_(words), ring_(shape.ring), blocks_(shape.blocks), nodesAt_(BUCKETS + shape.ring), laps_(laps) {}

  /** Charges one node; `guarded` is the block that it guards, or NO_BLOCK. */
  Word chargeNode(size_t base, size_t at, Word e, Word lap, Word cost, uint32_t guarded) {
    for (;;) {
      Word x = read(words_, at);  // relaxed: read late, the compare-exchange fails
      Word next;
      if ((x & LAP) == lap) {
        if ((x & NODE_COUNT) + cost > NODE_COUNT) return OVERFLOWN;
        next = x + cost;
      } else {
        x = load(words_, at);  // then the tick: see "A node takes its next lap" in nodes.ts
        if ((x & LAP) == lap) continue;
        if (read(words_, base + TICK) != e) return LATE;
        if (guarded != NO_BLOCK && (x & NODE_COUNT) > 0 && !clean(base, guarded, e, lap)) return LATE;
        next = lap | cost;
      }
      if (compareExchange(words_, at, x, next) == x) return CHARGED;
    }
  }

  /** Takes out of one node, if it is still of that lap and counts so many: it does, but for a stall of all 256 laps. */
  void takeOutOf(size_t at, Word lap, Word units) {
    for (;;) {
      const Word x = load(words_, at);
      if ((x & LAP) != lap || (x & NODE_COUNT) < units) return;
      if (compareExchange(words_, at, x, x - units) == x) return;
    }
  }

  /** In order: whoever sums reads the tick afterwards (fenwick.ts). */
  Word countOf(size_t at, Word lap) const {
    const Word x = readInOrder(words_, at);
    return (x & LAP) == lap ? x & NODE_COUNT : 0;
  }

  /** Single buckets as far as the first whole block, and from there on nodes. */
  uint64_t sumOfLap(size_t base, uint32_t from, uint32_t to, Word lap) const {
    const uint32_t block = (from + BLOCK - 1) >> BLOCK_BITS;
    const uint64_t single = sumOfBuckets(base, from, std::min(block << BLOCK_BITS, to + 1), lap);
    return single + structure().sumOfBlocks(base, block, to >> BLOCK_BITS, lap);
  }

  /** The counts of single buckets, from one slot to before another. */
  uint64_t sumOfBuckets(size_t base, uint32_t from, uint32_t end, Word lap) const {
    uint64_t sum = 0;
    for (size_t i = base + BUCKETS + from; i < base + BUCKETS + end; i++) {
      const Word b = read(words_, i);
      if ((b & LAP) == lap) sum += b & COUNT;
    }
    return sum;
  }

  int64_t findInBuckets(size_t base, uint32_t from, uint32_t end, Word lap, int64_t& left) const {
    for (uint32_t slot = from; slot < end; slot++) {
      const Word b = read(words_, base + BUCKETS + slot);
      if ((b & LAP) != lap) continue;
      left -= b & COUNT;
      if (left < 0) return slot;
    }
    return NONE;
  }

  /** A node whose lap is neither of the two in the ring goes, and before it what it guards. */
  void sweepNode(size_t base, size_t at, uint32_t firstSlot, Word to, uint32_t guarded) {
    const Word x = load(words_, at);
    if ((x & NODE_COUNT) == 0 || (x & LAP) == laps_.lapOf(firstSlot, to)) return;
    // By the tick read after the node, as for a bucket (plain.h).
    const Word lap = laps_.lapOf(firstSlot, read(words_, base + TICK));
    if ((x & LAP) == lap) return;
    if (guarded != NO_BLOCK) sweepBuckets(base, guarded, to);
    compareExchange(words_, at, x, lap);  // of the newest lap: who still has something to take out here finds it gone
  }

  Word* const words_;
  const uint32_t ring_;
  const int64_t blocks_;
  /** From a cell's base to its first node. */
  const size_t nodesAt_;

 private:
  const Structure& structure() const { return *static_cast<const Structure*>(this); }

  /** What a guard's buckets hold of another lap than e's goes. False: e is late, and they may be the newer ones. */
  bool clean(size_t base, uint32_t block, Word e, Word lap) {
    const size_t first = base + BUCKETS + (block << BLOCK_BITS);
    for (size_t at = first; at < first + BLOCK; at++) {
      const Word seen = read(words_, at);  // relaxed: what is to be found here was charged a lap ago
      if ((seen & COUNT) == 0 || (seen & LAP) == lap) continue;
      const Word b = load(words_, at);
      if (read(words_, base + TICK) != e) return false;  // after the bucket
      if ((b & LAP) != lap) compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
    return true;
  }

  /** By the lap of the block's first slot: where the cell's tick stands in the block, what is behind it in it goes, too. */
  void sweepBuckets(size_t base, uint32_t block, Word to) {
    const uint32_t firstSlot = block << BLOCK_BITS;
    const size_t first = base + BUCKETS + firstSlot;
    for (size_t at = first; at < first + BLOCK; at++) {
      const Word b = load(words_, at);
      if ((b & COUNT) == 0 || (b & LAP) == laps_.lapOf(firstSlot, to)) continue;
      if ((b & LAP) == laps_.lapOf(firstSlot, read(words_, base + TICK))) continue;
      compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
  }

  Laps& laps_;
};

}  // namespace millrace
