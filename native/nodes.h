// What Blocks and Fenwick share. The counterpart of src/range-sum/nodes.ts, which explains how a node takes
// its next lap and which node guards a block. Change both files together.
#pragma once

#include "range_sum.h"

namespace millrace {

/**
 * `Structure` has `charge`, `takeOut` and `prefetch`, and these for this class:
 *
 *     sumOfBlocks  the counts of the blocks `from` to `to` in one lap. Nothing after `to` has been charged in
 *                  that lap, unless `to` ends the ring
 *     findInLap    the slot from `from` to `to` at which more than `left` units have been counted, or NONE.
 *                  Subtracts the units that it counted from `left`
 *     sweepBlock   removes what is too old from a block, its guard, and every other node that begins with
 *                  this block
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

  /** Visits one block for every SWEEP_LAPS blocks of ticks passed. */
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
      : words_(words),
        ring_(shape.ring),
        blocks_(shape.blocks),
        nodesAt_(BUCKETS + shape.ring),
        laps_(laps) {}

  /** Charges one node. `guarded` is the block that the node guards, or NO_BLOCK. */
  Word chargeNode(size_t base, size_t at, Word e, Word lap, Word cost, uint32_t guarded) {
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      Word x = read(words_, at);  // relaxed: a stale value makes the compare-exchange fail
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
    return LATE;
  }

  /**
   * Takes units out of one node if the node is still of that lap. Such a node counts at least as many units,
   * unless this thread stalled for 256 laps.
   */
  void takeOutOf(size_t at, Word lap, Word units) {
    for (Word tries = 0; tries < MOST_TRIES; tries++) {
      const Word x = load(words_, at);
      if ((x & LAP) != lap || (x & NODE_COUNT) < units) return;
      if (compareExchange(words_, at, x, x - units) == x) return;
    }
  }

  /** Reads in order, because the caller of `sum` reads the tick afterwards (fenwick.ts). */
  Word countOf(size_t at, Word lap) const {
    const Word x = readInOrder(words_, at);
    return (x & LAP) == lap ? x & NODE_COUNT : 0;
  }

  /** Adds single buckets up to the first whole block, and nodes from there on. */
  uint64_t sumOfLap(size_t base, uint32_t from, uint32_t to, Word lap) const {
    const uint32_t block = (from + BLOCK - 1) >> BLOCK_BITS;
    const uint64_t single = sumOfBuckets(base, from, std::min(block << BLOCK_BITS, to + 1), lap);
    return single + structure().sumOfBlocks(base, block, to >> BLOCK_BITS, lap);
  }

  /** The units in the buckets of the slots `from` to before `end`. */
  uint64_t sumOfBuckets(size_t base, uint32_t from, uint32_t end, Word lap) const {
    uint64_t sum = 0;
    for (size_t i = base + BUCKETS + from; i < base + BUCKETS + end; i++) {
      const Word b = read(words_, i);
      if ((b & LAP) == lap) sum += b & COUNT;
    }
    return sum;
  }

  /**
   * Implements `findInLap`: skips whole nodes, and searches the buckets of a block where a node counts too
   * much. `nodeAt(block)` returns a node that begins with this block, as its count and its number of slots.
   */
  template <typename NodeAt>
  int64_t findByNodes(size_t base, uint32_t from, uint32_t to, Word lap, int64_t& left, NodeAt nodeAt) const {
    const uint32_t end = to + 1;
    for (uint32_t slot = from; slot < end;) {
      const uint32_t block = slot >> BLOCK_BITS;
      if ((slot & (BLOCK - 1)) == 0) {
        const auto [counted, span] = nodeAt(block);
        if (counted <= left) {
          left -= counted;
          slot += span;
          continue;
        }
      }
      const uint32_t next = std::min((block + 1) << BLOCK_BITS, end);
      const int64_t found = findInBuckets(base, slot, next, lap, left);
      if (found != NONE) return found;
      slot = next;
    }
    return NONE;
  }

  /**
   * Clears a node whose lap has left the ring. Clears the block that it guards before that. The node gets the
   * newest lap, so a thread that still has units to take out of it finds another lap and leaves it alone.
   */
  void sweepNode(size_t base, size_t at, uint32_t firstSlot, Word to, uint32_t guarded) {
    const Word x = load(words_, at);
    if ((x & NODE_COUNT) == 0 || (x & LAP) == laps_.lapOf(firstSlot, to)) return;
    // The tick is read after the node, as `Linear::sweep` reads it after a bucket.
    const Word lap = laps_.lapOf(firstSlot, read(words_, base + TICK));
    if ((x & LAP) == lap) return;
    if (guarded != NO_BLOCK) sweepBuckets(base, guarded, to);
    compareExchange(words_, at, x, lap);
  }

  Word* const words_;
  const uint32_t ring_;
  const int64_t blocks_;
  /** The offset of the first node from a cell's base. */
  const size_t nodesAt_;

 private:
  const Structure& structure() const { return *static_cast<const Structure*>(this); }

  int64_t findInBuckets(size_t base, uint32_t from, uint32_t end, Word lap, int64_t& left) const {
    for (uint32_t slot = from; slot < end; slot++) {
      const Word b = read(words_, base + BUCKETS + slot);
      if ((b & LAP) != lap) continue;
      left -= b & COUNT;
      if (left < 0) return slot;
    }
    return NONE;
  }

  /**
   * Clears the buckets of a guarded block that are of another lap than e's. Returns false if e is late: then
   * these buckets may be newer than e.
   */
  bool clean(size_t base, uint32_t block, Word e, Word lap) {
    const size_t first = base + BUCKETS + (block << BLOCK_BITS);
    for (size_t at = first; at < first + BLOCK; at++) {
      const Word seen = read(words_, at);  // relaxed: the counts to clear were charged a lap ago
      if ((seen & COUNT) == 0 || (seen & LAP) == lap) continue;
      const Word b = load(words_, at);
      if (read(words_, base + TICK) != e) return false;  // after the bucket
      if ((b & LAP) != lap) compareExchange(words_, at, b, (b & LAP) | REFUNDS);
    }
    return true;
  }

  /**
   * Compares each bucket with the lap of the block's first slot. If the cell's tick is inside the block, the
   * buckets after the tick are of the lap before and are cleared, too.
   */
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
