import { createLimiter, type Limiter } from 'millrace'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { timeThreads } from '../workers.js'

const KEYS_PER_THREAD = 10_000

const TOGETHER = 'two threads'
const ALONE = 'one thread'
const APART = 'two threads, one limiter each'

export const threads: Benchmark = {
  title: `concurrent threads: check(key), each over its own ${KEYS_PER_THREAD.toLocaleString('en')} keys`,
  units: { millionASecond: 'million decisions per second, all threads together' },
  contenders: [
    deciding(ALONE, () => [limiter()]),
    deciding(TOGETHER, () => Array(2).fill(limiter())),
    deciding(APART, () => [limiter(), limiter()]),
  ],
  goals: [
    {
      target: 'P7',
      label: 'throughput on different keys: two threads / one',
      unit: 'x',
      value: ratioOf(TOGETHER, ALONE, 'millionASecond'),
      atLeast: 1.6,
    },
    {
      label: 'upper bound of the machine: two threads that share nothing / one',
      unit: 'x',
      value: ratioOf(APART, ALONE, 'millionASecond'),
    },
  ],
}

/** Starts one thread per limiter of the list. */
function deciding(name: string, limiters: () => Limiter[]): Contender {
  return {
    name,
    async measure({ operations }) {
      const ns = await timeThreads(limiters(), KEYS_PER_THREAD, operations)
      return { millionASecond: 1e3 / ns }
    },
  }
}

/** The table has the same size in all contenders. */
function limiter(): Limiter {
  return createLimiter({ limit: LIMIT, window: WINDOW_MS, maxKeys: 2 * KEYS_PER_THREAD })
}
