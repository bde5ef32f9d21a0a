// Programs with pools whose threads are held where it matters, one by its name: `node --import held.js
// held-program.js NAME`. Each prints what it has found on one line, as JSON, and is to end by itself.
import { setEnvironmentData, type Worker } from 'node:worker_threads'
import { type AsyncLimiter, createLimiter, type PoolOptions } from 'millrace'
import { SHRINK_AFTER_MS } from '#millrace/engines/pool.js'
import { turn, until } from '../../limiter/support.js'
import { AT_END, AT_START, ENDS, EXIT, FREE, HELD, HELD_UP, HOLD, MIDWAY, STARTS, WORDS } from './held.js'

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

/** Threads are held in requests that the addon does not answer, such as `penalize`. */
const order = (place: number, what: number) => Atomics.store(orders, place, what)
const held = (place: number) => until(() => Atomics.load(orders, place) === HELD, 'a thread that is held')
function letGo(place: number, what = FREE): void {
  order(place, what)
  Atomics.notify(orders, place)
}

/** A key of the first of two rings, and one of the second: the upper half of a fingerprint says which. */
function keysOfTwoRings(limiter: AsyncLimiter): [string, string] {
  const keys = Array.from({ length: 64 }, (_, i) => `${i}`)
  const isSecond = (key: string) => limiter.handle(key).hi < 0
  return [keys.find((key) => !isSecond(key))!, keys.find(isSecond)!]
}

/** The rings that keys are dealt to. All that was asked before has been answered. */
async function ringsDealtTo(limiter: AsyncLimiter): Promise<number> {
  await until(() => Atomics.load(orders, STARTS) === Atomics.load(orders, ENDS), 'the end of all answerers')
  const before = Atomics.load(orders, STARTS)
  await Promise.all(Array.from({ length: 64 }, (_, i) => limiter.check(`${i}`)))
  return Atomics.load(orders, STARTS) - before
}

/** The pool's timer began before this one and has the same delay, so it fires first. */
const shrinkTime = () => new Promise((resolve) => setTimeout(resolve, SHRINK_AFTER_MS))

/** A pool of one thread or two, and a load because of which keys are dealt to two. */
async function grown(): Promise<AsyncLimiter> {
  const limiter = limiterOf({ maxThreads: 2 })
  await limiter.check('a')
  await shrinkTime()
  do await Promise.all(Array.from({ length: 3_000 }, (_, i) => limiter.peek(`${i % 64}`)))
  while ((await ringsDealtTo(limiter)) < 2)
  return limiter
}

const programs: Record<string, () => Promise<unknown>> = {
  /** How many answerers have begun, and living threads, before ready() and after. */
  async ready() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 3 })
    const before = Atomics.load(orders, STARTS)
    await limiter.ready()
    const after = Atomics.load(orders, STARTS)
    return { before, after, threads: living.size }
  },

  /**
   * A thread hands over its ring, and exits before that is known, while the next thread is amid a request.
   */
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
   * Asleep, a thread is ended, and the next one exits as it starts; the one after that answers, each time.
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
    await shrinkTime()
    return ringsDealtTo(limiter)
  },

  /** While a key is asked about in the second ring, it is not dealt to the first. */
  async 'no shrinking under way'() {
    const limiter = await grown()
    const [other, key] = keysOfTwoRings(limiter)
    const before = await limiter.usage(key)
    order(MIDWAY, HOLD)
    const first = limiter.penalize(key, 1)
    await held(MIDWAY)
    await shrinkTime()
    const second = limiter.usage(key)
    await limiter.check(other) // answered behind whatever went to the first ring
    letGo(MIDWAY)
    return [await first, (await second) - before]
  },
}

console.log(JSON.stringify(await programs[process.argv[2]!]!()))
