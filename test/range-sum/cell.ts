// A cell as its sums use it, and a second, simple implementation of what the sums must do to its memory.
import { Ring } from '#millrace/algorithms/window/ring.js'
import {
  BUCKETS,
  COUNT,
  LAP,
  NODE_COUNT,
  ONE_LAP,
  REFUNDS,
  type Shape,
  type Sums,
  shapeFor,
  TICK,
} from '#millrace/memory/layout.js'
import { CHARGED, LATE, OVERFLOWN } from '#millrace/range-sum/range-sum.js'
import { nodesAbove } from '../explore/nodes.js'

const GRANULE_MS = 1_000

/** The shipped code on a cell that lies between two others. */
export class Cell {
  readonly shape: Shape
  readonly words: Int32Array
  readonly ring: Ring
  readonly base: number

  constructor(sums: Sums, buckets: number) {
    this.shape = shapeFor(GRANULE_MS * buckets, buckets, 2, sums)
    this.base = this.shape.wayWords
    this.words = new Int32Array(new SharedArrayBuffer(4 * 3 * this.shape.wayWords))
    this.ring = new Ring(this.words, this.shape, 0)
  }

  /** Moves the cell's tick and sweeps. */
  moveTo(tick: number, hop: number): void {
    const from = this.words[this.base + TICK]!
    this.words[this.base + TICK] = tick
    this.ring.sums.sweep(this.base, from, hop, tick)
  }

  charge(tick: number, cost: number): number {
    const slot = this.ring.slot(tick)
    return this.ring.sums.charge(this.base, tick, slot, this.ring.lap, cost)
  }

  takeOut(tick: number, units: number): void {
    this.ring.sums.takeOut(this.base, this.ring.slot(tick), this.ring.lap, units)
  }

  roomAbove(tick: number): number {
    return this.ring.sums.roomAbove(this.base, this.ring.slot(tick), this.ring.lap)
  }

  sum(tick: number, length: number): number {
    return this.ring.sums.sum(this.base, this.ring.slot(tick), this.ring.lap, length)
  }

  find(tick: number, length: number, units: number): number {
    return this.ring.sums.find(this.base, this.ring.slot(tick), this.ring.lap, length, units)
  }
}

/** The expected memory of the cell. */
export class Expected {
  readonly shape: Shape
  readonly words: Int32Array
  readonly base: number

  constructor({ shape, words, base }: Cell) {
    this.shape = shape
    this.words = words.slice()
    this.base = base
  }

  slotOf(tick: number): number {
    return (tick >>> 0) % this.shape.ring
  }

  /** The lap of a slot in the ring that ends in `tick`. */
  lapOf(slot: number, tick: number): number {
    const lap = Math.floor((tick >>> 0) / this.shape.ring)
    return ((slot <= this.slotOf(tick) ? lap : lap - 1) * ONE_LAP) & LAP
  }

  lap(tick: number): number {
    return this.lapOf(this.slotOf(tick), tick)
  }

  bucketAt(slot: number): number {
    return this.base + BUCKETS + slot
  }

  nodeAt(node: number): number {
    return this.base + BUCKETS + this.shape.ring + node
  }

  /** The nodes above the bucket of a tick, the largest first. */
  nodes(tick: number): number[] {
    return nodesAbove(this.shape, this.slotOf(tick)).reverse()
  }

  /** The slots of the block that the node guards; empty if the node guards no block. */
  guarded(node: number): number[] {
    const { ring, blocks } = this.shape
    if (node >= blocks) return []
    const span = ring / blocks
    return Array.from({ length: span }, (_, i) => span * node + i)
  }

  charge(tick: number, cost: number): number {
    const lap = this.lap(tick)
    const isLate = this.words[this.base + TICK] !== tick
    const charged: number[] = []
    for (const node of this.nodes(tick)) {
      const at = this.nodeAt(node)
      const x = this.words[at]!
      const isOfLap = (x & LAP) === lap
      const answer =
        !isOfLap && isLate ? LATE : isOfLap && (x & NODE_COUNT) + cost > NODE_COUNT ? OVERFLOWN : CHARGED
      if (answer !== CHARGED) {
        for (const other of charged) this.words[other]! -= cost
        return answer
      }
      if (!isOfLap && (x & NODE_COUNT) > 0) {
        for (const slot of this.guarded(node)) this.empty(this.bucketAt(slot), [lap])
      }
      this.words[at] = isOfLap ? x + cost : lap | cost
      charged.push(at)
    }
    return CHARGED
  }

  takeOut(tick: number, units: number): void {
    for (const node of this.nodes(tick)) {
      const x = this.words[this.nodeAt(node)]!
      if ((x & LAP) === this.lap(tick) && (x & NODE_COUNT) >= units) this.words[this.nodeAt(node)]! -= units
    }
  }

  /** The count of a node or a bucket, 0 if it is of another lap. */
  counted(at: number, lap: number, mask: number): number {
    const x = this.words[at]!
    return (x & LAP) === lap ? x & mask : 0
  }

  /** Sweeps after a move from `from` by `hop` to `to`. The cell's tick may have moved on since. */
  sweep(from: number, hop: number, to: number): void {
    const { shape, words } = this
    const own = words[this.base + TICK]!
    const units = shape.sums === 'linear' ? shape.ring : shape.blocks
    for (const unit of turns(from, hop, shape.ring / units, units)) {
      if (shape.sums === 'linear') {
        this.empty(this.bucketAt(unit), [this.lapOf(unit, to), this.lapOf(unit, own)])
        continue
      }
      const first = (unit * shape.ring) / shape.blocks
      const laps = [this.lapOf(first, to), this.lapOf(first, own)]
      // The node of the second level that begins with this block is swept together with it.
      const upper = (unit * shape.upper) / shape.blocks
      for (const node of Number.isInteger(upper) && shape.upper > 0 ? [unit, shape.blocks + upper] : [unit]) {
        const x = words[this.nodeAt(node)]!
        if ((x & NODE_COUNT) === 0 || laps.includes(x & LAP)) continue
        for (const slot of this.guarded(node)) this.empty(this.bucketAt(slot), laps)
        words[this.nodeAt(node)] = laps[1]!
      }
    }
  }

  /** Clears and marks a bucket whose count is of none of these laps. */
  empty(at: number, laps: readonly number[]): void {
    const b = this.words[at]!
    if ((b & COUNT) > 0 && !laps.includes(b & LAP)) this.words[at] = (b & LAP) | REFUNDS
  }
}

/**
 * The units that are due on the way. A unit has `ticks` ticks, a ring has `many` units; each is due once in
 * 64 laps.
 */
function turns(from: number, hop: number, ticks: number, many: number): number[] {
  const due: number[] = []
  for (let i = Math.floor((from >>> 0) / (64 * ticks)) + 1; 64 * ticks * i <= (from >>> 0) + hop; i++)
    due.push(i % many)
  return [...new Set(due)]
}
