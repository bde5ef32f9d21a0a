import { type Benchmark, type Contender, type Goal, timesOf, timesOfBeyond } from '../benchmark.js'
import { awaited, direct } from '../contenders.js'
import { cached, inOrder, type KeyAt, madeAnew, randomOrder } from '../keys.js'
import { millrace, millraceWithoutAddon } from '../millrace.js'
import {
  expressRateLimitStore,
  fastifyLocalStore,
  mapFloor,
  rateLimiterFlexible,
  tokenBuckets,
} from '../peers.js'

const KEYS = 10_000

const MAKING = 'only making the strings'

export const check: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    ...contendersOn('made anew', madeAnew),
    ...contendersOn('cached', cached),
    direct(
      MAKING,
      ({ operations }) => ({ keyAt: madeAnew(KEYS), order: randomOrder(KEYS, operations) }),
      () => isKey,
    ),
  ],
  goals: [
    {
      target: 'P1',
      what: 'made anew: Millrace / Map floor',
      unit: 'x',
      value: timesOf('Millrace, made anew', 'Map floor, made anew'),
      atMost: 1.3,
      stretch: 1,
    },
    {
      what: 'the same, without making the strings',
      unit: 'x',
      value: timesOfBeyond('Millrace, made anew', 'Map floor, made anew', MAKING),
    },
    {
      target: 'P1',
      what: 'cached: Millrace / Map floor',
      unit: 'x',
      value: timesOf('Millrace, cached', 'Map floor, cached'),
      atMost: 1.7,
      stretch: 1,
    },
    ...goalsAgainstPeers('made anew'),
    ...goalsAgainstPeers('cached'),
    ...['made anew', 'cached'].map(
      (strings): Goal => ({
        what: `${strings}: without the addon / with it`,
        unit: 'x',
        value: timesOf(withoutAddon(strings), `Millrace, ${strings}`),
      }),
    ),
  ],
}

function withoutAddon(strings: string): string {
  return `Millrace, ${strings}, without the addon`
}

function contendersOn(strings: string, keys: (count: number) => KeyAt<string>): Contender[] {
  const course = ({ operations }: { operations: number }) => ({
    keyAt: keys(KEYS),
    order: randomOrder(KEYS, operations),
    filled: inOrder(KEYS),
  })
  return [
    direct(`Millrace, ${strings}`, course, () => millrace(KEYS)),
    direct(withoutAddon(strings), course, () => millraceWithoutAddon(KEYS)),
    direct(`Map floor, ${strings}`, course, mapFloor),
    awaited(`rate-limiter-flexible, ${strings}`, course, rateLimiterFlexible),
    awaited(`express-rate-limit's store, ${strings}`, course, expressRateLimitStore),
    direct(`@fastify/rate-limit's store, ${strings}`, course, () => fastifyLocalStore(KEYS)),
    direct(`limiter's token buckets, ${strings}`, course, tokenBuckets),
  ]
}

function goalsAgainstPeers(strings: string): Goal[] {
  const ours = `Millrace, ${strings}`
  return [
    {
      target: 'P1',
      what: `${strings}: rate-limiter-flexible / Millrace`,
      unit: 'x',
      value: timesOf(`rate-limiter-flexible, ${strings}`, ours),
      atLeast: 2.5,
    },
    {
      target: 'P1',
      what: `${strings}: express-rate-limit's store / Millrace`,
      unit: 'x',
      value: timesOf(`express-rate-limit's store, ${strings}`, ours),
      atLeast: 1,
    },
  ]
}

function isKey(key: string): boolean {
  return key.length > 0
}
