// A million keys that collide under one seed, on a limiter with that seed and on one with its own seed.
import { createLimiter, type Limiter, manualClock } from 'millrace'
import { Hasher } from '#millrace/memory/hash.js'
import { HEADER, setsFor } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import type { PrintLine } from '../long-runs/progress.js'
import { collidingKeys, setsOf } from './colliding-keys.js'
import { Latencies } from './latency.js'
import { withSeed } from './seeded.js'

const LIMIT = 10
/** The keys crowd into one in this many sets of a table that has room for all. */
const CROWDED = 1 / 50
/** The highest probability that random keys load a set beyond the bound. */
const ODDS = 1e-9

export interface Play {
  decisions: Latencies
  /** The most keys that share a set as one of their two sets. A set has 16 ways. */
  fullest: number
  /** Keys evicted while they counted. */
  evictedLive: number
  /** Refusals of the first decisions of other random keys afterwards, a tenth as many. */
  strangersRefused: number
}

export interface CollideReport {
  keys: number
  sets: number
  crowded: number
  /** The bound of the fullest set for random keys. */
  bound: number
  known: Play
  own: Play
  /** As many random keys under the limiter's own seed, for comparison. */
  randomFullest: number
}

export function collide(count: number, seed: number, showProgress: PrintLine): CollideReport {
  const next = random(seed)
  const word = () => (next() * 2 ** 32) | 0
  const known = [word(), word()] as const
  const sets = setsFor(count)
  const crowded = Math.max(2, Math.round(sets * CROWDED))
  const keys = collidingKeys(known, sets, crowded, count, showProgress)
  const strangers = Array.from({ length: count / 10 }, () => `${word()}.${word()}`)
  const others = Array.from({ length: count }, () => `${word()}.${word()}`)
  const own = limiterFor(count)
  const report = {
    keys: count,
    sets,
    crowded,
    bound: boundOf(count, 2 / sets, sets),
    randomFullest: fullestOf(own, others, sets),
  }
  return {
    ...report,
    known: play(withSeed(limiterFor(count), known), keys, strangers, sets, showProgress),
    own: play(own, keys, strangers, sets, showProgress),
  }
}

/** A limiter with room for the given number of keys. */
function limiterFor(count: number): Limiter {
  const clock = manualClock(1e9)
  return createLimiter({ limit: LIMIT, window: '1h', granularity: '6m', maxKeys: count, clock })
}

function play(
  limiter: Limiter,
  keys: string[],
  strangers: string[],
  sets: number,
  showProgress: PrintLine,
): Play {
  const decisions = new Latencies(2 * keys.length)
  for (const round of [1, 2]) {
    keys.forEach((key, i) => {
      decisions.time(() => limiter.check(key))
      if (i % 1_000 === 0)
        showProgress(`collide: ${i} of ${keys.length} keys decided on, round ${round} of 2`)
    })
  }
  const { evictedLive } = limiter.stats()
  let strangersRefused = 0
  for (const key of strangers) if (!limiter.check(key).allowed) strangersRefused++
  return { decisions, fullest: fullestOf(limiter, keys, sets), evictedLive, strangersRefused }
}

function fullestOf(limiter: Limiter, keys: string[], sets: number): number {
  const words = new Int32Array(limiter.share().buffer)
  const hasher = new Hasher(words[HEADER.SEED_0]!, words[HEADER.SEED_1]!)
  const load = new Int32Array(sets)
  for (const key of keys) {
    hasher.hash(key)
    for (const set of setsOf(hasher.lo, hasher.hi, sets)) load[set]!++
  }
  return load.reduce((most, keysHere) => Math.max(most, keysHere))
}

/**
 * The least load that any of `sets` exceeds with a probability of at most ODDS, if each of n keys is in a set
 * with probability p. By Chernoff, P(load >= x) <= exp(-n D(x/n | p)), summed over the sets.
 */
export function boundOf(n: number, p: number, sets: number): number {
  let load = Math.ceil(n * p)
  while (sets * Math.exp(-n * divergence(load / n, p)) > ODDS) load++
  return load
}

function divergence(a: number, p: number): number {
  return a * Math.log(a / p) + (1 - a) * Math.log((1 - a) / (1 - p))
}
