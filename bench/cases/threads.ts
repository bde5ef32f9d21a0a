import { createLimiter, type Limiter } from 'millrace'
import { type Benchmark, type Contender, timesOf } from '../benchmark.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { timeThreads } from '../workers.js'

const KEYS_A_THREAD = 10_000

const TOGETHER = 'two threads'
const ALONE = 'one thread'
const APART = 'two threads, a limiter each'

export const threads: Benchmark = {
  title: `threads that decide at the same time, check(key) over ${KEYS_A_THREAD.toLocaleString('en')} keys of its own each`,
  units: { millionASecond: 'million decisions a second, of all threads' },
  contenders: [
    deciding(ALONE, () => [limiter()]),
    deciding(TOGETHER, () => Array(2).fill(limiter())),
    deciding(APART, () => [limiter(), limiter()]),
  ],
  goals: [
    {
      target: 'P7',
      what: 'throughput of different keys: two threads / one',
      unit: 'x',
      value: timesOf(TOGETHER, ALONE, 'millionASecond'),
      atLeast: 1.6,
    },
    {
      what: 'what the machine gives: two threads that share nothing / one',
      unit: 'x',
      value: timesOf(APART, ALONE, 'millionASecond'),
    },
  ],
}

/** One thread for each limiter of the list. */
function deciding(name: string, limiters: () => Limiter[]): Contender {
  return {
    name,
    async measure({ operations }) {
      const ns = await timeThreads(limiters(), KEYS_A_THREAD, operations)
      return { millionASecond: 1e3 / ns }
    },
  }
}

/** The table is the same size, however many threads use it. */
function limiter(): Limiter {
  return createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: 2 * KEYS_A_THREAD })
}
