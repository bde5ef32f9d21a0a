import { type Benchmark, type Effort, ROUNDS, ratioOf } from '../benchmark.js'
import { awaited, direct } from '../contenders.js'
import { cachedKeys, freshKeys, inOrder, type KeyAt, randomOrder } from '../keys.js'
import { millrace, millraceHandles, millraceWithoutAddon } from '../millrace.js'
import { bareMap, expressRateLimitStore, rateLimiterFlexible } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 1_000_000

/**
 * The targets are for cached strings in an array: every contender then fetches the key's string from memory.
 * Fresh strings come from the young generation, which the processor's caches hold.
 */
const onCached = courseOn(cachedKeys)
const onFresh = courseOn(freshKeys)

export const million: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} keys in random order, all in the table`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    direct('Millrace, cached strings', onCached, () => millrace(KEYS)),
    direct('Millrace, cached strings, without the addon', onCached, () => millraceWithoutAddon(KEYS)),
    direct('bare Map, cached strings', onCached, bareMap),
    awaited('rate-limiter-flexible, cached strings', onCached, rateLimiterFlexible),
    awaited("express-rate-limit's store, cached strings", onCached, expressRateLimitStore),
    direct('Millrace, fresh strings', onFresh, () => millrace(KEYS)),
    direct('bare Map, fresh strings', onFresh, bareMap),
    {
      name: 'Millrace by handle',
      measure(effort) {
        const { handleAt, decide } = millraceHandles(freshKeys(KEYS), KEYS)
        return timeDecisions({ ...onFresh(effort), keyAt: handleAt }, decide)
      },
    },
  ],
  goals: [
    {
      target: 'P3',
      label: 'cached strings: Millrace / bare Map',
      unit: 'x',
      value: ratioOf('Millrace, cached strings', 'bare Map, cached strings'),
      withoutAddon: ratioOf('Millrace, cached strings, without the addon', 'bare Map, cached strings'),
      atMost: 0.8,
    },
    {
      target: 'P3',
      label: 'cached strings: rate-limiter-flexible / Millrace',
      unit: 'x',
      value: ratioOf('rate-limiter-flexible, cached strings', 'Millrace, cached strings'),
      withoutAddon: ratioOf(
        'rate-limiter-flexible, cached strings',
        'Millrace, cached strings, without the addon',
      ),
      atLeast: 3,
    },
    {
      label: "cached strings: express-rate-limit's store / Millrace",
      unit: 'x',
      value: ratioOf("express-rate-limit's store, cached strings", 'Millrace, cached strings'),
    },
    {
      label: 'cached strings: without the addon / with it',
      unit: 'x',
      value: ratioOf('Millrace, cached strings, without the addon', 'Millrace, cached strings'),
    },
    {
      label: 'fresh strings: Millrace / bare Map',
      unit: 'x',
      value: ratioOf('Millrace, fresh strings', 'bare Map, fresh strings'),
    },
    {
      label: 'Millrace by handle / bare Map, cached strings',
      unit: 'x',
      value: ratioOf('Millrace by handle', 'bare Map, cached strings'),
    },
  ],
  // One quick round: filling the tables takes most of its time.
  rounds: { full: ROUNDS.full, quick: 1 },
}

function courseOn(keys: (count: number) => KeyAt<string>) {
  return ({ coldOperations }: Effort) => ({
    keyAt: keys(KEYS),
    order: randomOrder(KEYS, coldOperations),
    filled: inOrder(KEYS),
  })
}
