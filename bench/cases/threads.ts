import { createLimiter, type Limiter } from 'millrace'
import { type Benchmark, type Contender, type Goal, type Round, ratioOf } from '../benchmark.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { timeThreads } from '../workers.js'

const KEYS_PER_THREAD = 10_000

const TOGETHER = 'two threads'
const ALONE = 'one thread'
const APART = 'two threads, one limiter each'
const BARE_ALONE = 'one bare loop'
const BARE = 'two bare loops'

export const threads: Benchmark = {
  title: `concurrent threads: check(key), each over its own ${KEYS_PER_THREAD.toLocaleString('en')} keys`,
  units: { millionASecond: 'million decisions per second, all threads together' },
  contenders: [
    deciding(ALONE, () => [limiter()]),
    deciding(TOGETHER, () => Array(2).fill(limiter())),
    deciding(APART, () => [limiter(), limiter()]),
    deciding(BARE_ALONE, () => [undefined]),
    deciding(BARE, () => [undefined, undefined]),
  ],
  goals: [
    {
      target: 'P7',
      label: 'gain of a second thread on different keys: Millrace / a bare loop, which reads the keys',
      unit: 'x',
      value: (round) => gained(round, TOGETHER, ALONE) / gained(round, BARE, BARE_ALONE),
      atLeast: 0.95,
    },
    gain('throughput on different keys: two threads / one', TOGETHER),
    gain('two threads that share nothing / one', APART),
    gain('two bare loops / one', BARE, BARE_ALONE),
  ],
}

const gained = (round: Round, both: string, alone: string): number =>
  ratioOf(both, alone, 'millionASecond')(round)

function gain(label: string, both: string, alone = ALONE): Goal {
  return { label, unit: 'x', value: (round) => gained(round, both, alone) }
}

/** Starts one thread per limiter of the list. */
function deciding(name: string, limiters: () => (Limiter | undefined)[]): Contender {
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
