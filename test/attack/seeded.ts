import { attachLimiter, type Clock, type Limiter } from 'millrace'
import { HEADER } from '#millrace/memory/layout.js'

/**
 * The same limiter with a known hash seed, which nobody can ask for: it is written into the memory before the first
 * decision. A clock of one's own is handed over again. What is played on it can be repeated; and an attacker can be given the seed.
 */
export function withSeed(limiter: Limiter, seed: readonly [number, number], clock?: Clock): Limiter {
  const shared = limiter.share()
  new Int32Array(shared.buffer).set(seed, HEADER.SEED_0)
  return attachLimiter(shared, clock && { clock })
}
