// Random keys without end against a key that has used its limit up, and what the others feel of it.
import { createLimiter } from 'millrace'
import { random } from '../algorithms/random.js'
import type { Tell } from '../long-runs/progress.js'
import { Latencies } from './latency.js'
import { withSeed } from './seeded.js'

export const LIMIT = 50
/**
 * The table is made for one of so many keys. Overrun a hundredfold, each of its places is taken 80 times, more than the
 * limit: who used less than that is displaced, keys in ordinary use, too. Tenfold, those keep their places.
 */
export const HUNDREDFOLD = 100
export const TENFOLD = 10
/** Keys in ordinary use, whose decisions are timed. */
const REGULARS = 1_000
const OTHERS_PER_REGULAR = 10
const SPRAYED_PER_TRY = 100
/** By then every place has been taken a few times, and all of the memory been touched. */
const WARM = 0.1

export interface FloodReport {
  sprayed: number
  /** Tries of the victim meanwhile, and how many of them were admitted: none may be. */
  tries: number
  extra: number
  /** Of the sprayed keys' decisions: they inherit the counts of those whose places they take. */
  sprayedAdmitted: number
  /** While no other key is in use; while the table is half full of keys in ordinary use; during the flood. */
  alone: Latencies
  ordinary: Latencies
  during: Latencies
  arenaMb: number
  /** Resident memory before the flood, when all places had been taken, and at its end. */
  rssMb: { before: number; warm: number; end: number }
}

export function flood(keys: number, keysPerRoom: number, seed: number, tell: Tell): FloodReport {
  const next = random(seed)
  const made = createLimiter({ limit: LIMIT, window: '1d', maxKeys: keys / keysPerRoom })
  const limiter = withSeed(made, [next() * 2 ** 32, next() * 2 ** 32])
  const timed = keys / OTHERS_PER_REGULAR
  const alone = new Latencies(timed)
  const ordinary = new Latencies(timed / 2)
  const during = new Latencies(timed)
  const rssNow = () => process.memoryUsage.rss() / 2 ** 20
  const useRegular = (latencies: Latencies) => {
    const key = `regular ${Math.floor(next() * REGULARS)}`
    limiter.refund(latencies.time(() => limiter.check(key))) // so that none of them comes to its limit by itself
  }
  limiter.check('victim', LIMIT)
  for (let i = 0; i < REGULARS; i++) limiter.check(`regular ${i}`, LIMIT / 2)
  const warmUp = new Latencies(0)
  for (let i = 0; i < timed; i++) useRegular(warmUp) // until all code is compiled
  for (let i = 0; i < timed; i++) useRegular(alone)
  const others = keys / keysPerRoom / 2
  for (let i = 0; i < keys / 2; i++) {
    limiter.refund(limiter.check(`in ordinary use ${Math.floor(next() * others)}`))
    if (i % OTHERS_PER_REGULAR === 0) useRegular(ordinary)
    tell(`flood: ${i} of ${keys / 2} ordinary decisions before it`)
  }

  const rssMb = { before: rssNow(), warm: 0, end: 0 }
  let tries = 0
  let extra = 0
  let sprayedAdmitted = 0
  for (let sprayed = 0; sprayed < keys; sprayed++) {
    if (limiter.check(`${(next() * 2 ** 32) >>> 0}.${(next() * 2 ** 32) >>> 0}`).allowed) sprayedAdmitted++
    if (sprayed % OTHERS_PER_REGULAR === 0) useRegular(during)
    if (sprayed === WARM * keys) rssMb.warm = rssNow()
    if (sprayed % SPRAYED_PER_TRY !== 0) continue
    tries++
    if (limiter.check('victim').allowed) extra++
    tell(`flood: ${sprayed} of ${keys} random keys, ${extra} extra admissions of the victim`)
  }
  rssMb.end = rssNow()
  const arenaMb = limiter.stats().bytes / 2 ** 20
  return { sprayed: keys, tries, extra, sprayedAdmitted, alone, ordinary, during, arenaMb, rssMb }
}
