// Programs with pools: `node program.js NAME` runs one. Each prints its result as one line of JSON, and must
// end by itself.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type AsyncLimiter, createLimiter, MillraceError, type PoolOptions } from 'millrace'
import { until } from '../../limiter/support.js'

const LIMIT = 10

const limiterOf = (pool: PoolOptions = {}): AsyncLimiter =>
  createLimiter({ limit: LIMIT, window: '1h', maxKeys: 1_000, engine: 'pool', pool })

const codeOf = (error: unknown): string =>
  error instanceof MillraceError ? error.code : `not a MillraceError: ${error}`

/** Counts the outcomes by `codeOf` of the rejections. */
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
/** The smallest permitted value of each limit. */
const LEAST = {
  maxOldGenerationSizeMb: 10,
  maxYoungGenerationSizeMb: 0.01,
  codeRangeSizeMb: 0.01,
  stackSizeMb: 1,
}

const programs: Record<string, () => Promise<unknown>> = {
  /** Sends no request. */
  async unused() {
    limiterOf()
    return 'made'
  },

  async idle() {
    const limiter = limiterOf()
    return (await limiter.check('a')).remaining
  },

  /**
   * Only the pending reply keeps the process alive. Before each request the threads have fallen asleep or
   * ended.
   */
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

  /** The thread with the request is terminated, and the next one is still starting. */
  async 'pending after a death'() {
    const limiter = limiterOf()
    await limiter.check('a')
    const call = limiter.check('a')
    void threads[0]!.terminate()
    return Object.keys(countCodes(await Promise.allSettled([call, limiter.usage('b')]))).filter(
      (code) => code !== 'ERR_MILLRACE_WORKER_LOST',
    )
  },

  /** The share of a processor that all threads use while there are no requests. */
  async rest() {
    const limiter = limiterOf({ minThreads: 2, maxThreads: 2 })
    await limiter.checkMany(Array.from({ length: 500 }, (_, i) => `${i}`))
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS)) // until V8 has finished optimizing
    const before = process.cpuUsage()
    const fromMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000 / (performance.now() - fromMs)
  },

  async many() {
    const limiters = Array.from({ length: Number(process.argv[3]) }, () => limiterOf())
    const all = limiters.flatMap((limiter) => Array.from({ length: LIMIT + 1 }, () => limiter.check('a')))
    const allowed = (await Promise.all(all)).filter((decision) => decision.allowed).length
    await Promise.all(limiters.map((limiter) => limiter.close()))
    return { allowed, threads: threads.length, ended }
  },

  /** Runs another program in a worker thread. */
  async inside() {
    const thread = new Worker(new URL(import.meta.url), { workerData: 'pending' })
    let result: unknown
    thread.on('message', (message) => (result = message))
    const code = await new Promise((resolve) => thread.once('exit', resolve))
    return { result, code }
  },

  async make() {
    try {
      limiterOf()
      return 'made'
    } catch (error) {
      return { code: codeOf(error), cause: ((error as Error).cause as { code?: string } | undefined)?.code }
    }
  },

  /** Batches and single decisions on threads with the smallest limits. */
  async least() {
    const limiter = limiterOf({ resourceLimits: LEAST })
    const keys = Array.from({ length: 1_000 }, (_, i) => `${i}`)
    const calls = Array.from({ length: LIMIT }, () => [
      limiter.checkMany(keys),
      ...keys.map((key) => limiter.peek(key)),
    ])
    return countCodes(await Promise.allSettled(calls.flat()))
  },

  /**
   * The outcomes of calls if every thread dies at start-up, of later calls, and the number of threads started
   * later.
   */
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

  /** Every thread is terminated while the pool closes. */
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
