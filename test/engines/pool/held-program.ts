// Programs with pools whose threads are held at chosen steps: `node --import held.js held-program.js NAME` runs
// one. Each prints its result as one line of JSON, and must end by itself.
import { setEnvironmentData, type Worker } from 'node:worker_threads'
import { type AsyncLimiter, createLimiter, manualClock, type PoolOptions } from 'millrace'
import { SHRINK_AFTER_MS } from '#millrace/engines/pool/pool.js'
import { turn, until } from '../../limiter/support.js'
import {
  AT_END,
  AT_START,
  ENDS,
  EXIT,
  FREE,
  HELD,
  HELD_UP,
  HOLD,
  MIDWAY,
  STARTS,
  STEPS_LEFT,
  WORDS,
} from './held.js'

const LIMIT = 10_000
/** More than MOST_FAILURES of `pool.ts` and `threads.ts`. */
const ROUNDS = 14

const orders = new Int32Array(new SharedArrayBuffer(4 * WORDS))
setEnvironmentData(HELD_UP, orders.buffer)

const living = new Set<Worker>()
let ended = 0
process.on('worker', (thread) => {
  living.add(thread)
  thread.once('exit', () => {
    living.delete(thread)
    ended++
  })
})

const limiterOf = (pool: PoolOptions): AsyncLimiter =>
  createLimiter({ limit: LIMIT, window: '1h', maxKeys: 1_000, engine: 'pool', pool })

/** Only requests that the addon does not handle, such as `penalize`, can be held midway. */
const order = (place: number, what: number) => Atomics.store(orders, place, what)
const held = (place: number) => until(() => Atomics.load(orders, place) === HELD, 'a thread that is held')
function letGo(place: number, what = FREE): void {
  order(place, what)
  Atomics.notify(orders, place)
}

/**
 * A key of the first of two rings, and one of the second. The upper half of the fingerprint selects the ring.
 */
function keysOfTwoRings(limiter: AsyncLimiter): [string, string] {
  const keys = Array.from({ length: 64 }, (_, i) => `${i}`)
  const isSecond = (key: string) => limiter.handle(key).hi < 0
  return [keys.find((key) => !isSecond(key))!, keys.find(isSecond)!]
}

/** The number of rings that keys are sent to. No earlier request may be in flight. */
async function ringsInUse(limiter: AsyncLimiter): Promise<number> {
  await until(() => Atomics.load(orders, STARTS) === Atomics.load(orders, ENDS), 'the end of all servers')
  const before = Atomics.load(orders, STARTS)
  await Promise.all(Array.from({ length: 64 }, (_, i) => limiter.check(`${i}`)))
  return Atomics.load(orders, STARTS) - before
}

/**
 * Waits until the pool may shrink. Its timer started before this one with the same delay, so it fires first.
 */
const waitForShrink = () => new Promise((resolve) => setTimeout(resolve, SHRINK_AFTER_MS))

/** A pool of one or two threads, after a load that made it send keys to two. */
async function grown(): Promise<AsyncLimiter> {
  const limiter = limiterOf({ maxThreads: 2 })
  await limiter.check('a')
  await waitForShrink()
  do await Promise.all(Array.from({ length: 3_000 }, (_, i) => limiter.peek(`${i % 64}`)))
  while ((await ringsInUse(limiter)) < 2)
  return limiter
}

/** What a thread leaves that dies in a decision by two rules. */
export interface Left {
  readonly outcome: 'admitted' | 'refused' | 'lost'
  /** The units that each rule counts then. */
  readonly used: readonly number[]
  /** Whether the first rule then admits what it has left at least. */
  readonly isRestAdmitted: boolean
}

const RULES = [
  { name: 'first', limit: 10, window: '1m', granularity: '1s' },
  { name: 'second', limit: 20, window: '1d' },
]

/**
 * A decision of cost 2 by two rules, for each number of steps after which its thread dies, `stride` apart, until
 * it does not die any more. Before it, the key is charged each of `costs`; with `isLater`, each has left the
 * first rule's window when the next one follows.
 */
async function deathsInDecision(stride: number, costs: readonly number[], isLater: boolean): Promise<Left[]> {
  const clock = manualClock()
  const limiter = createLimiter({
    rules: RULES,
    maxKeys: 1_000,
    clock,
    engine: 'pool',
    pool: { maxThreads: 1 },
  })
  const all: Left[] = []
  for (let steps = 1; all.at(-1)?.outcome === 'lost' || all.length === 0; steps += stride) {
    const key = `${steps}`
    for (const cost of costs) {
      await limiter.check(key, cost)
      if (isLater) clock.advance(70_000)
    }
    order(STEPS_LEFT, steps)
    const outcome = await limiter.check(key, 2).then(
      ({ allowed }) => (allowed ? 'admitted' : 'refused'),
      ({ code }) => (code === 'ERR_MILLRACE_WORKER_LOST' ? 'lost' : code),
    )
    order(STEPS_LEFT, 0)
    const used = await Promise.all(RULES.map(({ name }) => limiter.usage(key, undefined, { rule: name })))
    const rest = await limiter.check(key, 7, { limit: { second: 100 } })
    all.push({ outcome, used, isRestAdmitted: rest.allowed })
  }
  await limiter.close()
  return all
}

const programs: Record<string, () => Promise<unknown>> = {
  /** The number of servers that have begun before ready() and after, and of living threads. */
  async ready() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 3 })
    const before = Atomics.load(orders, STARTS)
    await limiter.ready()
    const after = Atomics.load(orders, STARTS)
    return { before, after, threads: living.size }
  },

  /** A thread ends its server, and exits while the next thread has a request of the same ring in flight. */
  async 'handed over'() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 2 })
    order(AT_END, HOLD)
    await limiter.penalize('a', 1)
    await held(AT_END)
    order(MIDWAY, HOLD)
    const second = limiter.penalize('a', 1)
    await held(MIDWAY)
    letGo(AT_END, EXIT)
    await until(() => ended === 1, 'the end of the first')
    for (let i = 0; i < 10; i++) await turn()
    letGo(MIDWAY)
    return [await second, await limiter.usage('a')]
  },

  /**
   * In each round a sleeping thread is terminated, the next one exits as it starts, and the one after it
   * replies.
   */
  async mortal() {
    const limiter = limiterOf({ maxThreads: 1 })
    const remaining: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      await limiter.check('a')
      order(AT_START, EXIT)
      const [thread] = living
      const next = new Promise<{ remaining: number }>((resolve, reject) =>
        thread!.once('exit', () => limiter.check('a').then(resolve, reject)),
      )
      void thread!.terminate()
      remaining.push((await next).remaining)
    }
    return { remaining: remaining.at(-1), isAll: ended >= 2 * ROUNDS }
  },

  async shrink() {
    const limiter = await grown()
    await waitForShrink()
    return ringsInUse(limiter)
  },

  /** A thread dies in the first decision on a key, in one on a known key, and where the second rule refuses. */
  async 'between rules'() {
    return {
      unknown: await deathsInDecision(stride, [], false),
      known: await deathsInDecision(stride, [1], false),
      refused: await deathsInDecision(stride, [10, 10], true),
    }
  },

  /** While a key has a request in flight in the second ring, its next request does not go to the first. */
  async 'no shrinking under way'() {
    const limiter = await grown()
    const [other, key] = keysOfTwoRings(limiter)
    const before = await limiter.usage(key)
    order(MIDWAY, HOLD)
    const first = limiter.penalize(key, 1)
    await held(MIDWAY)
    await waitForShrink()
    const second = limiter.usage(key)
    await limiter.check(other) // its reply follows all earlier ones of the first ring
    letGo(MIDWAY)
    return [await first, (await second) - before]
  },
}

const stride = Number(process.argv[3] ?? 1)
console.log(JSON.stringify(await programs[process.argv[2]!]!()))
