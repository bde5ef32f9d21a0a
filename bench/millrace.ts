/**
 * Millrace as the cases measure it: inline, on its default clock, with the limit that its peers have, its table sized
 * for the keys at work. A larger one is emptier, but its keys lie on more pages: 10,000 keys in a table for the default
 * of 100,000 cost about a sixth more (AMD EPYC Zen 4, Node 20.20, 2026-11-21: `maxKeys` below set to 100,000, then
 * `npm run bench -- --case check`).
 */
import * as published from 'millrace'
import { SIDES } from './batches.js'
import type { KeyAt } from './keys.js'
import { LIMIT, WINDOW_MS } from './peers.js'
import type { Decide } from './timing.js'

export type Millrace = typeof published

/** Decides by keys. */
export function millrace(maxKeys: number, { createLimiter }: Millrace = published): Decide<string> {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys })
  return (key) => limiter.check(key).allowed
}

/** Decides by keys in TypeScript alone; {@link millrace} uses the addon where it is built. */
export function millraceWithoutAddon(maxKeys: number): Decide<string> {
  process.env.MILLRACE_NATIVE = SIDES.TypeScript
  return millrace(maxKeys)
}

/** Decides by handles, made beforehand of the keys in `keyAt`. */
export function millraceHandles(
  keyAt: KeyAt<string>,
  count: number,
  { createLimiter }: Millrace = published,
): { handleAt: KeyAt<published.KeyHandle>; decide: Decide<published.KeyHandle> } {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: count })
  const handles = Array.from({ length: count }, (_, i) => limiter.handle(keyAt(i)))
  return { handleAt: (index) => handles[index]!, decide: (handle) => limiter.check(handle).allowed }
}
