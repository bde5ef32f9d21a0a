/** `checkMany` on packed keys, by the addon or by TypeScript, timed as a server calls it: batch after batch. */
import { createLimiter, type Limiter, type PackedKeys } from 'millrace'
import type { Contender } from './benchmark.js'
import { madeAnew, randomOrder } from './keys.js'
import { LIMIT, WINDOW_MS } from './peers.js'
import { collectGarbage } from './timing.js'

/** As MILLRACE_NATIVE has it: a limiter made under 1 hands batches of every size to the addon. */
export const SIDES = { addon: '1', TypeScript: '0' } as const
export type Side = keyof typeof SIDES

const FILLING = 10_000
/** V8 compiles what a batch calls while it is called often. */
const WARM_UP_BATCHES = 300

export function batches(side: Side, keys: number, size: number): Contender {
  return {
    name: batchesName(side, keys, size),
    measure({ operations, coldOperations }) {
      process.env.MILLRACE_NATIVE = SIDES[side]
      const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: keys })
      if (limiter.stats().native !== (side === 'addon' ? 'addon' : 'none')) throw new Error(`not by ${side}`)
      const keyAt = madeAnew(keys)
      const pack = (count: number, indexOf: (i: number) => number): PackedKeys =>
        limiter.pack(Array.from({ length: count }, (_, i) => keyAt(indexOf(i))))
      for (let from = 0; from < keys; from += FILLING) {
        limiter.checkMany(pack(Math.min(FILLING, keys - from), (i) => from + i))
      }
      const count = Math.max(1, Math.round((keys > 100_000 ? coldOperations : operations) / size))
      const order = randomOrder(keys, count * size)
      const packed = Array.from({ length: count }, (_, batch) => pack(size, (i) => order[batch * size + i]!))
      return { ns: admissionNs(limiter, packed, count * size) }
    },
  }
}

/** Of batches of so many keys in all, while the clock stands. */
export function admissionNs(limiter: Limiter, packed: readonly PackedKeys[], keys: number): number {
  for (let i = 0; i < WARM_UP_BATCHES; i++) limiter.checkMany(packed[i % packed.length]!)
  collectGarbage()
  const before = limiter.stats().allowed
  const start = process.hrtime.bigint()
  for (const batch of packed) limiter.checkMany(batch)
  const elapsed = process.hrtime.bigint() - start
  const admitted = limiter.stats().allowed - before
  if (admitted !== keys) throw new Error(`${admitted} of ${keys} were admitted`)
  return Number(elapsed) / keys
}

export function batchesName(side: Side, keys: number, size: number): string {
  return `${side}, ${keys.toLocaleString('en')} keys, ${size.toLocaleString('en')} a batch`
}

/** Why the addon can't be measured here, or undefined where it can. */
export function addonMissing(): string | undefined {
  const before = process.env.MILLRACE_NATIVE
  delete process.env.MILLRACE_NATIVE
  try {
    const { native } = createLimiter({ limit: 1, window: WINDOW_MS, maxKeys: 1 }).stats()
    return native === 'addon' ? undefined : 'the addon has not been built: npm run build:native'
  } finally {
    if (before !== undefined) process.env.MILLRACE_NATIVE = before
  }
}
