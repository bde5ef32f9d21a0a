// Programs with pools, one by its name: `node program.js NAME`. Each says what it has found on one line, as
// JSON, and is to end by itself.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type AsyncLimiter, createLimiter, MillraceError, type PoolOptions } from 'millrace'
import { until } from '../../limiter/support.js'

const LIMIT = 10

const limiterOf = (pool: PoolOptions = {}): AsyncLimiter =>
  createLimiter({ limit: LIMIT, window: '1h', maxKeys: 1_000, engine: 'pool', pool })

const codeOf = (error: unknown): string =>
  error instanceof MillraceError ? error.code : `no error of ours: ${error}`

/** `codeOf` of each that rejected, and how many did so. */
function countCodes(outcomes: PromiseSettledResult<unknown>[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) {
    const code = outcome.status === 'rejected' ? codeOf(outcome.reason) : 'answered'
    counts[code] = (counts[code] ?? 0) + 1
  }
  return counts
}

const threads: Worker[] = []
let ended = 0
process.on('worker', (thread) => {
  threads.push(thread)
  thread.once('exit', () => ended++)
})

const IDLE_MS = 300
/** The least that is allowed of each limit. */
const LEAST = {
  maxOldGenerationSizeMb: 10,
  maxYoungGenerationSizeMb: 0.01,
  codeRangeSizeMb: 0.01,
  stackSizeMb: 1,
}

const programs: Record<string, () => Promise<unknown>> = {
  /** Asks nothing. */
  async unasked() {
    limiterOf()
    return 'made'
  },

  async idle() {
    const limiter = limiterOf()
    return (await limiter.check('a')).remaining
  },

  /** Nothing but the answer keeps the process: each comes when the pool has fallen asleep or ended, too. */
  async pending() {
    const limiter = limiterOf()
    const remaining: number[] = []
    for (let i = 0; i < 3; i++) {
      remaining.push((await limiter.check('a')).remaining)
      await new Promise((resolve) => setTimeout(resolve, 60 * i))
    }
    const { allowed } = await limiter.stats()
    return [...remaining, await limiter.usage('a'), allowed]
  },

  /** The thread that is to answer ends, and the next one is only being started. */
  async 'pending after a death'() {
    const limiter = limiterOf()
    await limiter.check('a')
    const call = limiter.check('a')
    void threads[0]!.terminate()
    return Object.keys(countCodes(await Promise.allSettled([call, limiter.usage('b')]))).filter(
      (code) => code !== 'ERR_MILLRACE_WORKER_LOST',
    )
  },

  /** How much processor time all threads take while nothing is asked, of the time that passes. */
  async rest() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 2 })
    await limiter.checkMany(Array.from({ length: 500 }, (_, i) => `${i}`))
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS)) // optimized code is still being made
    const before = process.cpuUsage()
    const fromMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000 / (performance.now() - fromMs)
  },

  async many() {
    const limiters = Array.from({ length: 20 }, () => limiterOf())
    const all = limiters.flatMap((limiter) => Array.from({ length: LIMIT + 1 }, () => limiter.check('a')))
    const allowed = (await Promise.all(all)).filter((decision) => decision.allowed).length
    await Promise.all(limiters.map((limiter) => limiter.close()))
    return { allowed, threads: threads.length, ended }
  },

  /** Another program, in a thread. */
  async inside() {
    const thread = new Worker(new URL(import.meta.url), { workerData: 'pending' })
    let said: unknown
    thread.on('message', (message) => (said = message))
    const code = await new Promise((resolve) => thread.once('exit', resolve))
    return { said, code }
  },

  async make() {
    try {
      limiterOf()
      return 'made'
    } catch (error) {
      return { code: codeOf(error), cause: ((error as Error).cause as { code?: string } | undefined)?.code }
    }
  },

  /** Threads that have as little as they may: batches and single decisions. */
  async least() {
    const limiter = limiterOf({ resourceLimits: LEAST })
    const keys = Array.from({ length: 1_000 }, (_, i) => `${i}`)
    const calls = Array.from({ length: LIMIT }, () => [
      limiter.checkMany(keys),
      ...keys.map((key) => limiter.peek(key)),
    ])
    return countCodes(await Promise.allSettled(calls.flat()))
  },

  /** Threads that die while they start: what becomes of calls, of later ones, and of the threads. */
  async lifeless() {
    const [minThreads, maxThreads] = JSON.parse(process.argv[3]!)
    const limiter = limiterOf({ minThreads, maxThreads, resourceLimits: LEAST })
    const keys = Array.from({ length: 1_000 }, (_, i) => `${i}`)
    const calls = countCodes(
      await Promise.allSettled([limiter.checkMany(keys), ...keys.map((key) => limiter.check(key))]),
    )
    const later = countCodes(
      await Promise.allSettled([limiter.check('a'), limiter.usage('a'), limiter.stats()]),
    )
    await until(() => ended === threads.length, 'the end of all threads')
    const started = threads.length
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve))
    await limiter.close()
    return { calls, later, more: threads.length - started }
  },

  async close() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 2 })
    const keys = Array.from({ length: 3_000 }, (_, i) => `${i}`)
    const calls = [limiter.checkMany(keys), ...keys.map((key) => limiter.check(key))]
    let isClosed = false
    const first = limiter.close()
    void first.then(() => (isClosed = true))
    const outcomes = countCodes(await Promise.allSettled(calls))
    const wasClosed = isClosed
    const later = countCodes(await Promise.allSettled([limiter.check('a'), limiter.checkMany(['a'])]))
    await Promise.all([first, limiter.close()])
    return { outcomes, later, wasClosed, threads: threads.length, ended }
  },

  /** All threads are ended from outside while the pool is being closed. */
  async 'killed in closing'() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 2 })
    await limiter.checkMany(Array.from({ length: 1_000 }, (_, i) => `${i}`))
    const calls = Promise.allSettled(Array.from({ length: 3_000 }, (_, i) => limiter.check(`${i}`)))
    const closed = limiter.close()
    await Promise.all(threads.map((thread) => thread.terminate()))
    const { answered = 0, ERR_MILLRACE_WORKER_LOST: lost = 0, ...others } = countCodes(await calls)
    await closed
    return { settled: answered + lost, isFew: lost <= 2, others, left: threads.length - ended }
  },
}

const found = await programs[isMainThread ? process.argv[2]! : (workerData as string)]!()
if (isMainThread) console.log(JSON.stringify(found))
else parentPort!.postMessage(found)
