/**
 * The timed loops. All contenders go through one of two, so that what the harness costs (reading an index, getting
 * the key, counting) is the same for all: `decideAll` for whoever answers at once, `awaitAll` for whoever answers with
 * a promise, awaited one after the other as a middleware does. Only one contender ever runs in a process, so V8 inlines
 * it into the loop.
 */
import type { Figures } from './benchmark.js'
import type { KeyAt } from './keys.js'

/** Answers at once whether it admitted. */
export type Decide<Key> = (key: Key) => boolean

/** Answers with its own promise, as it is: another one around it would be charged to it. */
export interface AsyncDecide<Key, Answer> {
  decide(key: Key): Promise<Answer>
  isAllowed(answer: Answer): boolean
}

/** A contender with its keys. */
export interface Course<Key> {
  readonly keyAt: KeyAt<Key>
  /** Which key each timed decision is for. */
  readonly order: Int32Array
  /** Which keys are to be known before the clock runs; by default those of the warm-up. */
  readonly filled?: Int32Array
}

/**
 * V8 compiles the loop while it is called often, not only from within one long call. With 60 calls a timed loop of
 * 300,000 decisions showed a fifth more than one of 2,000,000, with 200 the same (AMD EPYC Zen 4, Node 20.20,
 * 2026-11-21, `npm run bench -- --case check` with other `FULL_EFFORT`).
 */
const WARM_UP_CALLS = 150
const WARM_UP_OPERATIONS = 5_000

/** Nanoseconds a decision. @throws Error unless exactly `admitted` of the timed decisions are admissions */
export function timeDecisions<Key>(
  course: Course<Key>,
  decide: Decide<Key>,
  admitted = course.order.length,
): Figures {
  const { keyAt, order } = course
  warmUp(course, decide)
  const start = process.hrtime.bigint()
  const count = decideAll(order, 0, order.length, keyAt, decide)
  const elapsed = process.hrtime.bigint() - start
  return nanosecondsEach(elapsed, order.length, count, admitted)
}

/** Makes all keys known and lets V8 compile the loop. */
export function warmUp<Key>({ keyAt, order, filled }: Course<Key>, decide: Decide<Key>): void {
  if (filled) decideAll(filled, 0, filled.length, keyAt, decide)
  for (let call = 0; call < WARM_UP_CALLS; call++) {
    const from = (call * WARM_UP_OPERATIONS) % order.length
    decideAll(order, from, Math.min(from + WARM_UP_OPERATIONS, order.length), keyAt, decide)
  }
  collectGarbage()
}

/** As {@link timeDecisions}, each decision awaited before the next. */
export async function timeAwaited<Key, Answer>(
  { keyAt, order, filled }: Course<Key>,
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
    throw new Error(`timed ${operations} decisions to admit ${admitted}, and ${allowed} were admitted`)
  }
  return { ns: Number(elapsed) / operations }
}

/** What filling left behind is not the timed loop's garbage. Twice: what weak references held goes with the second. */
export function collectGarbage(): void {
  if (!globalThis.gc) throw new Error('run with --expose-gc')
  globalThis.gc()
  globalThis.gc()
}
