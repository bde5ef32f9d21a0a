/**
 * Returned instead of a bucket's word if nothing was charged. No charged bucket equals one, because their
 * counts are 0.
 */
export const LATE = 0 // the cell's tick has moved on
export const OVERFLOWN = -(2 ** 31) // a bucket or node is full: charges under way and penalties cause it
/** All nodes are charged. */
export const CHARGED = 1

/**
 * Sums a cell's buckets over any part of the window: bucket by bucket (`linear.ts`), or with nodes, which
 * bear a lap as the buckets do.
 *
 * A charge goes from the largest node down to the bucket. It is taken out from the bucket up. So a sum never
 * misses an admitted unit. `algorithms/` charges the buckets, with its own reasons. This interface charges
 * the nodes.
 *
 * `slot` and `lap` are those of a tick at the end of the window: the cell's tick or a later one. Nothing
 * later has been charged, so a node that ends after it may count whole. `length` is a number of ticks that
 * end with that one, at most n + 1.
 */
export interface RangeSum {
  /**
   * Charges the nodes of tick `e`, the largest first. Returns CHARGED, or if it charged none, LATE or
   * OVERFLOWN.
   */
  charge(base: number, e: number, slot: number, lap: number, cost: number): number
  /** Takes `units` out of the nodes, the smallest first. The caller has taken them out of the bucket. */
  takeOut(base: number, slot: number, lap: number, units: number): void
  /** The units for which all nodes of the slot have room. */
  roomAbove(base: number, slot: number, lap: number): number
  /** The units in the `length` ticks. */
  sum(base: number, slot: number, lap: number, length: number): number
  /**
   * Adds up the `length` ticks from the oldest on. Returns the age, in ticks, of the bucket at which the
   * count exceeds `units`, or -1. When that bucket leaves the window, more than `units` have left it.
   */
  find(base: number, slot: number, lap: number, length: number, units: number): number
  /** Sweeps after the cell's tick has moved by `hop`, from `from` to `to`. */
  sweep(base: number, from: number, hop: number, to: number): void
}

/** What the sweep needs from the ring. */
export interface Laps {
  /** The lap of a slot if the cell's tick is `tick`. */
  lapOf(slot: number, tick: number): number
}

/** Each slot or block is swept once in 64 laps, long before its lap number returns after 256. */
export const SWEEP_LAPS = 64
