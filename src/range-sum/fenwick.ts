import { BLOCK_BITS } from '../memory/layout.js'
import { Nodes } from './nodes.js'
import { CHARGED } from './range-sum.js'

/**
 * A Fenwick tree (P. M. Fenwick, "A new data structure for cumulative frequency tables", 1994) over blocks of
 * 64 buckets. It is mirrored, and each lap has its own: node i sums the blocks [i, i + lowbit(i)) of one lap,
 * node 0 all of them. From any block on, whole nodes lead to the end of a lap. In the current lap nothing
 * after the cell's tick is charged. So a window is the tail of one lap and the head of the next. Each is
 * added up from whole nodes, and nothing is ever subtracted. A charge takes one compare-exchange for each bit
 * that is set in the number of its block, one for node 0, and one for the bucket.
 *
 * A node may take its next lap while some of its last one is still in the window (node 0 does at each lap). A
 * thread that sums a window that ends before that would miss these counts. So it reads the cell's tick once
 * more, after the nodes, and drops the sum if the tick has moved. Atomic loads and reads in order keep that
 * order.
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

  protected passNode(base: number, block: number, lap: number): number {
    return this.passes(base + this.nodesAt + block, lap) ? this.#spanOf(block) << BLOCK_BITS : 0
  }

  protected sweepBlock(base: number, block: number, to: number): void {
    this.sweepNode(base, base + this.nodesAt + block, block << BLOCK_BITS, to, block)
  }

  /** The number of blocks of a node. It may reach past the end of the ring. */
  #spanOf(node: number): number {
    return node === 0 ? this.blocks : node & -node
  }
}
