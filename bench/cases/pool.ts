import { fileURLToPath } from 'node:url'
import {
  type AsyncLimiter,
  createLimiter,
  type DecisionFields,
  type Limiter,
  type LimiterOptions,
  type PackedKeys,
} from 'millrace'
import { Piscina } from 'piscina'
import {
  type Benchmark,
  type Contender,
  type Effort,
  type Figures,
  figureOf,
  type Goal,
} from '../benchmark.js'
import { LOOP_UNITS, timeInFlight } from '../in-flight.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'

const KEYS = 10_000
const IN_FLIGHT = [32, 256, 2_048]
const BATCHES = [1_000, 100_000]
/** What is asked one at a time, or by messages, takes so much longer that so many times fewer decisions are enough. */
const SLOWER = { alone: 40, task: 20 }

const PISCINA_TASK = new URL('../piscina-task.js', import.meta.url)
const THREADS = 1
/** What a server with few requests sees: the thread has fallen asleep since, or its task has ended. */
const RESTS_MS = [1, 100]
/** What they take in all. */
const RESTING_MS = 2_000

const OPTIONS: LimiterOptions = { limit: LIMIT, window: WINDOW_MS, maxKeys: KEYS }
const inline = () => createLimiter(OPTIONS)
const pooled = () => createLimiter({ ...OPTIONS, engine: 'pool', pool: { maxThreads: THREADS } })

const flightName = (side: string, callers: number) => `${side}, ${said(callers)} in flight`
const batchName = (side: string, size: number) => `${side}, batches of ${said(size)}`
const said = (count: number) => count.toLocaleString('en')

const POOL_ALONE = 'pool, alone'
const TASK_ALONE = 'a task of piscina each, alone'
const INLINE = 'inline'
const COMPARED = 256

export const pool: Benchmark = {
  title: `engine: 'pool' of one thread, check(key) over ${said(KEYS)} hot keys in random order, cached strings`,
  units: LOOP_UNITS,
  contenders: [
    asked(POOL_ALONE, 1, SLOWER.alone, pooled),
    ...RESTS_MS.map((restMs) => askedAfter(`${POOL_ALONE}, ${restMs} ms after the last answer`, restMs)),
    ...IN_FLIGHT.map((callers) => asked(flightName('pool', callers), callers, 1, pooled)),
    byTasks(TASK_ALONE, 1, SLOWER.alone),
    byTasks(flightName('a task of piscina each', COMPARED), COMPARED, SLOWER.task),
    asked(INLINE, 1, 1, inline),
    ...BATCHES.flatMap((size) => [
      inBatches(batchName('pool', size), size, pooled),
      inBatches(batchName('inline', size), size, inline),
    ]),
  ],
  goals: [
    {
      target: 'P9',
      what: `${COMPARED} in flight: decisions a second`,
      unit: 'million/s',
      value: (round) => figureOf(round, flightName('pool', COMPARED), 'thousandASecond') / 1e3,
      atLeast: 2.5,
    },
    {
      target: 'P9',
      what: 'alone: half of the decisions within',
      unit: 'us',
      value: (round) => figureOf(round, POOL_ALONE, 'p50Us'),
      atMost: 25,
    },
    {
      target: 'P9',
      what: `${COMPARED} in flight / one task of piscina after the other, a decision each`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), TASK_ALONE),
      atLeast: 50,
    },
    {
      what: `${COMPARED} in flight / as many tasks of piscina, a decision each`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), flightName('a task of piscina each', COMPARED)),
    },
    {
      what: `decisions a second: ${COMPARED} in flight / inline`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), INLINE),
    },
    {
      what: `the calling thread's time a decision: ${COMPARED} in flight / inline`,
      unit: 'x',
      value: callerTimes(flightName('pool', COMPARED), INLINE),
    },
    ...BATCHES.flatMap((size): Goal[] => [
      {
        what: `batches of ${said(size)}, decisions a second: pool / inline`,
        unit: 'x',
        value: faster(batchName('pool', size), batchName('inline', size)),
      },
      {
        what: `batches of ${said(size)}, the calling thread's time: pool / inline`,
        unit: 'x',
        value: callerTimes(batchName('pool', size), batchName('inline', size)),
      },
    ]),
  ],
}

function faster(contender: string, base: string): Goal['value'] {
  return (round) => figureOf(round, contender, 'thousandASecond') / figureOf(round, base, 'thousandASecond')
}

function callerTimes(contender: string, base: string): Goal['value'] {
  return (round) => figureOf(round, contender, 'callerNs') / figureOf(round, base, 'callerNs')
}

/** `check(key)`, by so many callers at a time. */
function asked(name: string, callers: number, slower: number, make: () => Limiter | AsyncLimiter): Contender {
  return {
    name,
    async measure({ operations }) {
      const limiter = make()
      const keyAt = cached(KEYS)
      const order = randomOrder(KEYS, operations / slower)
      await limiter.checkMany(Array.from(inOrder(KEYS), keyAt))
      const loop = { callers, count: order.length, keysEach: 1 }
      return admitting(limiter, () => timeInFlight(loop, (i) => limiter.check(keyAt(order[i]!))))
    },
  }
}

/** The same by one caller of the pool, who rests before each. */
function askedAfter(name: string, restMs: number): Contender {
  return {
    name,
    measure: () => {
      const limiter = pooled()
      const keyAt = cached(KEYS)
      const loop = { callers: 1, count: RESTING_MS / restMs, keysEach: 1, restMs }
      return admitting(limiter, () => timeInFlight(loop, (i) => limiter.check(keyAt(i))))
    },
  }
}

/** `checkMany`, one batch after the other. */
function inBatches(name: string, size: number, make: () => Limiter | AsyncLimiter): Contender {
  return {
    name,
    async measure({ operations }) {
      const limiter = make()
      const keyAt = cached(KEYS)
      const order = randomOrder(KEYS, operations)
      await limiter.checkMany(Array.from(inOrder(KEYS), keyAt))
      const count = operations / size
      const packed = Array.from({ length: count }, (_, batch): PackedKeys => {
        return limiter.pack(Array.from(order.subarray(batch * size, (batch + 1) * size), keyAt))
      })
      const loop = { callers: 1, count, keysEach: size }
      return admitting(limiter, () => timeInFlight(loop, (i) => limiter.checkMany(packed[i]!)))
    },
  }
}

/** @throws Error where a decision was a refusal */
async function admitting(limiter: Limiter | AsyncLimiter, measure: () => Promise<Figures>): Promise<Figures> {
  const before = await limiter.stats()
  const figures = await measure()
  const after = await limiter.stats()
  if (after.denied > before.denied || after.allowed === before.allowed) {
    throw new Error(`${after.denied - before.denied} decisions were refused`)
  }
  return figures
}

/** A thread of piscina as it does best: it takes tasks while others of its tasks are under way. */
function byTasks(name: string, callers: number, slower: number): Contender {
  return {
    name,
    async measure({ operations }: Effort) {
      const limiter = inline()
      const threads = new Piscina<string, DecisionFields>({
        filename: fileURLToPath(PISCINA_TASK),
        workerData: limiter.share(),
        minThreads: THREADS,
        maxThreads: THREADS,
        concurrentTasksPerWorker: callers,
      })
      const keyAt = cached(KEYS)
      const order = randomOrder(KEYS, operations / slower)
      const loop = { callers, count: order.length, keysEach: 1 }
      return timeInFlight(loop, (i) => threads.run(keyAt(order[i]!)).then(checkAdmitted))
    },
  }
}

function checkAdmitted({ allowed }: DecisionFields): void {
  if (!allowed) throw new Error('a decision was refused')
}
