// A Fenwick tree over blocks of 64 buckets, separate for each lap. Node i sums the blocks [i, i + lowbit(i)),
// and node 0 sums all blocks. The counterpart of src/range-sum/fenwick.ts, which explains why the caller of
// `sum` reads the cell's tick once more afterwards.
#pragma once

#include <bit>
#include <utility>

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
    forEachNode(base, slot, [&](size_t node) { takeOutOf(node, lap, units); });
  }

  void prefetch(size_t base, uint32_t slot) const {
    forEachNode(base, slot, [&](size_t node) { millrace::prefetch(words_ + node); });
  }

  /** @see Nodes */
  uint64_t sumOfBlocks(size_t base, uint32_t from, uint32_t to, Word lap) const {
    uint64_t sum = 0;
    for (uint32_t block = from; block <= to; block += spanOf(block)) {
      sum += countOf(base + nodesAt_ + block, lap);
    }
    return sum;
  }

  /** @see Nodes */
  int64_t findInLap(size_t base, uint32_t from, uint32_t to, Word lap, int64_t& left) const {
    return findByNodes(base, from, to, lap, left, [&](uint32_t block) -> std::pair<int64_t, uint32_t> {
      return {countOf(base + nodesAt_ + block, lap), spanOf(block) << BLOCK_BITS};
    });
  }

  /** @see Nodes */
  void sweepBlock(size_t base, uint32_t block, Word to) {
    sweepNode(base, base + nodesAt_ + block, block << BLOCK_BITS, to, block);
  }

 private:
  /** Calls `visit` with the index of each node that counts a slot, the smallest node first. */
  template <typename Visit>
  void forEachNode(size_t base, uint32_t slot, Visit visit) const {
    for (uint32_t node = slot >> BLOCK_BITS;; node &= node - 1) {
      visit(base + nodesAt_ + node);
      if (node == 0) return;
    }
  }

  /** The number of blocks that a node sums. It may extend past the end of the ring. */
  uint32_t spanOf(uint32_t node) const {
    return node == 0 ? static_cast<uint32_t>(blocks_) : node & (~node + 1);
  }
};

}  // namespace millrace
