import { createLimiter, manualClock } from 'millrace'
import { type Benchmark, type Contender, type Figures, figureOf, type Goal } from '../benchmark.js'
import { freshKeys, type KeyAt } from '../keys.js'
import { bareMap, expressRateLimitStore, LIMIT, rateLimiterFlexible, WINDOW_MS } from '../peers.js'
import { type AsyncDecide, collectGarbage, type Decide } from '../timing.js'

const KEYS = 1_000_000
const FEW_KEYS = 50_000
/**
 * Every key is charged this many times. The times span more than one window, so that the cells use their
 * buckets.
 */
const CHARGES = 3
const CHARGE_EVERY_MS = 0.6 * WINDOW_MS

/** Fills a limiter with the first `keys` keys and returns an object that keeps it alive. */
type Fill = (keyAt: KeyAt<string>, keys: number) => unknown | Promise<unknown>

export const memory: Benchmark = {
  title: `memory at ${KEYS.toLocaleString('en')} live keys`,
  units: { heapMB: 'MB of heap', rssBytes: 'bytes of resident memory per key' },
  contenders: [
    contender('Millrace, window/60', fillMillrace(60)),
    contender('Millrace, window/10', fillMillrace(10)),
    contender('bare Map', (...keys) => fillDirect(bareMap(), ...keys)),
    contender('rate-limiter-flexible', (...keys) => fillAwaited(rateLimiterFlexible(), ...keys)),
    contender("express-rate-limit's store", (...keys) => fillAwaited(expressRateLimitStore(), ...keys)),
  ],
  goals: [
    ...[60, 10].map(
      (buckets): Goal => ({
        target: 'P5',
        label: `heap growth at window/${buckets}`,
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
        label: `resident memory per key at window/${buckets}`,
        unit: 'bytes',
        value: (round) => figureOf(round, `Millrace, window/${buckets}`, 'rssBytes'),
        atMost: bytes,
      }),
    ),
  ],
  // Two rounds are enough: memory does not depend on the load of the machine, and Millrace's figures differ
  // by under 2 %.
  rounds: { full: 2, quick: 1 },
}

/**
 * Measures the growth of memory from a table of a million keys. A small table is filled and kept first, so
 * that the code and the young generation, which every number of keys needs, do not count. The text of the
 * keys does not count either.
 */
function contender(name: string, fill: Fill): Contender {
  return {
    name,
    async measure(): Promise<Figures> {
      const keyAt = freshKeys(KEYS)
      retained.add(await fill(keyAt, FEW_KEYS))
      collectGarbage()
      const before = process.memoryUsage()
      retained.add(await fill(keyAt, KEYS))
      collectGarbage()
      const after = process.memoryUsage()
      return {
        heapMB: (after.heapUsed - before.heapUsed) / 1e6,
        rssBytes: (after.rss - before.rss) / KEYS,
      }
    },
  }
}

/** Keeps the filled limiters alive until the measurement has ended. */
const retained = new Set<unknown>()

/** The first charges touch every page of the arena: at 80 % full, each page holds a dozen cells in use. */
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
    for (let charge = 0; charge < CHARGES; charge++) {
      clock.advance(CHARGE_EVERY_MS)
      fillDirect((key) => limiter.check(key).allowed, keyAt, keys)
    }
    // A key whose two sets are full evicts another, a few in a million. The number of keys is an estimate.
    const { keys: live, evictedLive } = limiter.stats()
    if (evictedLive > keys / 1_000 || live < 0.98 * keys) {
      throw new Error(`the table holds ${live} of ${keys} keys, ${evictedLive} were evicted`)
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
