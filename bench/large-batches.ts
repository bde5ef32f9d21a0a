/** `checkMany` of packed keys on windows of many granules, by the addon or by TypeScript. */
import { createLimiter, type Limiter, type PackedKeys, type RuleOptions } from 'millrace'
import { admissionNs, SIDES, type Side } from './batches.js'
import type { Contender, Figures } from './benchmark.js'
import { madeAnew, randomOrder } from './keys.js'
import { LIMIT } from './peers.js'
import { collectGarbage } from './timing.js'

const GRANULE_MS = 1_000
type Structure = RuleOptions['rangeSum']
/** A day by the second takes half a megabyte a key. */
const KEYS = 48
const SIZES = [16, 64, 256, 1_024, 4_096] as const

export const LARGE_BATCH_UNITS = {
  ...Object.fromEntries(SIZES.map((size) => [`admit ${size}`, `nanoseconds an admission, ${size} a batch`])),
  turn: `nanoseconds an admission of each of ${KEYS} keys in a granule of its own`,
  sum: `nanoseconds a refusal of each of ${KEYS} keys in a granule of its own, for which its window is summed`,
}
export const LARGE_BATCH_FIGURES = Object.keys(LARGE_BATCH_UNITS)

export function largeBatches(side: Side, granules: number, rangeSum: Structure): Contender {
  return {
    name: largeBatchName(side, granules, rangeSum),
    measure({ operations }) {
      process.env.MILLRACE_NATIVE = SIDES[side]
      const clock = { nowMs: 1e9, now: () => clock.nowMs }
      const make = (limit: number): Limiter => {
        const rule = { limit, window: granules * GRANULE_MS, granularity: GRANULE_MS, maxKeys: KEYS, clock }
        const limiter = createLimiter({ ...rule, ...(rangeSum && { rangeSum }) })
        if (limiter.stats().native !== (side === 'addon' ? 'addon' : 'none'))
          throw new Error(`not by ${side}`)
        limiter.checkMany(every(limiter))
        return limiter
      }
      const figures: Record<string, number> = {}
      for (const size of SIZES) {
        const limiter = make(LIMIT)
        figures[`admit ${size}`] = admissions(limiter, size, operations)
        limiter.close()
      }
      for (const [figure, limit] of [['turn', LIMIT] as const, ['sum', 1] as const]) {
        const limiter = make(limit)
        const turn = () => turns(limiter, clock, granules, operations / KEYS)
        turn()
        collectGarbage()
        figures[figure] = turn()
        limiter.close()
      }
      return figures as Figures
    },
  }
}

export function largeBatchName(side: Side, granules: number, rangeSum: Structure): string {
  return `${side}, ${granules.toLocaleString('en')} granules, ${rangeSum ?? 'one by one'}`
}

const keyAt = madeAnew(KEYS)

function every(limiter: Limiter): PackedKeys {
  return limiter.pack(Array.from({ length: KEYS }, (_, i) => keyAt(i)))
}

/** While the clock stands, of keys in random order. */
function admissions(limiter: Limiter, size: number, operations: number): number {
  const count = Math.max(1, Math.round(operations / size))
  const order = randomOrder(KEYS, count * size)
  const packed = Array.from({ length: count }, (_, batch) =>
    limiter.pack(Array.from({ length: size }, (_, i) => keyAt(order[batch * size + i]!))),
  )
  return admissionNs(limiter, packed, count * size)
}

/** Every key once a granule, for half a window; then a pause until all are as new, and one batch that does not count. */
function turns(limiter: Limiter, clock: { nowMs: number }, granules: number, most: number): number {
  const all = every(limiter)
  const count = Math.floor(Math.min(granules / 2, most))
  let batches = 0
  let ns = 0n
  do {
    clock.nowMs += 3 * granules * GRANULE_MS
    limiter.checkMany(all)
    const start = process.hrtime.bigint()
    for (let i = 0; i < count; i++) {
      clock.nowMs += GRANULE_MS
      limiter.checkMany(all)
    }
    ns += process.hrtime.bigint() - start
    batches += count
  } while (batches < most)
  return Number(ns) / (batches * KEYS)
}
