import { ThrottlerStorageService } from '@nestjs/throttler'
import { RateLimiter as OriginalRateLimiter } from 'limiter'
import { MillraceStore as ExpressStore } from 'millrace/compat/express-rate-limit'
import { MillraceStore as FastifyStore } from 'millrace/compat/fastify-rate-limit'
import { RateLimiter } from 'millrace/compat/limiter'
import { MillraceThrottlerStorage } from 'millrace/compat/nestjs-throttler'
import { RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Benchmark, Contender, Figures } from '../benchmark.js'
import { freshKeys, inOrder, type KeyAt, randomOrder } from '../keys.js'
import { expressRateLimitStore, fastifyLocalStore, LIMIT, WINDOW_MS } from '../peers.js'
import { type AsyncDecide, collectGarbage, type Decide, timeAwaited, timeDecisions } from '../timing.js'

const KEYS = 10_000
/** Enough for each key of the timed decisions, and counted in a log. */
const SMALL_LIMIT = 59
/** The default of express-rate-limit. Most of the timed hits are refused. */
const SMALLEST_LIMIT = 5
const MEMORY_KEYS = 200_000
const FEW_KEYS = 20_000
/** Every key is hit this many times before its memory is measured. */
const HITS = 3

/** A package and its drop-in: what a call of it is, for a table of so many keys. */
export type DropIn = { readonly name: string } & (
  | { readonly direct: (maxKeys: number) => Decide<string> }
  | { readonly awaited: (maxKeys: number) => AsyncDecide<string, unknown> }
)

const fixed = { algorithm: 'fixed-window' } as const
const PER_MINUTE = { tokensPerInterval: LIMIT, interval: WINDOW_MS } as const
const FLEXIBLE = { points: LIMIT, duration: WINDOW_MS / 1000 } as const

const DROP_INS: readonly DropIn[] = [
  { name: 'express-rate-limit 8', awaited: () => expressRateLimitStore() as AsyncDecide<string, unknown> },
  { name: `express-rate-limit: Millrace, limit ${LIMIT}`, awaited: expressWith({}, LIMIT) },
  { name: `express-rate-limit: Millrace, limit ${SMALL_LIMIT}`, awaited: expressWith({}, SMALL_LIMIT) },
  { name: `express-rate-limit: Millrace, limit ${SMALLEST_LIMIT}`, awaited: expressWith({}, SMALLEST_LIMIT) },
  { name: 'express-rate-limit: Millrace, fixed window', awaited: expressWith(fixed, LIMIT) },
  { name: '@fastify/rate-limit 11', direct: fastifyLocalStore },
  { name: `@fastify/rate-limit: Millrace, limit ${LIMIT}`, direct: fastifyWith({}, LIMIT) },
  { name: `@fastify/rate-limit: Millrace, limit ${SMALL_LIMIT}`, direct: fastifyWith({}, SMALL_LIMIT) },
  { name: `@fastify/rate-limit: Millrace, limit ${SMALLEST_LIMIT}`, direct: fastifyWith({}, SMALLEST_LIMIT) },
  { name: '@fastify/rate-limit: Millrace, fixed window', direct: fastifyWith(fixed, LIMIT) },
  { name: '@nestjs/throttler 6', awaited: () => throttled(new ThrottlerStorageService()) },
  {
    name: '@nestjs/throttler: Millrace',
    awaited: (maxKeys) => throttled(new MillraceThrottlerStorage({ maxKeys })),
  },
  { name: 'rate-limiter-flexible 11', awaited: () => flexible(new RateLimiterMemory(FLEXIBLE)) },
  { name: `rate-limiter-flexible: Millrace, limit ${LIMIT}`, awaited: flexibleWith({}) },
  {
    name: `rate-limiter-flexible: Millrace, limit ${SMALL_LIMIT}`,
    awaited: flexibleWith({ points: SMALL_LIMIT }),
  },
  { name: 'rate-limiter-flexible: Millrace, fixed window', awaited: flexibleWith(fixed) },
  { name: 'limiter 4, one for each key', direct: () => eachItsOwn(OriginalRateLimiter) },
  { name: 'limiter: Millrace, one for each key', direct: () => eachItsOwn(RateLimiter) },
]

type Compat = ConstructorParameters<typeof ExpressStore>[0]

function expressWith(options: Compat, limit: number): (maxKeys: number) => AsyncDecide<string, unknown> {
  return (maxKeys) => {
    const store = new ExpressStore({ ...options, maxKeys })
    store.init({ windowMs: WINDOW_MS, limit })
    return { decide: (key) => store.increment(key), isAllowed: isAnswer }
  }
}

function fastifyWith(options: Compat, limit: number): (maxKeys: number) => Decide<string> {
  return (maxKeys) => {
    const Store = FastifyStore.with({ ...options, maxKeys })
    const store = new Store()
    let current = 0
    return (key) => {
      store.incr(key, (_, result) => (current = result?.current ?? 0), WINDOW_MS, limit)
      return current > 0
    }
  }
}

/** The original keeps the time of each hit and looks at all of them, so the limit is one that tests of it have. */
function throttled(storage: Pick<ThrottlerStorageService, 'increment'>): AsyncDecide<string, unknown> {
  return {
    decide: (key) => storage.increment(key, WINDOW_MS, SMALL_LIMIT, WINDOW_MS, 'default'),
    isAllowed: isAnswer,
  }
}

function flexibleWith(more: object): (maxKeys: number) => AsyncDecide<string, unknown> {
  return (maxKeys) => flexible(new RateLimiterMillrace({ ...FLEXIBLE, ...more, maxKeys }))
}

/** A refusal is an answer, too. */
const flexible = (limiter: Pick<RateLimiterMemory, 'consume'>): AsyncDecide<string, unknown> => ({
  decide: (key) => limiter.consume(key).catch((refused) => refused),
  isAllowed: isAnswer,
})

type TakesTokens = Pick<RateLimiter, 'tryRemoveTokens'>

/** The package has no keys. */
function eachItsOwn(Limiter: new (options: typeof PER_MINUTE) => TakesTokens): Decide<string> {
  const limiters = new Map<string, TakesTokens>()
  return (key) => {
    let limiter = limiters.get(key)
    if (limiter === undefined) {
      limiter = new Limiter(PER_MINUTE)
      limiters.set(key, limiter)
    }
    return limiter.tryRemoveTokens(1)
  }
}

/** A few keys are hit more often than a small limit allows. */
const isAnswer = (answer: unknown): boolean => answer !== undefined

export const compat: Benchmark = {
  title: `drop-ins and their originals: ${KEYS.toLocaleString('en')} hot keys; memory at ${MEMORY_KEYS.toLocaleString('en')} keys`,
  units: {
    ns: 'nanoseconds per call',
    bytes: `bytes of resident memory per key, hit ${HITS} times`,
    heapBytes: 'bytes of these on the heap',
  },
  contenders: DROP_INS.map(contender),
  goals: [],
}

function contender(dropIn: DropIn): Contender {
  return {
    name: dropIn.name,
    async measure({ operations }): Promise<Figures> {
      const bytes = await measureMemory(dropIn)
      const workload = {
        keyAt: freshKeys(KEYS),
        order: randomOrder(KEYS, operations),
        filled: inOrder(KEYS),
      }
      const time =
        'direct' in dropIn
          ? timeDecisions(workload, dropIn.direct(KEYS))
          : await timeAwaited(workload, dropIn.awaited(KEYS))
      return { ...time, ...bytes }
    },
  }
}

/** Keeps what was filled until the measurement has ended. */
const retained = new Set<unknown>()

/** A small table comes first, so that the code and the young generation do not count. */
async function measureMemory(dropIn: DropIn): Promise<Figures> {
  const keyAt = freshKeys(MEMORY_KEYS)
  retained.add(await fill(dropIn, keyAt, FEW_KEYS))
  collectGarbage()
  const before = process.memoryUsage()
  retained.add(await fill(dropIn, keyAt, MEMORY_KEYS))
  collectGarbage()
  const after = process.memoryUsage()
  retained.clear()
  return {
    bytes: (after.rss - before.rss) / MEMORY_KEYS,
    heapBytes: (after.heapUsed - before.heapUsed) / MEMORY_KEYS,
  }
}

async function fill(dropIn: DropIn, keyAt: KeyAt<string>, keys: number): Promise<unknown> {
  if ('direct' in dropIn) {
    const decide = dropIn.direct(keys)
    for (let hit = 0; hit < HITS; hit++) for (let i = 0; i < keys; i++) decide(keyAt(i))
    return decide
  }
  const peer = dropIn.awaited(keys)
  for (let hit = 0; hit < HITS; hit++) for (let i = 0; i < keys; i++) await peer.decide(keyAt(i))
  return peer
}
