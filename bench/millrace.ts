/**
 * Millrace as the cases measure it: inline, on its default clock, with the limit of its peers and a table
 * sized for the keys in use. A larger table is emptier, but its keys lie on more pages: a decision over
 * 10,000 keys takes about a sixth longer in a table for the default of 100,000 (AMD EPYC Zen 4, Node 20.20,
 * 2026-11-21: set `maxKeys` below to 100,000 and run `npm run bench -- --case check`).
 */
import * as published from 'millrace'
import { SIDES } from './batches.js'
import type { KeyAt } from './keys.js'
import { LIMIT, WINDOW_MS } from './peers.js'
import type { Decide } from './timing.js'

export type Millrace = typeof published

/** Decides by string keys. */
export function millrace(maxKeys: number, { createLimiter }: Millrace = published): Decide<string> {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys })
  return (key) => limiter.check(key).allowed
}

/** Decides by string keys without the addon; {@link millrace} uses the addon if it is built. */
export function millraceWithoutAddon(maxKeys: number): Decide<string> {
  process.env.MILLRACE_NATIVE = SIDES.TypeScript
  return millrace(maxKeys)
}

/** Decides by handles, created in advance from the keys of `keyAt`. */
export function millraceHandles(
  keyAt: KeyAt<string>,
  count: number,
  { createLimiter }: Millrace = published,
): { handleAt: KeyAt<published.KeyHandle>; decide: Decide<published.KeyHandle> } {
  const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: count })
  const handles = Array.from({ length: count }, (_, i) => limiter.handle(keyAt(i)))
  return { handleAt: (index) => handles[index]!, decide: (handle) => limiter.check(handle).allowed }
}
