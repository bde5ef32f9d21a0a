import {
  type Benchmark,
  type Contender,
  type Figures,
  figureOf,
  type Goal,
  type Round,
  ratioOf,
} from '../benchmark.js'
import { cachedKeys, inOrder, type KeyAt, randomOrder } from '../keys.js'
import { millrace } from '../millrace.js'
import { bareMap, expressRateLimitStore, rateLimiterFlexible } from '../peers.js'
import { collectGarbage } from '../timing.js'
import { awaitedSlices, directSlices, type Slice, takeTurnsFor, takeTurnsThrough } from '../turns.js'

const KEYS = 1_000_000
const LOAD_MS = { full: 20_000, quick: 3_000 }
/** The order repeats; it is too long for a cache to hold the keys. */
const ORDER_LENGTH = 2_000_000

/**
 * Decisions before the measurement: compiling code blocks the loop at a process's first requests, with any
 * limiter.
 */
const WARM_UP = 50_000

const OURS = 'Millrace'
const PEERS = ['rate-limiter-flexible', "express-rate-limit's store"]
/** Pauses from the machine, the harness and its keys alone; on a busy machine, most of the total. */
const NO_LIMITER = 'no limiter'

/**
 * The target is for both phases together, because on a server new keys arrive all the time. The phases are
 * also reported apart. While new keys arrive, a Map moves all its entries whenever it doubles, and the
 * collector moves every new object. Under load on known keys, few objects change.
 */
export const pauses: Benchmark = {
  title: `pauses of the event loop: ${KEYS.toLocaleString('en')} new keys, then load on all of them`,
  units: {
    longestMs: 'longest pause, ms',
    newKeysMs: 'longest pause during new keys, ms',
    loadMs: 'longest pause on known keys, ms',
    p99Ms: '99th percentile of a loop turn on known keys, ms',
    collectorMs: 'longest garbage collection, ms',
    millionASecond: 'million decisions per second on known keys',
  },
  contenders: [
    contender(OURS, (keyAt) => directSlices(keyAt, millrace(KEYS))),
    contender(NO_LIMITER, (keyAt) => directSlices(keyAt, (key) => key.length > 0)),
    contender('bare Map', (keyAt) => directSlices(keyAt, bareMap())),
    contender(PEERS[0]!, (keyAt) => awaitedSlices(keyAt, rateLimiterFlexible())),
    contender(PEERS[1]!, (keyAt) => awaitedSlices(keyAt, expressRateLimitStore())),
  ],
  goals: [
    {
      target: 'P6',
      label: `longest pause over ${NO_LIMITER}'s: ${OURS} / the better peer`,
      unit: 'x',
      value: (round) => pauseOver(round, OURS) / Math.min(...PEERS.map((peer) => pauseOver(round, peer))),
      atMost: 0.2,
    },
    ...PEERS.map(
      (peer): Goal => ({
        label: `longest pause on known keys: ${OURS} / ${peer}`,
        unit: 'x',
        value: ratioOf(OURS, peer, 'loadMs'),
      }),
    ),
  ],
  // Two rounds: one of all contenders takes two minutes.
  rounds: { full: 2, quick: 1 },
}

/** A round's longest pause without that of the machine; 0 if that was longer. */
const pauseOver = (round: Round, name: string): number =>
  Math.max(0, figureOf(round, name, 'longestMs') - figureOf(round, NO_LIMITER, 'longestMs'))

/** Starts with an empty table, as a server does. The strings of the keys exist before. No collection is forced after the start. */
function contender(name: string, make: (keyAt: KeyAt<string>) => Slice): Contender {
  return {
    name,
    async measure({ quick }): Promise<Figures> {
      // The warm-up has its own table, so that it only compiles the code.
      await takeTurnsThrough(inOrder(WARM_UP), make(cachedKeys(WARM_UP)))
      const slice = make(cachedKeys(KEYS))
      const newKeys = inOrder(KEYS)
      const knownKeys = randomOrder(KEYS, ORDER_LENGTH)
      collectGarbage()
      const insertion = await takeTurnsThrough(newKeys, slice)
      const loadMs = quick ? LOAD_MS.quick : LOAD_MS.full
      const load = await takeTurnsFor(loadMs, knownKeys, slice)
      return {
        longestMs: Math.max(insertion.longestMs, load.longestMs),
        newKeysMs: insertion.longestMs,
        loadMs: load.longestMs,
        p99Ms: load.p99Ms,
        collectorMs: Math.max(insertion.collectorMs, load.collectorMs),
        millionASecond: load.decisions / loadMs / 1e3,
      }
    },
  }
}
