/**
 * The timed loops. Every contender runs in one of two, so that the harness (reading an index, fetching the
 * key, counting) takes the same time for all. `decideAll` is for synchronous contenders. `awaitAll` is for
 * contenders that return a promise; it awaits one after the other, as a middleware does. A process runs only
 * one contender, so V8 inlines it into the loop.
 */
import type { Figures } from './benchmark.js'
import type { KeyAt } from './keys.js'

/** Decides synchronously; true for an admission. */
export type Decide<Key> = (key: Key) => boolean

/** Returns the contender's own promise: a wrapper around it would count as the contender's time. */
export interface AsyncDecide<Key, Answer> {
  decide(key: Key): Promise<Answer>
  isAllowed(answer: Answer): boolean
}

/** The keys of a measurement and their order. */
export interface Workload<Key> {
  readonly keyAt: KeyAt<Key>
  /** The index of the key of each timed decision. */
  readonly order: Int32Array
  /** The keys to insert before the timed decisions. @default those of the warm-up */
  readonly filled?: Int32Array
}

/**
 * Calls of the loop before the timed one: V8 optimizes a function that is called often, not only one that
 * runs long. After 60 calls, a timed loop of 300,000 decisions took a fifth more per decision than one of
 * 2,000,000; after 200, the same (AMD EPYC Zen 4, Node 20.20, 2026-11-21). After 150 calls of 1,000 decisions
 * each, a loop of 300,000 takes as long per decision as one of 2,000,000 after 150 calls of 5,000: fastest of
 * five runs 369 and 402 ns for Millrace, 146 and 141 for the bare Map, 1,325 and 1,389 for
 * rate-limiter-flexible (Intel Xeon 2.5 GHz, Node 20.20, 2026-11-22).
 */
const WARM_UP_CALLS = 150
const WARM_UP_OPERATIONS = 1_000

/**
 * Measures nanoseconds per decision.
 * @throws Error unless exactly `admitted` of the timed decisions are admissions
 */
export function timeDecisions<Key>(
  workload: Workload<Key>,
  decide: Decide<Key>,
  admitted = workload.order.length,
): Figures {
  const { keyAt, order } = workload
  warmUp(workload, decide)
  const start = process.hrtime.bigint()
  const count = decideAll(order, 0, order.length, keyAt, decide)
  const elapsed = process.hrtime.bigint() - start
  return nanosecondsEach(elapsed, order.length, count, admitted)
}

/** Inserts all keys and lets V8 compile the loop. */
export function warmUp<Key>({ keyAt, order, filled }: Workload<Key>, decide: Decide<Key>): void {
  if (filled) decideAll(filled, 0, filled.length, keyAt, decide)
  for (let call = 0; call < WARM_UP_CALLS; call++) {
    const from = (call * WARM_UP_OPERATIONS) % order.length
    decideAll(order, from, Math.min(from + WARM_UP_OPERATIONS, order.length), keyAt, decide)
  }
  collectGarbage()
}

/** Like {@link timeDecisions}; awaits each decision before the next. */
export async function timeAwaited<Key, Answer>(
  { keyAt, order, filled }: Workload<Key>,
  peer: AsyncDecide<Key, Answer>,
): Promise<Figures> {
  if (filled) await awaitAll(filled, 0, filled.length, keyAt, peer)
  for (let call = 0; call < WARM_UP_CALLS; call++) {
    const from = (call * WARM_UP_OPERATIONS) % order.length
    await awaitAll(order, from, Math.min(from + WARM_UP_OPERATIONS, order.length), keyAt, peer)
  }
  collectGarbage()
  const start = process.hrtime.bigint()
  const count = await awaitAll(order, 0, order.length, keyAt, peer)
  const elapsed = process.hrtime.bigint() - start
  return nanosecondsEach(elapsed, order.length, count, order.length)
}

export function decideAll<Key>(
  order: Int32Array,
  from: number,
  to: number,
  keyAt: KeyAt<Key>,
  decide: Decide<Key>,
): number {
  let allowed = 0
  for (let i = from; i < to; i++) if (decide(keyAt(order[i]!))) allowed++
  return allowed
}

export async function awaitAll<Key, Answer>(
  order: Int32Array,
  from: number,
  to: number,
  keyAt: KeyAt<Key>,
  peer: AsyncDecide<Key, Answer>,
): Promise<number> {
  let allowed = 0
  for (let i = from; i < to; i++) if (peer.isAllowed(await peer.decide(keyAt(order[i]!)))) allowed++
  return allowed
}

function nanosecondsEach(elapsed: bigint, operations: number, allowed: number, admitted: number): Figures {
  if (allowed !== admitted) {
    throw new Error(`expected ${admitted} admissions in ${operations} timed decisions, got ${allowed}`)
  }
  return { ns: Number(elapsed) / operations }
}

/**
 * Collects the garbage of the set-up, so that it does not count. The second run collects targets of weak
 * references.
 */
export function collectGarbage(): void {
  if (!globalThis.gc) throw new Error('run with --expose-gc')
  globalThis.gc()
  globalThis.gc()
}
