import {
  BLOCK,
  BLOCK_BITS,
  BUCKETS,
  COUNT,
  LAP,
  NODE_COUNT,
  ONE_LAP,
  REFUNDS,
  type Shape,
  TICK,
} from '../memory/layout.js'
import { compareExchange, load, read, readInOrder, type Words } from '../memory/words.js'
import { CHARGED, LATE, type Laps, OVERFLOWN, type RangeSum, SWEEP_LAPS } from './range-sum.js'

/** A node that guards no block. */
export const NO_BLOCK = -1

/**
 * What both structures of nodes share.
 *
 * **A node takes its next lap** by CAS(node -> lap, cost), as a bucket does; but only from a thread whose tick is still the
 * cell's own, read after the node: else the node may be the newer one.
 *
 * **Every block has a node that guards it**: before that one takes another lap, what the block's buckets hold of the old one
 * is taken out. So all that a block's buckets count is of their guard's lap, and below a guard that counts nothing there is
 * nothing: the sweep looks at the nodes, and at buckets only below those that have grown old. (A thread that dies, or stalls
 * for nearly a lap, between its node and its bucket, while others take both to the next lap, may leave a bucket unguarded:
 * its charge would count once more, for a granule, 256 laps later.)
 *
 * A node that would count more than 24 bits refuses, as a bucket does.
 */
export abstract class Nodes implements RangeSum {
  protected readonly words: Words
  protected readonly ring: number
  protected readonly blocks: number
  /** From a cell's base to its first node. */
  protected readonly nodesAt: number
  readonly #laps: Laps

  constructor(words: Words, shape: Shape, laps: Laps) {
    this.words = words
    this.ring = shape.ring
    this.blocks = shape.blocks
    this.nodesAt = BUCKETS + shape.ring
    this.#laps = laps
  }

  abstract charge(base: number, e: number, slot: number, lap: number, cost: number): number
  abstract takeOut(base: number, slot: number, lap: number, units: number): void
  abstract roomAbove(base: number, slot: number, lap: number): number
  /** Counts of the blocks `from` to `to` of one lap, of which nothing behind `to` has been charged unless it ends the ring. */
  protected abstract sumOfBlocks(base: number, from: number, to: number, lap: number): number
  /** The slot from `from` to `to` at which more than `this.left` have been counted, or -1; takes from `left` what was. */
  protected abstract findInLap(base: number, from: number, to: number, lap: number): number
  /** Takes what is too old out of a block, its guard, and whatever else begins with it. */
  protected abstract sweepBlock(base: number, block: number, to: number): void

  /** Of the units that `find` looks for. */
  protected left = 0

  sum(base: number, slot: number, lap: number, length: number): number {
    const from = slot - length + 1
    if (from >= 0) return this.#sumOfLap(base, from, slot, lap)
    const before = this.#sumOfLap(base, from + this.ring, this.ring - 1, (lap - ONE_LAP) & LAP)
    return before + this.#sumOfLap(base, 0, slot, lap)
  }

  find(base: number, slot: number, lap: number, length: number, units: number): number {
    this.left = units
    const from = slot - length + 1
    if (from < 0) {
      const found = this.findInLap(base, from + this.ring, this.ring - 1, (lap - ONE_LAP) & LAP)
      if (found >= 0) return slot - found + this.ring
    }
    const found = length > 0 ? this.findInLap(base, Math.max(from, 0), slot, lap) : -1
    return found < 0 ? found : slot - found
  }

  /** One block for every 64 times as many ticks as it has. */
  sweep(base: number, from: number, hop: number, to: number): void {
    const ticks = SWEEP_LAPS * BLOCK
    const end = Math.floor(((from >>> 0) + hop) / ticks)
    let p = Math.floor((from >>> 0) / ticks) + 1
    if (p > end) return
    p = Math.max(p, end - this.blocks + 1)
    for (; p <= end; p++) this.sweepBlock(base, p % this.blocks, to)
  }

  /** Charges one node; `guarded` is the block that it guards, or NO_BLOCK. */
  protected chargeNode(
    base: number,
    at: number,
    e: number,
    lap: number,
    cost: number,
    guarded: number,
  ): number {
    const { words } = this
    for (;;) {
      let x = read(words, at) // plain: read late, the compare-exchange fails
      let next: number
      if ((x & LAP) === lap) {
        if ((x & NODE_COUNT) + cost > NODE_COUNT) return OVERFLOWN
        next = x + cost
      } else {
        x = load(words, at) // then the tick: see "A node takes its next lap"
        if ((x & LAP) === lap) continue
        if (read(words, base + TICK) !== e) return LATE
        if (guarded !== NO_BLOCK && (x & NODE_COUNT) > 0 && !this.#clean(base, guarded, e, lap)) return LATE
        next = lap | cost
      }
      if (compareExchange(words, at, x, next) === x) return CHARGED
    }
  }

  /** Takes out of one node, if it is still of that lap and counts so many: it does, but for a stall of all 256 laps. */
  protected takeOutOf(at: number, lap: number, units: number): void {
    for (;;) {
      const x = load(this.words, at)
      if ((x & LAP) !== lap || (x & NODE_COUNT) < units) return
      if (compareExchange(this.words, at, x, x - units) === x) return
    }
  }

  /** In order: whoever sums reads the tick afterwards (`fenwick.ts`). */
  protected countOf(at: number, lap: number): number {
    const x = readInOrder(this.words, at)
    return (x & LAP) === lap ? x & NODE_COUNT : 0
  }

  protected roomOf(at: number, lap: number): number {
    return NODE_COUNT - this.countOf(at, lap)
  }

  /** Single buckets as far as the first whole block, and from there on nodes. */
  #sumOfLap(base: number, from: number, to: number, lap: number): number {
    const block = (from + BLOCK - 1) >>> BLOCK_BITS
    const single = this.#sumOfBuckets(base, from, Math.min(block << BLOCK_BITS, to + 1), lap)
    return single + this.sumOfBlocks(base, block, to >>> BLOCK_BITS, lap)
  }

  /** The counts of single buckets, from one slot to before another. */
  #sumOfBuckets(base: number, from: number, end: number, lap: number): number {
    const first = base + BUCKETS
    let sum = 0
    for (let i = first + from; i < first + end; i++) {
      const b = read(this.words, i)
      if ((b & LAP) === lap) sum += b & COUNT
    }
    return sum
  }

  protected findInBuckets(base: number, from: number, end: number, lap: number): number {
    for (let slot = from; slot < end; slot++) {
      const b = read(this.words, base + BUCKETS + slot)
      if ((b & LAP) !== lap) continue
      this.left -= b & COUNT
      if (this.left < 0) return slot
    }
    return -1
  }

  /** What a guard's buckets hold of another lap than e's goes. False: e is late, and they may be the newer ones. */
  #clean(base: number, block: number, e: number, lap: number): boolean {
    const { words } = this
    const first = base + BUCKETS + (block << BLOCK_BITS)
    for (let at = first; at < first + BLOCK; at++) {
      const seen = read(words, at) // plain: what is to be found here was charged a lap ago
      if ((seen & COUNT) === 0 || (seen & LAP) === lap) continue
      const b = load(words, at)
      if (read(words, base + TICK) !== e) return false // after the bucket
      if ((b & LAP) !== lap) compareExchange(words, at, b, (b & LAP) | REFUNDS)
    }
    return true
  }

  /** A node whose lap is neither of the two in the ring goes, and before it what it guards. */
  protected sweepNode(base: number, at: number, firstSlot: number, to: number, guarded: number): void {
    const { words } = this
    const x = load(words, at)
    if ((x & NODE_COUNT) === 0 || (x & LAP) === this.#laps.lapOf(firstSlot, to)) return
    // By the tick read after the node, as for a bucket (`linear.ts`).
    const lap = this.#laps.lapOf(firstSlot, read(words, base + TICK))
    if ((x & LAP) === lap) return
    if (guarded !== NO_BLOCK) this.#sweepBuckets(base, guarded, to)
    compareExchange(words, at, x, lap) // of the newest lap: who still has something to take out here finds it gone
  }

  /** By the lap of the block's first slot: where the cell's tick stands in the block, what is behind it in it goes, too. */
  #sweepBuckets(base: number, block: number, to: number): void {
    const { words } = this
    const firstSlot = block << BLOCK_BITS
    const first = base + BUCKETS + firstSlot
    for (let at = first; at < first + BLOCK; at++) {
      const b = load(words, at)
      if ((b & COUNT) === 0 || (b & LAP) === this.#laps.lapOf(firstSlot, to)) continue
      if ((b & LAP) === this.#laps.lapOf(firstSlot, read(words, base + TICK))) continue
      compareExchange(words, at, b, (b & LAP) | REFUNDS)
    }
  }
}
