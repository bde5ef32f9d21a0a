// Block sums: one node for every 64 buckets, and in long windows one more for every 64 of these nodes. The
// counterpart of src/range-sum/blocks.ts.
#pragma once

#include <utility>

#include "nodes.h"

namespace millrace {

class Blocks : public Nodes<Blocks> {
 public:
  Blocks(Word* words, const Shape& shape, Laps& laps)
      : Nodes(words, shape, laps), upperAt_(shape.upper > 0 ? nodesAt_ + shape.blocks : 0) {}

  Word charge(size_t base, Word e, uint32_t slot, Word lap, Word cost) {
    const uint32_t block = slot >> BLOCK_BITS;
    if (upperAt_ > 0) {
      const Word charged = chargeNode(base, upperOf(base, block), e, lap, cost, NO_BLOCK);
      if (charged != CHARGED) return charged;
    }
    const Word charged = chargeNode(base, base + nodesAt_ + block, e, lap, cost, block);
    if (charged != CHARGED && upperAt_ > 0) takeOutOf(upperOf(base, block), lap, cost);
    return charged;
  }

  void takeOut(size_t base, uint32_t slot, Word lap, Word units) {
    const uint32_t block = slot >> BLOCK_BITS;
    takeOutOf(base + nodesAt_ + block, lap, units);
    if (upperAt_ > 0) takeOutOf(upperOf(base, block), lap, units);
  }

  void prefetch(size_t base, uint32_t slot) const {
    const uint32_t block = slot >> BLOCK_BITS;
    millrace::prefetch(words_ + base + nodesAt_ + block);
    if (upperAt_ > 0) millrace::prefetch(words_ + upperOf(base, block));
  }

  /** @see Nodes */
  uint64_t sumOfBlocks(size_t base, uint32_t from, uint32_t to, Word lap) const {
    uint32_t block = from;
    uint64_t sum = 0;
    if (upperAt_ > 0) {
      for (; block <= to && !beginsUpper(block); block++) sum += countOf(base + nodesAt_ + block, lap);
      for (; block <= to; block += BLOCK) sum += countOf(upperOf(base, block), lap);
    }
    for (; block <= to; block++) sum += countOf(base + nodesAt_ + block, lap);
    return sum;
  }

  /** @see Nodes */
  int64_t findInLap(size_t base, uint32_t from, uint32_t to, Word lap, int64_t& left) const {
    return findByNodes(base, from, to, lap, left, [&](uint32_t block) -> std::pair<int64_t, uint32_t> {
      if (upperAt_ > 0 && beginsUpper(block)) {
        const int64_t counted = countOf(upperOf(base, block), lap);
        if (counted <= left) return {counted, BLOCK * BLOCK};
      }
      return {countOf(base + nodesAt_ + block, lap), BLOCK};
    });
  }

  /** @see Nodes */
  void sweepBlock(size_t base, uint32_t block, Word to) {
    sweepNode(base, base + nodesAt_ + block, block << BLOCK_BITS, to, block);
    if (upperAt_ == 0 || !beginsUpper(block)) return;
    sweepNode(base, upperOf(base, block), block << BLOCK_BITS, to, NO_BLOCK);
  }

 private:
  /** Whether the block is the first of a node of the second level. */
  static bool beginsUpper(uint32_t block) { return (block & (BLOCK - 1)) == 0; }

  size_t upperOf(size_t base, uint32_t block) const { return base + upperAt_ + (block >> BLOCK_BITS); }

  /** The offset of the first node of the second level from a cell's base. 0 if there is no second level. */
  const size_t upperAt_;
};

}  // namespace millrace
