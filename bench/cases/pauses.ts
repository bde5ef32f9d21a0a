import { type Benchmark, type Contender, type Figures, type Goal, timesOf } from '../benchmark.js'
import { inOrder, type KeyAt, madeAnew, randomOrder } from '../keys.js'
import { millrace } from '../millrace.js'
import { expressRateLimitStore, mapFloor, rateLimiterFlexible } from '../peers.js'
import { collectGarbage } from '../timing.js'
import { awaitedSlices, directSlices, type Slice, takeTurnsFor, takeTurnsThrough } from '../turns.js'

const KEYS = 1_000_000
const LOAD_MS = { full: 20_000, quick: 3_000 }
/** Gone through again and again: long enough that no cache holds it. */
const ORDER_LENGTH = 2_000_000

/** Code that is not yet compiled holds the loop up, too, at the first requests of a process, whoever limits them. */
const WARM_UP = 50_000

/** What the machine and the harness do to the loop without any limiter: on a busy machine that is most of it. */
const NOTHING = 'only making the strings'

/**
 * Judged by the whole: a table of a million live keys does not come from nowhere, and on a server keys come all the
 * time. The two parts are shown apart, for they differ: while keys come a Map moves all its entries each time it
 * doubles, and the collector moves all that is new; under load on known keys alone little of what is held changes.
 */
export const pauses: Benchmark = {
  title: `the event loop while ${KEYS.toLocaleString('en')} keys come, and then under load on all of them`,
  units: {
    longestMs: 'longest pause, ms',
    comingMs: 'longest pause while keys come, ms',
    loadMs: 'longest pause on known keys, ms',
    p99Ms: '99 of 100 turns on known keys take at most, ms',
    collectorMs: "longest of the collector's pauses, ms",
    millionASecond: 'million decisions a second on known keys',
  },
  contenders: [
    held('Millrace', (keyAt) => directSlices(keyAt, millrace(KEYS))),
    held(NOTHING, (keyAt) => directSlices(keyAt, (key) => key.length > 0)),
    held('Map floor', (keyAt) => directSlices(keyAt, mapFloor())),
    held('rate-limiter-flexible', (keyAt) => awaitedSlices(keyAt, rateLimiterFlexible())),
    held("express-rate-limit's store", (keyAt) => awaitedSlices(keyAt, expressRateLimitStore())),
  ],
  goals: ['rate-limiter-flexible', "express-rate-limit's store"].flatMap((peer): Goal[] => [
    {
      target: 'P6',
      what: `longest pause: Millrace / ${peer}`,
      unit: 'x',
      value: timesOf('Millrace', peer, 'longestMs'),
      atMost: 0.2,
    },
    {
      what: `longest pause on known keys: Millrace / ${peer}`,
      unit: 'x',
      value: timesOf('Millrace', peer, 'loadMs'),
    },
  ]),
  // Fewer than usual: five contenders take two minutes a round.
  rounds: { full: 3, quick: 1 },
}

/** From an empty table, as a server begins; nothing is collected by force once it has begun. */
function held(name: string, make: (keyAt: KeyAt<string>) => Slice): Contender {
  return {
    name,
    async measure({ quick }): Promise<Figures> {
      await takeTurnsThrough(inOrder(WARM_UP), make(madeAnew(WARM_UP))) // one of its own: for the code, not for the table
      const slice = make(madeAnew(KEYS))
      const keysComing = inOrder(KEYS)
      const keysKnown = randomOrder(KEYS, ORDER_LENGTH)
      collectGarbage()
      const coming = await takeTurnsThrough(keysComing, slice)
      const loadMs = quick ? LOAD_MS.quick : LOAD_MS.full
      const load = await takeTurnsFor(loadMs, keysKnown, slice)
      return {
        longestMs: Math.max(coming.longestMs, load.longestMs),
        comingMs: coming.longestMs,
        loadMs: load.longestMs,
        p99Ms: load.p99Ms,
        collectorMs: Math.max(coming.collectorMs, load.collectorMs),
        millionASecond: load.decisions / loadMs / 1e3,
      }
    },
  }
}
