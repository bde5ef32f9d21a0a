import { again } from '../core/tries.js'
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

/** In place of the guarded block, for a node that guards none. */
export const NO_BLOCK = -1

/**
 * The common part of both structures of nodes.
 *
 * **A node takes its next lap** by CAS(node -> lap, cost), as a bucket does. But the thread's tick must still
 * be the cell's tick, read after the node. Otherwise the node may be the newer one.
 *
 * **Each block has a node that guards it.** Before the guard takes another lap, the old counts of the block's
 * buckets are cleared. So all counts in the buckets have their guard's lap, and a guard that counts nothing
 * has empty buckets. The sweep reads the nodes, and reads buckets only below nodes that have grown old. (A
 * thread may die, or stall for almost a lap, between its node and its bucket. If others meanwhile take both
 * to the next lap, the bucket may stay unguarded. Then its charge would count once more, for a granule, 256
 * laps later.)
 *
 * A charge that needs more than a node's 24 bits is refused, as with a bucket.
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
  /**
   * Sums the blocks `from` to `to` of one lap. Nothing after `to` has been charged, or `to` ends the ring.
   */
  protected abstract sumOfBlocks(base: number, from: number, to: number, lap: number): number
  /**
   * Passes the largest node that begins with this block and does not exceed what `find` has left (`passes`).
   * Returns the number of its slots, or 0 if there is no such node.
   */
  protected abstract passNode(base: number, block: number, lap: number): number
  /** Sweeps a block, its guard, and all other nodes that begin with it. */
  protected abstract sweepBlock(base: number, block: number, to: number): void

  /** The units that `find` must still pass. */
  #left = 0

  sum(base: number, slot: number, lap: number, length: number): number {
    const from = slot - length + 1
    if (from >= 0) return this.#sumOfLap(base, from, slot, lap)
    const before = this.#sumOfLap(base, from + this.ring, this.ring - 1, (lap - ONE_LAP) & LAP)
    return before + this.#sumOfLap(base, 0, slot, lap)
  }

  find(base: number, slot: number, lap: number, length: number, units: number): number {
    this.#left = units
    const from = slot - length + 1
    if (from < 0) {
      const found = this.#findInLap(base, from + this.ring, this.ring - 1, (lap - ONE_LAP) & LAP)
      if (found >= 0) return slot - found + this.ring
    }
    const found = length > 0 ? this.#findInLap(base, Math.max(from, 0), slot, lap) : -1
    return found < 0 ? found : slot - found
  }

  /** Sweeps one block for every 64 * 64 ticks passed: each block once in 64 laps. */
  sweep(base: number, from: number, hop: number, to: number): void {
    const ticks = SWEEP_LAPS * BLOCK
    const end = Math.floor(((from >>> 0) + hop) / ticks)
    let p = Math.floor((from >>> 0) / ticks) + 1
    if (p > end) return
    p = Math.max(p, end - this.blocks + 1)
    for (; p <= end; p++) this.sweepBlock(base, p % this.blocks, to)
  }

  /** Charges one node. `guarded` is the block that it guards, or NO_BLOCK. */
  protected chargeNode(
    base: number,
    at: number,
    e: number,
    lap: number,
    cost: number,
    guarded: number,
  ): number {
    const { words } = this
    for (let tries = 0; ; tries = again(tries)) {
      let x = read(words, at) // plain: if it is late, the compare-exchange fails
      let next: number
      if ((x & LAP) === lap) {
        if ((x & NODE_COUNT) + cost > NODE_COUNT) return OVERFLOWN
        next = x + cost
      } else {
        x = load(words, at) // before the tick: see "A node takes its next lap"
        if ((x & LAP) === lap) continue
        if (read(words, base + TICK) !== e) return LATE
        if (guarded !== NO_BLOCK && (x & NODE_COUNT) > 0 && !this.#clean(base, guarded, e, lap)) return LATE
        next = lap | cost
      }
      if (compareExchange(words, at, x, next) === x) return CHARGED
    }
  }

  /**
   * Takes units out of one node, if it still has that lap and counts them. It does, except after 256 laps.
   */
  protected takeOutOf(at: number, lap: number, units: number): void {
    for (let tries = 0; ; tries = again(tries)) {
      const x = load(this.words, at)
      if ((x & LAP) !== lap || (x & NODE_COUNT) < units) return
      if (compareExchange(this.words, at, x, x - units) === x) return
    }
  }

  /** The read is in order: the caller reads the tick afterwards (`fenwick.ts`). */
  protected countOf(at: number, lap: number): number {
    const x = readInOrder(this.words, at)
    return (x & LAP) === lap ? x & NODE_COUNT : 0
  }

  protected roomOf(at: number, lap: number): number {
    return NODE_COUNT - this.countOf(at, lap)
  }

  /** Sums single buckets up to the first whole block, and nodes from there on. */
  #sumOfLap(base: number, from: number, to: number, lap: number): number {
    const block = (from + BLOCK - 1) >>> BLOCK_BITS
    const single = this.#sumOfBuckets(base, from, Math.min(block << BLOCK_BITS, to + 1), lap)
    return single + this.sumOfBlocks(base, block, to >>> BLOCK_BITS, lap)
  }

  /** Sums single buckets from slot `from` to before `end`. */
  #sumOfBuckets(base: number, from: number, end: number, lap: number): number {
    const first = base + BUCKETS
    let sum = 0
    for (let i = first + from; i < first + end; i++) {
      const b = read(this.words, i)
      if ((b & LAP) === lap) sum += b & COUNT
    }
    return sum
  }

  /** Subtracts a node's count from `left`. Returns false if it exceeds `left`. */
  protected passes(at: number, lap: number): boolean {
    const counted = this.countOf(at, lap)
    if (counted > this.#left) return false
    this.#left -= counted
    return true
  }

  /**
   * The first slot from `from` to `to` whose count exceeds `left`, or -1. Subtracts earlier counts from
   * `left`.
   */
  #findInLap(base: number, from: number, to: number, lap: number): number {
    const end = to + 1
    let slot = from
    while (slot < end) {
      const block = slot >>> BLOCK_BITS
      const passed = (slot & (BLOCK - 1)) === 0 ? this.passNode(base, block, lap) : 0
      if (passed > 0) {
        slot += passed
        continue
      }
      const next = Math.min((block + 1) << BLOCK_BITS, end)
      const found = this.#findInBuckets(base, slot, next, lap)
      if (found >= 0) return found
      slot = next
    }
    return -1
  }

  #findInBuckets(base: number, from: number, end: number, lap: number): number {
    for (let slot = from; slot < end; slot++) {
      const b = read(this.words, base + BUCKETS + slot)
      if ((b & LAP) !== lap) continue
      this.#left -= b & COUNT
      if (this.#left < 0) return slot
    }
    return -1
  }

  /**
   * Clears counts of other laps in a guard's buckets. Returns false if e is late: they may be newer than e's
   * lap.
   */
  #clean(base: number, block: number, e: number, lap: number): boolean {
    const { words } = this
    const first = base + BUCKETS + (block << BLOCK_BITS)
    for (let at = first; at < first + BLOCK; at++) {
      const early = read(words, at) // plain: the counts to clear are a lap old
      if ((early & COUNT) === 0 || (early & LAP) === lap) continue
      const b = load(words, at)
      if (read(words, base + TICK) !== e) return false // after the bucket
      if ((b & LAP) !== lap) compareExchange(words, at, b, (b & LAP) | REFUNDS)
    }
    return true
  }

  /** Clears a node whose lap is not in the ring any more, after the buckets that it guards. */
  protected sweepNode(base: number, at: number, firstSlot: number, to: number, guarded: number): void {
    const { words } = this
    const x = load(words, at)
    if ((x & NODE_COUNT) === 0 || (x & LAP) === this.#laps.lapOf(firstSlot, to)) return
    // The tick is read after the node, as for a bucket (`linear.ts`).
    const lap = this.#laps.lapOf(firstSlot, read(words, base + TICK))
    if ((x & LAP) === lap) return
    if (guarded !== NO_BLOCK) this.#sweepBuckets(base, guarded, to)
    compareExchange(words, at, x, lap) // a thread that still wants to take units out finds another lap
  }

  /**
   * Uses the lap of the first slot: if the cell's tick is in the block, the counts after it are cleared too.
   */
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
