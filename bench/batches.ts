/**
 * `checkMany` on packed keys, in C++ (the addon) or TypeScript, one batch after the other as a server calls
 * it.
 */
import { createLimiter, type Limiter, type PackedKeys, type RuleOptions, type TableOptions } from 'millrace'
import type { Contender, Effort } from './benchmark.js'
import { freshKeys, randomOrder } from './keys.js'
import { LIMIT, WINDOW_MS } from './peers.js'
import { collectGarbage } from './timing.js'

/** Values of MILLRACE_NATIVE. A limiter created under `1` passes batches of every size to the addon. */
export const SIDES = { addon: '1', TypeScript: '0' } as const
export type Side = keyof typeof SIDES

const KEYS_PER_INSERTION = 10_000
/** V8 compiles the code of a batch only after many calls. */
const WARM_UP_BATCHES = 300

export const HUGE_PAGES = ', huge pages'

export function batches(
  side: Side,
  keys: number,
  size: number,
  pages: '' | typeof HUGE_PAGES = '',
): Contender {
  const options = { limit: LIMIT, window: WINDOW_MS, hugePages: pages !== '' }
  return {
    name: batchesName(side, keys, size) + pages,
    measure: (effort) => batchFigures(side, keys, size, options, effort),
  }
}

/** Nanoseconds per admission in batches of `size` keys, of `keys` keys in random order. */
export function batchFigures(
  side: Side,
  keys: number,
  size: number,
  options: RuleOptions & Pick<TableOptions, 'hugePages'>,
  { operations, coldOperations }: Effort,
): { readonly ns: number } {
  process.env.MILLRACE_NATIVE = SIDES[side]
  const limiter = createLimiter({ ...options, maxKeys: keys })
  if (limiter.stats().native !== (side === 'addon' ? 'addon' : 'none'))
    throw new Error(`the limiter does not run in ${side}`)
  const keyAt = freshKeys(keys)
  const pack = (count: number, indexOf: (i: number) => number): PackedKeys =>
    limiter.pack(Array.from({ length: count }, (_, i) => keyAt(indexOf(i))))
  for (let from = 0; from < keys; from += KEYS_PER_INSERTION) {
    limiter.checkMany(pack(Math.min(KEYS_PER_INSERTION, keys - from), (i) => from + i))
  }
  const count = Math.max(1, Math.round((keys > 100_000 ? coldOperations : operations) / size))
  const order = randomOrder(keys, count * size)
  const packed = Array.from({ length: count }, (_, batch) => pack(size, (i) => order[batch * size + i]!))
  return { ns: admissionNs(limiter, packed, count * size) }
}

/** Nanoseconds per admission of batches with `keys` keys in total, while the clock stands still. */
export function admissionNs(limiter: Limiter, packed: readonly PackedKeys[], keys: number): number {
  for (let i = 0; i < WARM_UP_BATCHES; i++) limiter.checkMany(packed[i % packed.length]!)
  collectGarbage()
  const before = limiter.stats().allowed
  const start = process.hrtime.bigint()
  for (const batch of packed) limiter.checkMany(batch)
  const elapsed = process.hrtime.bigint() - start
  const admitted = limiter.stats().allowed - before
  if (admitted !== keys) throw new Error(`${admitted} of ${keys} decisions were admitted`)
  return Number(elapsed) / keys
}

export function batchesName(side: Side, keys: number, size: number): string {
  return `${side}, ${keys.toLocaleString('en')} keys, ${size.toLocaleString('en')} keys per batch`
}

/** Why this machine cannot measure the addon, or undefined if it can. */
export function addonMissing(): string | undefined {
  const before = process.env.MILLRACE_NATIVE
  delete process.env.MILLRACE_NATIVE
  try {
    const { native } = createLimiter({ limit: 1, window: WINDOW_MS, maxKeys: 1 }).stats()
    return native === 'addon' ? undefined : 'the addon is not built; run npm run build:native'
  } finally {
    if (before !== undefined) process.env.MILLRACE_NATIVE = before
  }
}
