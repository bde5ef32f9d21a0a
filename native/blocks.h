// Block sums: one node for every 64 buckets, and above 64 of those one for each 64 of them. src/range-sum/blocks.ts.
#pragma once

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

  void fetch(size_t base, uint32_t slot) const {
    const uint32_t block = slot >> BLOCK_BITS;
    prefetch(words_ + base + nodesAt_ + block);
    if (upperAt_ > 0) prefetch(words_ + upperOf(base, block));
  }

  /** @see Nodes */
  uint64_t sumOfBlocks(size_t base, uint32_t from, uint32_t to, Word lap) const {
    uint32_t block = from;
    uint64_t sum = 0;
    if (upperAt_ > 0) {
      for (; block <= to && (block & (BLOCK - 1)) > 0; block++) sum += countOf(base + nodesAt_ + block, lap);
      for (; block <= to; block += BLOCK) sum += countOf(upperOf(base, block), lap);
    }
    for (; block <= to; block++) sum += countOf(base + nodesAt_ + block, lap);
    return sum;
  }

  /** @see Nodes */
  int64_t findInLap(size_t base, uint32_t from, uint32_t to, Word lap, int64_t& left) const {
    const uint32_t end = to + 1;
    for (uint32_t slot = from; slot < end;) {
      const uint32_t block = slot >> BLOCK_BITS;
      uint32_t span = (slot & (BLOCK - 1)) > 0 ? 0 : BLOCK;
      size_t node = base + nodesAt_ + block;
      const bool beginsUpper = span > 0 && upperAt_ > 0 && (block & (BLOCK - 1)) == 0;
      if (beginsUpper && countOf(upperOf(base, block), lap) <= left) {
        node = upperOf(base, block);
        span = BLOCK * BLOCK;
      }
      const int64_t counted = span > 0 ? countOf(node, lap) : 0;
      if (span > 0 && counted <= left) {
        left -= counted;
        slot += span;
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
    if (upperAt_ == 0 || (block & (BLOCK - 1)) > 0) return;
    sweepNode(base, upperOf(base, block), block << BLOCK_BITS, to, NO_BLOCK);
  }

 private:
  size_t upperOf(size_t base, uint32_t block) const { return base + upperAt_ + (block >> BLOCK_BITS); }

  /** From a cell's base to its first node of the second level; 0 where there are none. */
  const size_t upperAt_;
};

}  // namespace millrace
