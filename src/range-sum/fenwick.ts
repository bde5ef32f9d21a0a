import { BLOCK, BLOCK_BITS } from '../memory/layout.js'
import { Nodes } from './nodes.js'
import { CHARGED } from './range-sum.js'

/**
 * A Fenwick tree (P. M. Fenwick, "A new data structure for cumulative frequency tables", 1994) over blocks of 64 buckets,
 * the other way round and for each lap by itself: node i sums the blocks [i, i + lowbit(i)) of one lap, node 0 all of them.
 * From any block on, whole nodes lead to the end of a lap; of the lap under way, nothing behind the cell's tick is charged.
 * So a window is the tail of one lap and the head of the next, each added up out of whole nodes, and nothing is ever
 * subtracted. A charge is one compare-exchange for each bit set in the number of its block, and two.
 *
 * A node may take its next lap while some of what it counts of the last one is still in the window (node 0 at every turn). Who
 * sums a window that ends before that would miss it: so the cell's tick is read once more after the nodes (`Atomics` and
 * in-order reads keep that order), and if it has moved, the sum does not count.
 */
export class Fenwick extends Nodes {
  charge(base: number, e: number, slot: number, lap: number, cost: number): number {
    const nodes = base + this.nodesAt
    const block = slot >>> BLOCK_BITS
    let node = 0
    for (let rest = block; ; ) {
      const charged = this.chargeNode(base, nodes + node, e, lap, cost, node)
      if (charged !== CHARGED) {
        while (node > 0) {
          node &= node - 1
          this.takeOutOf(nodes + node, lap, cost)
        }
        return charged
      }
      if (rest === 0) return CHARGED
      const bit = 1 << (31 - Math.clz32(rest))
      node |= bit
      rest ^= bit
    }
  }

  takeOut(base: number, slot: number, lap: number, units: number): void {
    const nodes = base + this.nodesAt
    for (let node = slot >>> BLOCK_BITS; ; node &= node - 1) {
      this.takeOutOf(nodes + node, lap, units)
      if (node === 0) return
    }
  }

  roomAbove(base: number, _slot: number, lap: number): number {
    return this.roomOf(base + this.nodesAt, lap) // node 0 counts the most
  }

  protected sumOfBlocks(base: number, from: number, to: number, lap: number): number {
    const nodes = base + this.nodesAt
    let sum = 0
    for (let block = from; block <= to; block += this.#spanOf(block)) sum += this.countOf(nodes + block, lap)
    return sum
  }

  protected findInLap(base: number, from: number, to: number, lap: number): number {
    const end = to + 1
    let slot = from
    while (slot < end) {
      const block = slot >>> BLOCK_BITS
      const isWhole = (slot & (BLOCK - 1)) === 0
      const counted = isWhole ? this.countOf(base + this.nodesAt + block, lap) : 0
      if (isWhole && counted <= this.left) {
        this.left -= counted
        slot += this.#spanOf(block) << BLOCK_BITS
        continue
      }
      const next = Math.min((block + 1) << BLOCK_BITS, end)
      const found = this.findInBuckets(base, slot, next, lap)
      if (found >= 0) return found
      slot = next
    }
    return -1
  }

  protected sweepBlock(base: number, block: number, to: number): void {
    this.sweepNode(base, base + this.nodesAt + block, block << BLOCK_BITS, to, block)
  }

  /** How many blocks a node sums, beyond the end of the ring perhaps. */
  #spanOf(node: number): number {
    return node === 0 ? this.blocks : node & -node
  }
}
