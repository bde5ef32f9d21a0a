import { type Benchmark, type Effort, ROUNDS, timesOf } from '../benchmark.js'
import { awaited, direct } from '../contenders.js'
import { cached, inOrder, type KeyAt, madeAnew, randomOrder } from '../keys.js'
import { millrace, millraceHandles, millraceWithoutAddon } from '../millrace.js'
import { expressRateLimitStore, mapFloor, rateLimiterFlexible } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 1_000_000

/**
 * Judged on cached strings held in an array: fetching the key's own string from memory, which all must do, is then part
 * of the time of all. Strings made anew come out of the young generation, which the caches hold.
 */
const onCached = courseOn(cached)
const onMadeAnew = courseOn(madeAnew)

export const million: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} keys in random order, all of them known`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    direct('Millrace, cached', onCached, () => millrace(KEYS)),
    direct('Millrace, cached, without the addon', onCached, () => millraceWithoutAddon(KEYS)),
    direct('Map floor, cached', onCached, mapFloor),
    awaited('rate-limiter-flexible, cached', onCached, rateLimiterFlexible),
    awaited("express-rate-limit's store, cached", onCached, expressRateLimitStore),
    direct('Millrace, made anew', onMadeAnew, () => millrace(KEYS)),
    direct('Map floor, made anew', onMadeAnew, mapFloor),
    {
      name: 'Millrace by handle',
      measure(effort) {
        const { handleAt, decide } = millraceHandles(madeAnew(KEYS), KEYS)
        return timeDecisions({ ...onMadeAnew(effort), keyAt: handleAt }, decide)
      },
    },
  ],
  goals: [
    {
      target: 'P3',
      what: 'cached: Millrace / Map floor',
      unit: 'x',
      value: timesOf('Millrace, cached', 'Map floor, cached'),
      atMost: 0.8,
    },
    {
      target: 'P3',
      what: 'cached: rate-limiter-flexible / Millrace',
      unit: 'x',
      value: timesOf('rate-limiter-flexible, cached', 'Millrace, cached'),
      atLeast: 3,
    },
    {
      what: "cached: express-rate-limit's store / Millrace",
      unit: 'x',
      value: timesOf("express-rate-limit's store, cached", 'Millrace, cached'),
    },
    {
      what: 'cached: without the addon / with it',
      unit: 'x',
      value: timesOf('Millrace, cached, without the addon', 'Millrace, cached'),
    },
    {
      what: 'made anew: Millrace / Map floor',
      unit: 'x',
      value: timesOf('Millrace, made anew', 'Map floor, made anew'),
    },
    {
      what: 'Millrace by handle / Map floor, cached',
      unit: 'x',
      value: timesOf('Millrace by handle', 'Map floor, cached'),
    },
  ],
  // Most of a round is filling tables, which a quick run can't do more often.
  rounds: { full: ROUNDS.full, quick: 1 },
}

function courseOn(keys: (count: number) => KeyAt<string>) {
  return ({ coldOperations }: Effort) => ({
    keyAt: keys(KEYS),
    order: randomOrder(KEYS, coldOperations),
    filled: inOrder(KEYS),
  })
}
