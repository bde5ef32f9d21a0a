/** What a charge comes to that is none, in place of a bucket: no bucket looks so, their counts being 0. */
export const LATE = 0 // the cell's tick has moved on
export const OVERFLOWN = -(2 ** 31) // something would count more than it can: charges under way and penalties do that
/** Of nodes. */
export const CHARGED = 1

/**
 * The sums of a cell's buckets over any part of the window: one by one (`linear.ts`), or with the help of nodes above the
 * buckets, which bear a lap as the buckets do.
 *
 * A charge goes from the largest node down to the bucket, and is taken out from the bucket up: so nobody who sums ever misses
 * what was admitted. Buckets are charged by `algorithms/`, which has its own reasons for how; here is what stands above.
 *
 * A place in the ring is given as `slot` and `lap`, those of a tick at the end of the window: the cell's own or a later one.
 * That nothing later has been charged is what lets a node count whole that ends behind it. `length` ticks up to that one are
 * meant, at most one more than a window has.
 */
export interface RangeSum {
  /** Charges the nodes above the bucket of tick `e`, the largest first: CHARGED, or LATE or OVERFLOWN and none. */
  charge(base: number, e: number, slot: number, lap: number, cost: number): number
  /** Takes `units` out of them, the smallest first: they are out of the bucket. */
  takeOut(base: number, slot: number, lap: number, units: number): void
  /** How much more those nodes can count. */
  roomAbove(base: number, slot: number, lap: number): number
  /** What was counted in the `length` ticks up to this place. */
  sum(base: number, slot: number, lap: number, length: number): number
  /**
   * How many ticks before this place the bucket is in which, from the oldest of the `length` ticks on, the count comes to
   * be more than `units`: when that one leaves the window, more than `units` have. -1 where there is none.
   */
  find(base: number, slot: number, lap: number, length: number, units: number): number
  /** The sweep: takes out what is too old, for a tick that moved `hop` on from `from` to `to`. */
  sweep(base: number, from: number, hop: number, to: number): void
}

/** What the sweep must know of the ring. */
export interface Laps {
  /** The lap that a slot has in the ring that ends in `tick`. */
  lapOf(slot: number, tick: number): number
}

/** Slots, or blocks, are swept every 64 laps, long before their lap comes round at 256. */
export const SWEEP_LAPS = 64
