// A flood of random keys against a key at its limit, and its effect on other keys.
import { createLimiter } from 'millrace'
import { random } from '../algorithms/random.js'
import type { PrintLine } from '../long-runs/progress.js'
import { Latencies } from './latency.js'
import { withSeed } from './seeded.js'

export const LIMIT = 50
/**
 * The table has room for one key in this many. At a hundredfold overrun each way is taken 80 times, more than
 * the limit, so that keys in ordinary use are evicted too. At tenfold these keep their ways.
 */
export const HUNDREDFOLD = 100
export const TENFOLD = 10
/** Keys in ordinary use, whose decisions are timed. */
const REGULARS = 1_000
const OTHERS_PER_REGULAR = 10
const SPRAYED_PER_TRY = 100
/** Random keys until every way was taken a few times and all memory was touched. */
const WARM = 0.1

export interface FloodReport {
  sprayed: number
  /**
   * Attempts of the victim during the flood, and its admissions. It has none unless it is evicted. Then it may
   * come back in its second set, to a key that has used less than the ones in the first.
   */
  tries: number
  extra: number
  /** Admissions of the random keys, which inherit the counts of evicted keys. */
  sprayedAdmitted: number
  /** Units that all keys together were admitted and did not give back. */
  charged: number
  /** Latencies without other keys, with a table half full of keys in ordinary use, and during the flood. */
  alone: Latencies
  ordinary: Latencies
  during: Latencies
  arenaMb: number
  /** Resident memory before the flood, after all ways were taken, and at the end. */
  rssMb: { before: number; warm: number; end: number }
}

export function flood(keys: number, keysPerRoom: number, seed: number, showProgress: PrintLine): FloodReport {
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
    limiter.refund(latencies.time(() => limiter.check(key))) // so that none of them reaches its limit
  }
  const first = limiter.check('victim', LIMIT).allowed ? LIMIT : 0
  let regular = 0
  for (let i = 0; i < REGULARS; i++)
    regular += limiter.check(`regular ${i}`, LIMIT / 2).allowed ? LIMIT / 2 : 0
  const warmUp = new Latencies(0)
  for (let i = 0; i < timed; i++) useRegular(warmUp) // compiles the code
  for (let i = 0; i < timed; i++) useRegular(alone)
  const others = keys / keysPerRoom / 2
  for (let i = 0; i < keys / 2; i++) {
    limiter.refund(limiter.check(`in ordinary use ${Math.floor(next() * others)}`))
    if (i % OTHERS_PER_REGULAR === 0) useRegular(ordinary)
    showProgress(`flood: ${i} of ${keys / 2} ordinary decisions before it`)
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
    showProgress(`flood: ${sprayed} of ${keys} random keys, ${extra} extra admissions of the victim`)
  }
  rssMb.end = rssNow()
  const arenaMb = limiter.stats().bytes / 2 ** 20
  const charged = first + regular + sprayedAdmitted + extra
  return { sprayed: keys, tries, extra, sprayedAdmitted, charged, alone, ordinary, during, arenaMb, rssMb }
}
