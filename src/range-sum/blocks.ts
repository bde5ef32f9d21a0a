import { BLOCK, BLOCK_BITS, type Shape } from '../memory/layout.js'
import type { Words } from '../memory/words.js'
import { NO_BLOCK, Nodes } from './nodes.js'
import { CHARGED, type Laps } from './range-sum.js'

/**
 * Block sums: one node for each block of 64 buckets. With more than 64 blocks in a window there is a second
 * level, with one node for each 64 blocks. A charge takes two or three compare-exchanges. A sum reads at most
 * 63 buckets, 63 nodes, and one node for every 4,096 buckets.
 */
export class Blocks extends Nodes {
  /** Offset of the first node of the second level in a cell, 0 if there is none. */
  readonly #upperAt: number

  constructor(words: Words, shape: Shape, laps: Laps) {
    super(words, shape, laps)
    this.#upperAt = shape.upper > 0 ? this.nodesAt + shape.blocks : 0
  }

  charge(base: number, e: number, slot: number, lap: number, cost: number): number {
    const block = slot >>> BLOCK_BITS
    const upper = base + this.#upperAt + (block >>> BLOCK_BITS)
    if (this.#upperAt > 0) {
      const charged = this.chargeNode(base, upper, e, lap, cost, NO_BLOCK)
      if (charged !== CHARGED) return charged
    }
    const charged = this.chargeNode(base, base + this.nodesAt + block, e, lap, cost, block)
    if (charged !== CHARGED && this.#upperAt > 0) this.takeOutOf(upper, lap, cost)
    return charged
  }

  takeOut(base: number, slot: number, lap: number, units: number): void {
    const block = slot >>> BLOCK_BITS
    this.takeOutOf(base + this.nodesAt + block, lap, units)
    if (this.#upperAt > 0) this.takeOutOf(base + this.#upperAt + (block >>> BLOCK_BITS), lap, units)
  }

  roomAbove(base: number, slot: number, lap: number): number {
    const block = slot >>> BLOCK_BITS
    const room = this.roomOf(base + this.nodesAt + block, lap)
    if (this.#upperAt === 0) return room
    return Math.min(room, this.roomOf(base + this.#upperAt + (block >>> BLOCK_BITS), lap))
  }

  protected sumOfBlocks(base: number, from: number, to: number, lap: number): number {
    let block = from
    let sum = 0
    if (this.#upperAt > 0) {
      for (; block <= to && (block & (BLOCK - 1)) > 0; block++) {
        sum += this.countOf(base + this.nodesAt + block, lap)
      }
      for (; block <= to; block += BLOCK) {
        sum += this.countOf(base + this.#upperAt + (block >>> BLOCK_BITS), lap)
      }
    }
    for (; block <= to; block++) sum += this.countOf(base + this.nodesAt + block, lap)
    return sum
  }

  protected passNode(base: number, block: number, lap: number): number {
    const isUpper = this.#upperAt > 0 && (block & (BLOCK - 1)) === 0
    if (isUpper && this.passes(base + this.#upperAt + (block >>> BLOCK_BITS), lap)) return BLOCK * BLOCK
    return this.passes(base + this.nodesAt + block, lap) ? BLOCK : 0
  }

  protected sweepBlock(base: number, block: number, to: number): void {
    this.sweepNode(base, base + this.nodesAt + block, block << BLOCK_BITS, to, block)
    if (this.#upperAt > 0 && (block & (BLOCK - 1)) === 0) {
      const at = base + this.#upperAt + (block >>> BLOCK_BITS)
      this.sweepNode(base, at, block << BLOCK_BITS, to, NO_BLOCK)
    }
  }
}
