import { createLimiter, manualClock } from 'millrace'
import { type Benchmark, type Contender, type Figures, figureOf, type Goal } from '../benchmark.js'
import { type KeyAt, madeAnew } from '../keys.js'
import { expressRateLimitStore, LIMIT, mapFloor, rateLimiterFlexible, WINDOW_MS } from '../peers.js'
import { type AsyncDecide, collectGarbage, type Decide } from '../timing.js'

const KEYS = 1_000_000
const FEW_KEYS = 50_000
/** Rounds in which every key is charged: more than one window apart in all, so that a way's buckets come into use. */
const TURNS = 3
const TURN_MS = 0.6 * WINDOW_MS

/** Fills something with the first `keys` keys, and returns it. */
type Fill = (keyAt: KeyAt<string>, keys: number) => unknown | Promise<unknown>

export const memory: Benchmark = {
  title: `memory at ${KEYS.toLocaleString('en')} live keys`,
  units: { heapMB: 'MB of heap', rssBytes: 'bytes of resident memory a key' },
  contenders: [
    weighed('Millrace, window/60', fillMillrace(60)),
    weighed('Millrace, window/10', fillMillrace(10)),
    weighed('Map floor', (...keys) => fillDirect(mapFloor(), ...keys)),
    weighed('rate-limiter-flexible', (...keys) => fillAwaited(rateLimiterFlexible(), ...keys)),
    weighed("express-rate-limit's store", (...keys) => fillAwaited(expressRateLimitStore(), ...keys)),
  ],
  goals: [
    ...[60, 10].map(
      (buckets): Goal => ({
        target: 'P5',
        what: `heap growth at window/${buckets}`,
        unit: 'MB',
        value: (round) => figureOf(round, `Millrace, window/${buckets}`, 'heapMB'),
        atMost: 20,
      }),
    ),
    ...[
      { buckets: 60, bytes: 350 },
      { buckets: 10, bytes: 100 },
    ].map(
      ({ buckets, bytes }): Goal => ({
        target: 'P5',
        what: `resident memory a key at window/${buckets}`,
        unit: 'bytes',
        value: (round) => figureOf(round, `Millrace, window/${buckets}`, 'rssBytes'),
        atMost: bytes,
      }),
    ),
  ],
  // Memory does not depend on what else the machine does: Millrace's spread over rounds is below 2 %.
  rounds: { full: 2, quick: 1 },
}

/**
 * Growth from before a table of a million keys to after it. A small one is filled and kept first, so that the code
 * and the young generation, which are there for any number of keys, are not counted; nor is the text of the keys.
 */
function weighed(name: string, fill: Fill): Contender {
  return {
    name,
    async measure(): Promise<Figures> {
      const keyAt = madeAnew(KEYS)
      held.add(await fill(keyAt, FEW_KEYS))
      collectGarbage()
      const before = process.memoryUsage()
      held.add(await fill(keyAt, KEYS))
      collectGarbage()
      const after = process.memoryUsage()
      return {
        heapMB: (after.heapUsed - before.heapUsed) / 1e6,
        rssBytes: (after.rss - before.rss) / KEYS,
      }
    },
  }
}

/** What must not be collected, or given back to the system, before it has been weighed. */
const held = new Set<unknown>()

/** Every page of the arena is touched in the first turn: at 80 % full each holds a dozen ways that are in use. */
function fillMillrace(buckets: number): Fill {
  return (keyAt, keys) => {
    const clock = manualClock()
    const limiter = createLimiter({
      limit: LIMIT,
      window: WINDOW_MS,
      granularity: WINDOW_MS / buckets,
      maxKeys: keys,
      clock,
    })
    for (let turn = 0; turn < TURNS; turn++) {
      clock.advance(TURN_MS)
      fillDirect((key) => limiter.check(key).allowed, keyAt, keys)
    }
    // Where a key's two sets are full it displaces another, a few in a million; the count of keys is an estimate.
    const { keys: live, evictedLive } = limiter.stats()
    if (evictedLive > keys / 1_000 || live < 0.98 * keys) {
      throw new Error(`weighed ${live} keys for ${keys}, ${evictedLive} were displaced`)
    }
    return limiter
  }
}

function fillDirect(decide: Decide<string>, keyAt: KeyAt<string>, keys: number): Decide<string> {
  for (let i = 0; i < keys; i++) if (!decide(keyAt(i))) throw new Error(`key ${i} was refused`)
  return decide
}

async function fillAwaited<Answer>(
  peer: AsyncDecide<string, Answer>,
  keyAt: KeyAt<string>,
  keys: number,
): Promise<unknown> {
  for (let i = 0; i < keys; i++) {
    if (!peer.isAllowed(await peer.decide(keyAt(i)))) throw new Error(`key ${i} was refused`)
  }
  return peer
}
