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
  ratioOf,
} from '../benchmark.js'
import { LOOP_UNITS, timeInFlight } from '../in-flight.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { bareRing, nameOf, OURS } from './transport.js'

const KEYS = 10_000
const IN_FLIGHT = [32, 256, 2_048]
const BATCHES = [1_000, 100_000]
/**
 * Single decisions in flight, tasks and several rules take longer; their contenders make this many times fewer decisions.
 */
const SLOWER = { alone: 40, task: 20, rules: 4 }

const PISCINA_TASK = new URL('../piscina-task.js', import.meta.url)
const THREADS = 1
/**
 * Idle times before a request, as on a server with few: the worker has fallen asleep, or its task has ended.
 */
const IDLE_MS = [1, 100]
/** The total idle time of such a contender. */
const TOTAL_IDLE_MS = 2_000

const OPTIONS: LimiterOptions = { limit: LIMIT, window: WINDOW_MS, maxKeys: KEYS }
const inline = () => createLimiter(OPTIONS)
const pooled = () => createLimiter({ ...OPTIONS, engine: 'pool', pool: { maxThreads: THREADS } })

/** The second rule has another window, as an hourly limit beside a burst limit. */
const pooledByTwo = () =>
  createLimiter({
    rules: [
      { name: 'first', limit: LIMIT, window: WINDOW_MS },
      { name: 'second', limit: LIMIT, window: 60 * WINDOW_MS },
    ],
    maxKeys: KEYS,
    engine: 'pool',
    pool: { maxThreads: THREADS },
  })

const flightName = (side: string, callers: number) => `${side}, ${grouped(callers)} in flight`
const batchName = (side: string, size: number) => `${side}, batches of ${grouped(size)}`
const grouped = (count: number) => count.toLocaleString('en')

const POOL_ALONE = 'pool, 1 in flight'
const TASK_ALONE = 'piscina task per decision, 1 in flight'
const BY_TWO = 'pool by two rules'
const INLINE = 'inline'
const COMPARED = 256

export const pool: Benchmark = {
  title: `engine: 'pool' with one thread, check(key) over ${grouped(KEYS)} hot keys in random order, cached strings`,
  units: LOOP_UNITS,
  contenders: [
    checking(POOL_ALONE, 1, SLOWER.alone, pooled),
    ...IDLE_MS.map((idleMs) => checkingWhenIdle(`${POOL_ALONE}, ${idleMs} ms after the last reply`, idleMs)),
    ...IN_FLIGHT.map((callers) => checking(flightName('pool', callers), callers, 1, pooled)),
    checking(flightName(BY_TWO, COMPARED), COMPARED, SLOWER.rules, pooledByTwo),
    inTasks(TASK_ALONE, 1, SLOWER.alone),
    inTasks(flightName('piscina task per decision', COMPARED), COMPARED, SLOWER.task),
    checking(INLINE, 1, 1, inline),
    bareRing(1),
    bareRing(COMPARED),
    ...BATCHES.flatMap((size) => [
      inBatches(batchName('pool', size), size, pooled),
      inBatches(batchName('inline', size), size, inline),
    ]),
  ],
  goals: [
    {
      target: 'P9',
      label: `decisions per second, ${COMPARED} in flight: pool / a bare ring of the same messages`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), nameOf(OURS, COMPARED)),
      atLeast: 0.5,
    },
    {
      target: 'P9',
      label: 'median latency, 1 in flight: pool / a bare ring of the same messages',
      unit: 'x',
      value: ratioOf(POOL_ALONE, nameOf(OURS, 1), 'p50Us'),
      atMost: 2,
    },
    {
      target: 'P9',
      label: `decisions per second: ${COMPARED} in flight / piscina task per decision, 1 in flight`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), TASK_ALONE),
      atLeast: 100,
    },
    {
      label: `decisions per second: ${COMPARED} in flight / piscina task per decision, ${COMPARED} in flight`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), flightName('piscina task per decision', COMPARED)),
    },
    {
      label: `decisions per second: ${COMPARED} in flight / inline`,
      unit: 'x',
      value: faster(flightName('pool', COMPARED), INLINE),
    },
    {
      label: `decisions per second, ${COMPARED} in flight: by two rules / by one`,
      unit: 'x',
      value: faster(flightName(BY_TWO, COMPARED), flightName('pool', COMPARED)),
    },
    {
      label: `the calling thread's time per decision: ${COMPARED} in flight / inline`,
      unit: 'x',
      value: callerTimes(flightName('pool', COMPARED), INLINE),
    },
    ...BATCHES.flatMap((size): Goal[] => [
      {
        label: `batches of ${grouped(size)}, decisions per second: pool / inline`,
        unit: 'x',
        value: faster(batchName('pool', size), batchName('inline', size)),
      },
      {
        label: `batches of ${grouped(size)}, the calling thread's time: pool / inline`,
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

/** `check(key)` by `callers` concurrent callers. */
function checking(
  name: string,
  callers: number,
  slower: number,
  make: () => Limiter | AsyncLimiter,
): Contender {
  return {
    name,
    async measure({ operations }) {
      const limiter = make()
      const keyAt = cachedKeys(KEYS)
      const order = randomOrder(KEYS, operations / slower)
      await limiter.checkMany(Array.from(inOrder(KEYS), keyAt))
      const loop = { callers, count: order.length, keysPerCall: 1 }
      return admitting(limiter, () => timeInFlight(loop, (i) => limiter.check(keyAt(order[i]!))))
    },
  }
}

/** `check(key)` on the pool by one caller that is idle before each call. */
function checkingWhenIdle(name: string, idleMs: number): Contender {
  return {
    name,
    measure: () => {
      const limiter = pooled()
      const keyAt = cachedKeys(KEYS)
      const loop = { callers: 1, count: TOTAL_IDLE_MS / idleMs, keysPerCall: 1, idleMs }
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
      const keyAt = cachedKeys(KEYS)
      const order = randomOrder(KEYS, operations)
      await limiter.checkMany(Array.from(inOrder(KEYS), keyAt))
      const count = operations / size
      const packed = Array.from({ length: count }, (_, batch): PackedKeys => {
        return limiter.pack(Array.from(order.subarray(batch * size, (batch + 1) * size), keyAt))
      })
      const loop = { callers: 1, count, keysPerCall: size }
      return admitting(limiter, () => timeInFlight(loop, (i) => limiter.checkMany(packed[i]!)))
    },
  }
}

/** Runs a measurement. @throws Error if a decision was a refusal */
async function admitting(limiter: Limiter | AsyncLimiter, measure: () => Promise<Figures>): Promise<Figures> {
  const before = await limiter.stats()
  const figures = await measure()
  const after = await limiter.stats()
  if (after.denied > before.denied || after.allowed === before.allowed) {
    throw new Error(`${after.denied - before.denied} decisions were refused`)
  }
  return figures
}

/** A piscina thread in its fastest setting: it takes new tasks while earlier ones are in flight. */
function inTasks(name: string, callers: number, slower: number): Contender {
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
      const keyAt = cachedKeys(KEYS)
      const order = randomOrder(KEYS, operations / slower)
      const loop = { callers, count: order.length, keysPerCall: 1 }
      return timeInFlight(loop, (i) => threads.run(keyAt(order[i]!)).then(checkAdmitted))
    },
  }
}

function checkAdmitted({ allowed }: DecisionFields): void {
  if (!allowed) throw new Error('a decision was refused')
}
