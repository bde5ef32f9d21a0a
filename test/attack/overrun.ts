// Twice as many keys as fit in the table, over many windows. An exact log judges each key.
import { createLimiter, manualClock } from 'millrace'
import * as assert from 'uvu/assert'
import { type InlineDecision, Outcome } from '#millrace/core/inline-decision.js'
import { type OnFull, setsFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import { ExactLog } from '../judge/exact-log.js'
import type { PrintLine } from '../long-runs/progress.js'
import { withSeed } from './seeded.js'

export const LIMIT = 5
const WINDOW_MS = 1_000
const GRANULE_MS = 100
/** The average decisions per key and window: more than the limit. */
const TRIES = 8

/** Two sets: every key may be in any way. */
const SMALLEST = 2 * WAYS_PER_SET

export interface OverrunReport {
  onFull: OnFull
  keys: number
  ways: number
  windows: number
  decisions: number
  admitted: number
  /** Admissions that were not counted. */
  uncounted: number
  /** Refusals because no way was free. */
  noRoom: number
  /** Refusals below the key's own limit, because of inherited counts. */
  early: number
  evicted: number
  /** The most units of a key in one window, and the admissions beyond the limit. */
  most: number
  over: number
  /** The most units of all keys together in one window. */
  mostOfAll: number
}

/** The record of one key. */
class KeyLog {
  readonly counted = new ExactLog()
  /** The time of its last decision with its own way. */
  lastMs = Number.NEGATIVE_INFINITY
}

/**
 * Runs the load and judges it. The clock is manual and moves by a few milliseconds at a time, so a decision
 * takes effect at its reading. @throws AssertionError at the first violation
 */
export function overrun(
  onFull: OnFull,
  keys: number,
  windows: number,
  seed: number,
  showProgress: PrintLine,
): OverrunReport {
  const next = random(seed)
  const clock = manualClock(1e9)
  const options = {
    limit: LIMIT,
    window: WINDOW_MS,
    granularity: GRANULE_MS,
    maxKeys: keys / 2,
    onFull,
    clock,
  }
  const limiter = withSeed(createLimiter(options), [next() * 2 ** 32, next() * 2 ** 32])
  const ways = setsFor(keys / 2) * WAYS_PER_SET
  assert.ok(ways < keys, 'the table is overrun')
  const logs = Array.from({ length: keys }, () => new KeyLog())
  const all = new RecentSum(WINDOW_MS)
  const seen = {
    decisions: 0,
    admitted: 0,
    uncounted: 0,
    noRoom: 0,
    early: 0,
    most: 0,
    over: 0,
    mostOfAll: 0,
  }
  const stepMs = (2 * WINDOW_MS) / (TRIES * keys)
  let owedMs = 0
  for (const end = clock.now() + windows * WINDOW_MS; clock.now() < end; ) {
    owedMs += next() < 0.001 ? next() * WINDOW_MS : next() * stepMs
    if (owedMs >= 1) clock.advance(Math.floor(owedMs))
    owedMs %= 1
    const now = clock.now()
    const key = Math.floor(next() * keys)
    const log = logs[key]!
    const decision = limiter.check(`key ${key}`) as InlineDecision
    const { outcome, allowed } = decision
    seen.decisions++
    if (outcome === Outcome.NO_ROOM || outcome === Outcome.UNCOUNTED) {
      assert.is(onFull === 'evict', false, 'evict always finds room')
      assert.is(allowed, onFull === 'allow')
      assert.is(limiter.usage(`key ${key}`), 0, 'the key has no way')
      if (ways === SMALLEST) assert.ok(livingAt(now, logs) >= ways, 'refused while a way was free')
      if (allowed) seen.uncounted++
      else seen.noRoom++
      continue
    }
    log.lastMs = now
    if (!allowed) {
      if (log.counted.used(now, WINDOW_MS + GRANULE_MS) + 1 > LIMIT) continue
      assert.is(onFull, 'evict', `key ${key} refused early at ${now}: it has its own way`)
      seen.early++
      continue
    }
    assert.is(decision.effectMs(now), now)
    log.counted.add(now, 1)
    seen.admitted++
    const used = log.counted.used(now, WINDOW_MS)
    assert.ok(onFull === 'evict' || used <= LIMIT, `key ${key} over its limit: ${used}`)
    seen.most = Math.max(seen.most, used)
    if (used > LIMIT) seen.over++
    seen.mostOfAll = Math.max(seen.mostOfAll, all.add(now))
    assert.ok(
      seen.mostOfAll <= ways * LIMIT,
      `${seen.mostOfAll} units of all keys in a window, with ${ways} ways`,
    )
    if (seen.decisions % 1_000 === 0)
      showProgress(`overrun, ${onFull}: ${Math.ceil((end - now) / WINDOW_MS)} windows left`)
  }
  const { evictedLive, noRoom } = limiter.stats()
  assert.is(noRoom, seen.noRoom + seen.uncounted, 'every decision without room is counted')
  return { ...seen, onFull, keys, ways, windows, evicted: evictedLive }
}

/**
 * The number of keys whose ways may not be reused yet: those with a decision in the window or up to two
 * granules before it. Counts expire by whole granules, and a way is free one granule later.
 */
function livingAt(nowMs: number, logs: KeyLog[]): number {
  return logs.filter(({ lastMs }) => lastMs > nowMs - WINDOW_MS - 2 * GRANULE_MS).length
}

/** The number of events in the window that ends with the last one. */
class RecentSum {
  readonly #windowMs: number
  readonly #moments: number[] = []
  #first = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  add(nowMs: number): number {
    this.#moments.push(nowMs)
    while (this.#moments[this.#first]! <= nowMs - this.#windowMs) this.#first++
    return this.#moments.length - this.#first
  }
}
