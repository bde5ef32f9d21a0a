// The conformance suite: claims about limiters, which hold in every place and for every algorithm.

import { type LimiterRule, MillraceError, type RuleOptions } from 'millrace'
import { test as any } from 'uvu'
import { parseSize } from '#millrace/core/sizes.js'
import type { Either } from '../engines/both.js'
import { test as withAddon } from '../native/addon-test.js'
import { memcachedTest as withMemcached, redisTest as withRedis } from '../redis/skip.js'
import { isLong, isSecondSide, sized } from '../size.js'
import { ALGORITHMS, type AlgorithmCase, Times, twoCounters } from './algorithms.js'
import {
  type Group,
  MORE_ON_REDIS,
  makerIn,
  type OnRedis,
  type Options,
  PLACES,
  type Place,
  type TestClock,
} from './places.js'

export type { Options } from './places.js'

/** A limiter under test, and what its algorithm promises. */
export interface Subject {
  readonly place: Place
  /** Whether about half of the keys are charged at two servers. */
  readonly isOnShards: boolean
  readonly limiter: Either
  readonly clock: TestClock
  /** Another limiter on the same counts, which decides on this thread. */
  second(): Either
  /** A limiter with counts of its own, with these options, in the same place, on the same clock. */
  make(options?: Options): Either
  /** Joins limiters of this place. */
  group(members: Readonly<Record<string, Either>>): Group
  /** What a rule must show. @default the first rule of the limiter */
  times(rule?: LimiterRule): Times
  readonly algorithm: AlgorithmCase
  /** The granularity of a window of this limit, where the rule or its default is `ms`. */
  granularityMs(windowMs: number, ms: number, limit?: number): number
}

/** The field `source` of a decision, by the places whose decisions have it. */
const SOURCES: Partial<Record<Place, string>> = {
  redis: 'redis',
  memcached: 'memcached',
  strict: 'memcached',
  backend: 'lmdb',
  service: 'service',
}
export const sourceIn = ({ place }: Subject): { source?: string } =>
  isServer(place) ? { source: SOURCES[place]! } : {}

/** Whether a server has the counts: then this process has no table of keys. */
export const isServer = (place: Place): boolean => place in SOURCES

/** Whether the store can list its keys, and so forget all of them. */
export const listsKeys = (place: Place): boolean => !isServer(place) || place === 'redis'

/** Claims about limiters, by their names. */
export type Claims = Readonly<Record<string, (subject: Subject) => Promise<void>>>

/** 5 a minute, in granules of a second. */
export const FIVE = { limit: 5, window: '1m', granularity: '1s', maxKeys: 20 } as const

/** The options of the limiters of a group of claims, without the algorithm. Undefined: it can't have such limits. */
type GroupOptions = Options | ((algorithm: AlgorithmCase) => Options | undefined)

/** Registers a claim in a place. */
type Register = (name: string, act: () => Promise<void>) => void

const TESTS: Partial<Record<Place, Register>> = {
  file: withAddon,
  redis: withRedis,
  memcached: withMemcached,
  strict: withMemcached,
}
/** Claims that need a list of all keys, or a group of limiters, which a store of values has not. */
const NOT_ON_VALUES = /forgets all keys| group/
/**
 * Claims that a client of a service can't have: `update` changes what
 * the client asks for, while what is penalized and used goes by the limits of the service.
 */
const NOT_ON_SERVICE =
  /^(token|leaky) bucket: (what is reserved, refunded and penalized by another limit|decides a batch in order, all or nothing|wakes a pending wait as soon as all rules)/
const FURTHER = PLACES.filter((place) => place !== 'inline')

/**
 * Tests each claim in every place with every algorithm. The quick tests try it with every algorithm on this
 * thread, and with the first algorithm in one further place, by turns. The full tests try it on a pool with one
 * algorithm, by turns, because each claim starts threads there; and on servers once, as the addon decides nothing there.
 * @param notOnServer matches the algorithm and the claim, where a limiter on a server differs: it has no table in
 * memory, no packed keys, and hears of other limiters' changes only when it asks
 * @param notOnMemcached the same, where only one on Memcached differs: it does not know which charges a counter has
 * @param notOnValues the same, where one on a store of values differs
 * @param moreOnRedis the further places on Redis where the claims hold
 * @param notOnService the same as `notOnServer`, where only a client of a service differs
 */
export function conform(
  groups: readonly (readonly [Claims, GroupOptions])[],
  notOnServer: RegExp = /^$/,
  notOnMemcached: RegExp = /^$/,
  notOnValues: RegExp = NOT_ON_VALUES,
  moreOnRedis: readonly OnRedis[] = MORE_ON_REDIS,
  notOnService: RegExp = NOT_ON_SERVICE,
): void {
  let tried = 0
  for (const [claims, options] of groups) {
    for (const [claim, verify] of Object.entries(claims)) {
      const further = FURTHER[tried++ % FURTHER.length]!
      for (const place of sized<readonly Place[]>({ quick: ['inline', further], full: PLACES })) {
        if (isServer(place) && isSecondSide) continue
        const test: Register = TESTS[place] ?? any
        const cases = algorithmsIn(place).flatMap((algorithm): [AlgorithmCase, Options][] => {
          const name = `${algorithm.name}: ${claim}`
          if (isServer(place) && notOnServer.test(name)) return []
          if (place === 'memcached' && notOnMemcached.test(name)) return []
          if (!listsKeys(place) && notOnValues.test(name)) return []
          if (place === 'service' && notOnService.test(name)) return []
          const own = typeof options === 'function' ? options(algorithm) : options
          if (own === undefined || (algorithm.onlyOnRedis !== undefined && place !== 'redis')) return []
          return [[algorithm, own]]
        })
        const isByTurns = place === 'pool' && !isLong
        for (const [algorithm, own] of isByTurns ? oneOf(cases, tried) : cases)
          test(`${place}, ${algorithm.name}: ${claim}`, () => tryIn(place, algorithm, own, verify))
      }
      for (const on of sized<typeof moreOnRedis>({ quick: [], full: isSecondSide ? [] : moreOnRedis })) {
        for (const algorithm of algorithmsOn(on)) {
          const name = `${algorithm.name}: ${claim}`
          const own = typeof options === 'function' ? options(algorithm) : options
          if (own !== undefined && !notOnServer.test(name))
            withRedis(`${on}, ${name}`, () => tryIn('redis', algorithm, own, verify, on))
        }
      }
    }
  }
  any.run()
}

/** One entry by turns: over all turns, each. */
const oneOf = <T>(all: readonly T[], turn: number): readonly T[] =>
  all.length === 0 ? [] : [all[turn % all.length]!]

function algorithmsIn(place: Place): readonly AlgorithmCase[] {
  if (place === 'memcached') return [twoCounters]
  if (place === 'inline') return ALGORITHMS
  const countsElsewhere = isServer(place) && place !== 'service' // an engine counts in its memory, as any limiter
  const quick = ALGORITHMS.slice(0, 1)
  const full = ALGORITHMS.filter(
    ({ isAlias, isNotOnRedis }) => !isAlias && !(countsElsewhere && isNotOnRedis),
  )
  const all = sized({ quick, full })
  return countsElsewhere ? all.map((anywhere) => ({ ...anywhere, ...anywhere.onRedis })) : all
}

/** The first algorithm; in `npm run test:long` shards have all that Redis has. */
function algorithmsOn(on: OnRedis): readonly AlgorithmCase[] {
  return on === 'shards' && isLong ? algorithmsIn('redis') : ALGORITHMS.slice(0, 1)
}

async function tryIn(
  place: Place,
  algorithm: AlgorithmCase,
  options: Options,
  verify: Claims[string],
  on: Place | OnRedis = place,
): Promise<void> {
  const maker = await makerIn(on)
  const { clock } = maker
  try {
    const make = (own = options) => maker.make(withAlgorithm(own, algorithm))
    const limiter = make()
    const second = () => maker.second(limiter)
    const times = (rule = limiter.rule) => new Times(algorithm, rule, clock)
    const granularityMs = (windowMs: number, ms: number, limit = limiter.rule.limit) =>
      algorithm.granularityMs?.({ windowMs, limit }) ?? ms
    const { group } = maker
    const isOnShards = on === 'shards'
    const own = { limiter, clock, second, make, group, times, granularityMs }
    await verify({ place, isOnShards, algorithm, ...own })
  } finally {
    await maker.close()
  }
}

function withAlgorithm(options: Options, algorithm: AlgorithmCase): Options {
  const { onlyOnRedis } = algorithm
  if (!('rules' in options))
    return { ...ruleWith(options as RuleOptions, algorithm), ...onlyOnRedis } as Options
  const rules = (options.rules as readonly RuleOptions[]).map((rule) => ruleWith(rule, algorithm))
  return { ...options, rules, ...onlyOnRedis } as Options
}

function ruleWith(rule: RuleOptions, { options, granularityMs, maxLimit }: AlgorithmCase): RuleOptions {
  if (granularityMs === undefined) return { ...rule, ...options }
  const { granularity, ...others } = rule
  const own = maxLimit === undefined ? {} : { maxLimit: sizeOf(rule, maxLimit) }
  return { ...others, ...own, ...options }
}

/** The largest limit of a rule, in its unit. */
function sizeOf({ limit, unit }: RuleOptions, maxLimit: (limit: number) => number): number {
  const [size, ofUnit] = [parseSize(limit)!, unit === undefined ? 1 : parseSize(unit)!]
  return maxLimit(Math.floor(size / ofUnit)) * ofUnit
}

/** The code of the error that `act` rejects with. */
export async function codeOf(act: () => Promise<unknown>): Promise<string> {
  const error = await thrownBy(act)
  if (error === undefined) return 'nothing was thrown'
  if (error instanceof MillraceError) return error.code
  throw error
}

export async function thrownBy(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  return undefined
}
