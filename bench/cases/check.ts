import { type Benchmark, type Contender, type Goal, ratioAbove, ratioOf } from '../benchmark.js'
import { awaited, direct } from '../contenders.js'
import { cachedKeys, freshKeys, inOrder, type KeyAt, randomOrder } from '../keys.js'
import { millrace, millraceWithoutAddon } from '../millrace.js'
import {
  bareMap,
  expressRateLimitStore,
  fastifyLocalStore,
  rateLimiterFlexible,
  tokenBuckets,
} from '../peers.js'

const KEYS = 10_000

const NO_LIMITER = 'no limiter, fresh strings'

export const check: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    ...contendersOn('fresh strings', freshKeys),
    ...contendersOn('cached strings', cachedKeys),
    direct(
      NO_LIMITER,
      ({ operations }) => ({ keyAt: freshKeys(KEYS), order: randomOrder(KEYS, operations) }),
      () => isKey,
    ),
  ],
  goals: [
    {
      target: 'P1',
      label: 'fresh strings: Millrace / bare Map',
      unit: 'x',
      value: ratioOf('Millrace, fresh strings', 'bare Map, fresh strings'),
      withoutAddon: ratioOf(withoutAddon('fresh strings'), 'bare Map, fresh strings'),
      atMost: 1.3,
      stretch: 1,
    },
    {
      label: 'fresh strings: Millrace / bare Map, creation of the strings subtracted',
      unit: 'x',
      value: ratioAbove('Millrace, fresh strings', 'bare Map, fresh strings', NO_LIMITER),
    },
    {
      target: 'P1',
      label: 'cached strings: Millrace / bare Map',
      unit: 'x',
      value: ratioOf('Millrace, cached strings', 'bare Map, cached strings'),
      withoutAddon: ratioOf(withoutAddon('cached strings'), 'bare Map, cached strings'),
      atMost: 1.7,
      stretch: 1,
    },
    ...goalsAgainstPeers('fresh strings'),
    ...goalsAgainstPeers('cached strings'),
    ...['fresh strings', 'cached strings'].map(
      (strings): Goal => ({
        label: `${strings}: without the addon / with it`,
        unit: 'x',
        value: ratioOf(withoutAddon(strings), `Millrace, ${strings}`),
      }),
    ),
  ],
}

function withoutAddon(strings: string): string {
  return `Millrace, ${strings}, without the addon`
}

function contendersOn(strings: string, keys: (count: number) => KeyAt<string>): Contender[] {
  const workload = ({ operations }: { operations: number }) => ({
    keyAt: keys(KEYS),
    order: randomOrder(KEYS, operations),
    filled: inOrder(KEYS),
  })
  return [
    direct(`Millrace, ${strings}`, workload, () => millrace(KEYS)),
    direct(withoutAddon(strings), workload, () => millraceWithoutAddon(KEYS)),
    direct(`bare Map, ${strings}`, workload, bareMap),
    awaited(`rate-limiter-flexible, ${strings}`, workload, rateLimiterFlexible),
    awaited(`express-rate-limit's store, ${strings}`, workload, expressRateLimitStore),
    direct(`@fastify/rate-limit's store, ${strings}`, workload, () => fastifyLocalStore(KEYS)),
    direct(`limiter's token buckets, ${strings}`, workload, tokenBuckets),
  ]
}

function goalsAgainstPeers(strings: string): Goal[] {
  const millraceName = `Millrace, ${strings}`
  return [
    {
      target: 'P1',
      label: `${strings}: rate-limiter-flexible / Millrace`,
      unit: 'x',
      value: ratioOf(`rate-limiter-flexible, ${strings}`, millraceName),
      withoutAddon: ratioOf(`rate-limiter-flexible, ${strings}`, withoutAddon(strings)),
      atLeast: 2.5,
    },
    {
      target: 'P1',
      label: `${strings}: express-rate-limit's store / Millrace`,
      unit: 'x',
      value: ratioOf(`express-rate-limit's store, ${strings}`, millraceName),
      withoutAddon: ratioOf(`express-rate-limit's store, ${strings}`, withoutAddon(strings)),
      atLeast: 1,
    },
  ]
}

function isKey(key: string): boolean {
  return key.length > 0
}
