// Counts the new keys in one window that overrun a table, with a new client for each decision.
import { createLimiter, manualClock } from 'millrace'
import { type OnFull, setsFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import type { PrintLine } from '../long-runs/progress.js'
import { withSeed } from './seeded.js'

/** The share of refused new keys is measured over this many. */
const SPAN = 1_000
/** Keys in use before the new ones, each with a tenth of the limit used. */
const ESTABLISHED = 1_000
const USED = 0.1

export interface NewKeysReport {
  onFull: OnFull
  limit: number
  maxKeys: number
  ways: number
  /** New keys until 1, 50 and 99 of 100 were no longer counted; 0 if that did not happen. */
  few: number
  half: number
  most: number
  /** All new keys that were admitted and counted. */
  admitted: number
  /** The average rest of the limit of keys in use, in percent: before, and when `most` were refused. */
  leftBefore: number
  leftAfter: number
  evictedLive: number
  noRoom: number
}

/** Sends new keys while the clock stands still, until 99 of 100 are refused or uncounted. */
export function newKeys(
  onFull: OnFull,
  limit: number,
  maxKeys: number,
  seed: number,
  showProgress: PrintLine,
): NewKeysReport {
  const next = random(seed)
  const options = {
    limit,
    window: '1h',
    granularity: '6m',
    maxKeys,
    onFull,
    clock: manualClock(1e9),
  } as const
  const limiter = withSeed(createLimiter(options), [next() * 2 ** 32, next() * 2 ** 32])
  const ways = setsFor(maxKeys) * WAYS_PER_SET
  const established = Array.from({ length: ESTABLISHED }, (_, i) => `established ${i}`)
  for (const key of established) limiter.check(key, Math.max(1, Math.floor(USED * limit)))
  const left = () => {
    const all = established.reduce((sum, key) => sum + limiter.peek(key).remaining, 0)
    return (100 * all) / (ESTABLISHED * limit)
  }
  const leftBefore = left()
  const came = { few: 0, half: 0, most: 0 }
  let admitted = 0
  for (let sprayed = 0; came.most === 0; ) {
    let counted = 0
    const before = limiter.stats().noRoom
    for (let i = 0; i < SPAN; i++) if (limiter.check(`${sprayed++} ${next()}`).allowed) counted++
    if (onFull === 'allow') counted -= limiter.stats().noRoom - before
    admitted += counted
    if (counted <= 0.99 * SPAN) came.few ||= sprayed
    if (counted <= 0.5 * SPAN) came.half ||= sprayed
    if (counted <= 0.01 * SPAN) came.most = sprayed
    showProgress(
      `new keys, ${onFull}, limit ${limit}, maxKeys ${maxKeys}: ${sprayed}, ${counted} of ${SPAN} counted`,
    )
  }
  const { evictedLive, noRoom } = limiter.stats()
  return {
    onFull,
    limit,
    maxKeys,
    ways,
    ...came,
    admitted,
    leftBefore,
    leftAfter: left(),
    evictedLive,
    noRoom,
  }
}
