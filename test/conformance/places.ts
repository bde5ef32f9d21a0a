// Where limiters of the conformance suite keep their counts and who decides. A new engine joins PLACES.
import {
  attachLimiter,
  createLimiter,
  group,
  type Limiter,
  type LimiterOptions,
  manualClock,
  type RulesLimiterOptions,
} from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { createLimiterOn } from 'millrace/internal'
import { RULE_OPTIONS } from '#millrace/core/rule-options.js'
import { backendMaker } from '../backend/conformance-place.js'
import { serviceMaker } from '../client/conformance-place.js'
import type { Either } from '../engines/both.js'
import { START_MS } from '../limiter/support.js'
import { memcachedMaker, strictMaker } from '../memcached/conformance-place.js'
import { redisMaker } from '../redis/conformance-place.js'
import { folder } from '../shared-file/processes.js'
import { OtherThread } from './thread.js'

/**
 * inline: this thread decides, on memory of its own. thread: another thread decides, attached to that memory.
 * pool: workers decide. file: this thread decides, on a file. (The threads of a pool on a file read the clock
 * of the machine, which a test can't set.) redis: a Redis server decides. memcached: the limiter decides
 * by counters on a Memcached. strict: it decides by values on a Memcached. backend: it decides by values in the store that
 * the docs have for an example. service: an engine of the decision service decides, asked by its client.
 */
const ALL = [
  'inline',
  'thread',
  'pool',
  'file',
  'redis',
  'memcached',
  'strict',
  'backend',
  'service',
] as const
export type Place = (typeof ALL)[number]

/** Set by `config/conformance.test.ts`: inline limiters have a configuration store, and other places are left out. */
const withStore = process.env.MILLRACE_TEST_CONFIG === '1'
export const PLACES: readonly Place[] = withStore ? ['inline'] : ALL

/**
 * A Cluster decides, a server to which iovalkey connects, or two servers as shards. These are tried with one algorithm,
 * at full size.
 */
export const MORE_ON_REDIS = ['cluster', 'iovalkey', 'shards'] as const
export type OnRedis = 'redis' | (typeof MORE_ON_REDIS)[number]

/** The options of a limiter. */
export type Options = LimiterOptions | RulesLimiterOptions

export type Group = ReturnType<typeof group<{ [name: string]: Either }>>

export interface TestClock {
  now(): number
  /** Moves the clock, and wakes the pending calls of `wait`. */
  advance(ms: number): void
}

/** Makes limiters of one place, on one clock. */
export interface Maker {
  readonly clock: TestClock
  make(options: Options): Either
  /** Another limiter on the counts of one that it has made. It decides on this thread, or on a server. */
  second(limiter: Either): Either
  /** Joins limiters of this place. */
  group(members: Readonly<Record<string, Either>>): Group
  close(): Promise<void>
}

/** The first limiter of a claim has two workers, so keys have different rings. The others have one each. */
const POOLS = [2, 1].map((threads) => ({ minThreads: threads, maxThreads: threads }))

export function makerIn(place: Place | OnRedis): Maker | Promise<Maker> {
  switch (place) {
    case 'inline':
      return inMemory((options) =>
        createLimiter((withStore ? configured(options) : options) as LimiterOptions),
      )
    case 'pool':
      return inMemory((options, earlier) => {
        const pool = POOLS[Math.min(earlier, 1)]!
        return createLimiter({ ...(options as LimiterOptions), engine: 'pool', pool })
      })
    case 'thread':
      return inThread()
    case 'file':
      return inFile()
    case 'memcached':
      return memcachedMaker()
    case 'strict':
      return strictMaker()
    case 'backend':
      return backendMaker()
    case 'service':
      return serviceMaker()
    case 'redis':
    case 'cluster':
    case 'iovalkey':
    case 'shards':
      return redisMaker(place)
  }
}

function inMemory(create: (options: Options, earlier: number) => Either): Maker {
  const clock = manualClock(START_MS)
  const all: Either[] = []
  return {
    clock,
    make: (options) => kept(all, create({ ...options, clock }, all.length)),
    second: (limiter) =>
      kept(all, attachLimiter(limiter.share(), withStore ? { config: memoryConfig() } : {})),
    group,
    close: () => closeAll(all),
  }
}

/** The same limiter with an empty store: all keys have the default. */
function configured(options: Options): object {
  const isOfRule = ([name]: [string, unknown]) => name === 'rules' || RULE_OPTIONS.includes(name)
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const table = Object.fromEntries(given.filter((entry) => !isOfRule(entry)))
  return { ...table, config: memoryConfig(), default: Object.fromEntries(given.filter(isOfRule)) }
}

let thread: OtherThread | undefined

function inThread(): Maker {
  thread ??= new OtherThread()
  const { library } = thread
  const clock = manualClock(START_MS)
  const all: Either[] = []
  const own = new Map<Either, Limiter>()
  return {
    clock,
    make(options) {
      const limiter = kept(all, createLimiter({ ...(options as LimiterOptions), clock }))
      const attached = kept(all, library.attachLimiter(limiter.share()))
      own.set(attached, limiter)
      return attached
    },
    second: (limiter) => own.get(limiter)!,
    group: (members) => library.group(members) as Group,
    close: () => closeAll(all),
  }
}

const at = folder()
let files = 0

function inFile(): Maker {
  let nowMs = START_MS
  const machine = {
    bootId: () => Int32Array.of(1, 2, 3, 4),
    monotonicMs: () => nowMs,
    uptimeMs: () => nowMs,
    wallMs: () => nowMs,
    wallErrorMs: () => 0,
  }
  const all: Limiter[] = []
  const opened = new Map<Either, () => Limiter>()
  return {
    clock: {
      now: () => nowMs,
      advance(ms) {
        nowMs += ms
        // The timers of a wait run by the real clock. A change of the limit ends them.
        for (const limiter of all) limiter.update(limiter.rule.name, { limit: limiter.rule.limit })
      },
    },
    make(options) {
      const shared = { file: at(`${++files}.arena`) }
      const open = () => kept(all, createLimiterOn(machine, { ...(options as LimiterOptions), shared }))
      const limiter = open()
      opened.set(limiter, open)
      return limiter
    },
    second: (limiter) => opened.get(limiter)!(),
    group,
    close: () => closeAll(all),
  }
}

function kept<T extends Either>(all: Either[], limiter: T): T {
  all.push(limiter)
  return limiter
}

async function closeAll(limiters: readonly Either[]): Promise<void> {
  await Promise.all(limiters.map((limiter) => limiter.close()))
}
