/** `checkMany` of packed keys on windows of many buckets, in C++ (the addon) or TypeScript. */
import { createLimiter, type Limiter, type PackedKeys, type RuleOptions } from 'millrace'
import { admissionNs, SIDES, type Side } from './batches.js'
import type { Contender, Figures } from './benchmark.js'
import { freshKeys, randomOrder } from './keys.js'
import { LIMIT } from './peers.js'
import { collectGarbage } from './timing.js'

const BUCKET_MS = 1_000
type Structure = RuleOptions['rangeSum']
/** A window of a day with one-second buckets takes half a megabyte per key. */
const KEYS = 48
const SIZES = [16, 64, 256, 1_024, 4_096] as const

export const LARGE_BATCH_UNITS = {
  ...Object.fromEntries(
    SIZES.map((size) => [`admit ${size}`, `nanoseconds per admission, ${size} keys per batch`]),
  ),
  'admission in a new bucket': `nanoseconds per admission, each of ${KEYS} keys once per bucket`,
  'refusal in a new bucket': `nanoseconds per refusal (sums the window), each of ${KEYS} keys once per bucket`,
}
export const LARGE_BATCH_FIGURES = Object.keys(LARGE_BATCH_UNITS)

export function largeBatches(side: Side, buckets: number, rangeSum: Structure): Contender {
  return {
    name: largeBatchName(side, buckets, rangeSum),
    measure({ operations: most }) {
      const operations = most / 2 // a contender has seven figures
      process.env.MILLRACE_NATIVE = SIDES[side]
      const clock = { nowMs: 1e9, now: () => clock.nowMs }
      const make = (limit: number): Limiter => {
        const rule = { limit, window: buckets * BUCKET_MS, granularity: BUCKET_MS, maxKeys: KEYS, clock }
        const limiter = createLimiter({ ...rule, ...(rangeSum && { rangeSum }) })
        if (limiter.stats().native !== (side === 'addon' ? 'addon' : 'none'))
          throw new Error(`the limiter does not run in ${side}`)
        limiter.checkMany(every(limiter))
        return limiter
      }
      const figures: Record<string, number> = {}
      for (const size of SIZES) {
        const limiter = make(LIMIT)
        figures[`admit ${size}`] = admissions(limiter, size, operations)
        limiter.close()
      }
      for (const [figure, limit] of [
        ['admission in a new bucket', LIMIT] as const,
        ['refusal in a new bucket', 1] as const,
      ]) {
        const limiter = make(limit)
        const measure = () => batchesInNewBuckets(limiter, clock, buckets, operations / KEYS)
        measure()
        collectGarbage()
        figures[figure] = measure()
        limiter.close()
      }
      return figures as Figures
    },
  }
}

export function largeBatchName(side: Side, buckets: number, rangeSum: Structure): string {
  return `${side}, ${buckets.toLocaleString('en')} buckets, ${rangeSum ?? 'linear'}`
}

const keyAt = freshKeys(KEYS)

function every(limiter: Limiter): PackedKeys {
  return limiter.pack(Array.from({ length: KEYS }, (_, i) => keyAt(i)))
}

/** Nanoseconds per admission of keys in random order, while the clock stands still. */
function admissions(limiter: Limiter, size: number, operations: number): number {
  const count = Math.max(1, Math.round(operations / size))
  const order = randomOrder(KEYS, count * size)
  const packed = Array.from({ length: count }, (_, batch) =>
    limiter.pack(Array.from({ length: size }, (_, i) => keyAt(order[batch * size + i]!))),
  )
  return admissionNs(limiter, packed, count * size)
}

/**
 * Nanoseconds per decision, one batch of every key per bucket, for half a window. Then the clock moves until
 * all charges have expired, and one untimed batch follows.
 */
function batchesInNewBuckets(
  limiter: Limiter,
  clock: { nowMs: number },
  buckets: number,
  most: number,
): number {
  const all = every(limiter)
  const count = Math.floor(Math.min(buckets / 2, most))
  let batches = 0
  let ns = 0n
  do {
    clock.nowMs += 3 * buckets * BUCKET_MS
    limiter.checkMany(all)
    const start = process.hrtime.bigint()
    for (let i = 0; i < count; i++) {
      clock.nowMs += BUCKET_MS
      limiter.checkMany(all)
    }
    ns += process.hrtime.bigint() - start
    batches += count
  } while (batches < most)
  return Number(ns) / (batches * KEYS)
}
