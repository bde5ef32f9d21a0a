import { attachLimiter, type Clock, type Limiter } from 'millrace'
import { HEADER } from '#millrace/memory/layout.js'

/**
 * A limiter with a known hash seed, which no option sets: the seed is written into its memory before the
 * first decision. A custom clock must be passed again. So runs can be repeated, and an attacker can know the
 * seed.
 */
export function withSeed(limiter: Limiter, seed: readonly [number, number], clock?: Clock): Limiter {
  const shared = limiter.share()
  new Int32Array(shared.buffer).set(seed, HEADER.SEED_0)
  return attachLimiter(shared, clock && { clock })
}
