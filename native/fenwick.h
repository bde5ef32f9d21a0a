// A Fenwick tree over blocks of 64 buckets, for each lap by itself: node i sums the blocks [i, i + lowbit(i)), node 0 all of
// them. src/range-sum/fenwick.ts, which tells why whoever sums has to look at the tick once more afterwards.
#pragma once

#include <bit>

#include "nodes.h"

namespace millrace {

class Fenwick : public Nodes<Fenwick> {
 public:
  Fenwick(Word* words, const Shape& shape, Laps& laps) : Nodes(words, shape, laps) {}

  Word charge(size_t base, Word e, uint32_t slot, Word lap, Word cost) {
    const size_t nodes = base + nodesAt_;
    const uint32_t block = slot >> BLOCK_BITS;
    uint32_t node = 0;
    for (uint32_t rest = block;;) {
      const Word charged = chargeNode(base, nodes + node, e, lap, cost, node);
      if (charged != CHARGED) {
        while (node > 0) {
          node &= node - 1;
          takeOutOf(nodes + node, lap, cost);
        }
        return charged;
      }
      if (rest == 0) return CHARGED;
      const uint32_t bit = std::bit_floor(rest);
      node |= bit;
      rest ^= bit;
    }
  }

  void takeOut(size_t base, uint32_t slot, Word lap, Word units) {
    for (uint32_t node = slot >> BLOCK_BITS;; node &= node - 1) {
      takeOutOf(base + nodesAt_ + node, lap, units);
      if (node == 0) return;
    }
  }

  void fetch(size_t base, uint32_t slot) const {
    for (uint32_t node = slot >> BLOCK_BITS;; node &= node - 1) {
      prefetch(words_ + base + nodesAt_ + node);
      if (node == 0) return;
    }
  }

  /** @see Nodes */
  uint64_t sumOfBlocks(size_t base, uint32_t from, uint32_t to, Word lap) const {
    uint64_t sum = 0;
    for (uint32_t block = from; block <= to; block += spanOf(block)) sum += countOf(base + nodesAt_ + block, lap);
    return sum;
  }

  /** @see Nodes */
  int64_t findInLap(size_t base, uint32_t from, uint32_t to, Word lap, int64_t& left) const {
    const uint32_t end = to + 1;
    for (uint32_t slot = from; slot < end;) {
      const uint32_t block = slot >> BLOCK_BITS;
      const bool isWhole = (slot & (BLOCK - 1)) == 0;
      const int64_t counted = isWhole ? countOf(base + nodesAt_ + block, lap) : 0;
      if (isWhole && counted <= left) {
        left -= counted;
        slot += spanOf(block) << BLOCK_BITS;
        continue;
      }
      const uint32_t next = std::min((block + 1) << BLOCK_BITS, end);
      const int64_t found = findInBuckets(base, slot, next, lap, left);
      if (found != NONE) return found;
      slot = next;
    }
    return NONE;
  }

  /** @see Nodes */
  void sweepBlock(size_t base, uint32_t block, Word to) {
    sweepNode(base, base + nodesAt_ + block, block << BLOCK_BITS, to, block);
  }

 private:
  /** How many blocks a node sums, beyond the end of the ring perhaps. */
  uint32_t spanOf(uint32_t node) const { return node == 0 ? static_cast<uint32_t>(blocks_) : node & (~node + 1); }
};

}  // namespace millrace
