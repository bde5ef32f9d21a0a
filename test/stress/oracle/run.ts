// Worker threads that start together on one limiter: the main thread's side, which judges their log.
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { setsFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { Log } from '../log.js'
import { Sweep } from '../sweep.js'
import { Timeline, widthOf } from '../timeline.js'
import { addCounts, type Counts, type Job, noCounts } from './job.js'
import type { Shape } from './shapes.js'

export interface Findings extends Counts {
  /** Judged windows: those that end with an admission. */
  windows: number
  /** Windows over the limit. */
  over: number
  /** Granules that passed. */
  rollovers: number
  /** The most units in a window. */
  fullest: number
  /** Keys evicted by others. */
  evicted: number
}

export interface Run {
  readonly threads: number
  readonly decisions: number
  readonly seed: number
}

const THREAD = new URL('./thread.js', import.meta.url)
/** The interval of sweeps. The log has room for seconds; sweeping this often takes no noticeable time. */
const SWEEP_EVERY_MS = 5

/** Runs one shape. @throws Error if a thread fails, or if the log and the counts of the threads differ */
export async function runShape(
  shape: Shape,
  { threads, decisions, seed }: Run,
  onProgress: (decisions: number) => void,
): Promise<Findings> {
  const { window, granularity, maxKeys } = shape.options
  const buckets = Math.round(window / granularity)
  const aheadMs = Timeline.startMs(window, buckets) - monotonicClock.now()
  const clock = new Timeline({ now: () => monotonicClock.now() + aheadMs }, window, buckets)
  const limiter = createLimiter({ ...shape.options, clock })
  const columns = shape.column === 'key' ? shape.keys : setsFor(maxKeys!) * WAYS_PER_SET
  const memory = Log.allocate(threads, columns)
  const log = new Log(memory)
  const sweep = new Sweep(log, shape.options.limit, widthOf(limiter.rule))
  const counts = noCounts()
  const gate = new Int32Array(new SharedArrayBuffer(4))

  const workers = Array.from({ length: threads }, (_, thread) => {
    const share = Math.floor(decisions / threads) + (thread < decisions % threads ? 1 : 0)
    const own = seed * threads + thread
    const job: Job = {
      shared: limiter.share(),
      memory,
      shape,
      thread,
      decisions: share,
      seed: own,
      aheadMs,
      gate,
    }
    return new Worker(THREAD, { workerData: job })
  })
  let ended = 0
  const ends = workers.map((worker) =>
    new Promise<void>((resolve, reject) => {
      worker.on('message', (message: Counts) => addCounts(counts, message))
      worker.on('error', reject)
      worker.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`a thread exited with ${code}`)),
      )
    }).then(() => {
      ended++
    }),
  )
  const all = Promise.all(ends)
  all.catch(() => {}) // awaited below; it may reject before that
  try {
    await Promise.race([all, Promise.all(workers.map(isOnline))])
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    while (ended < threads) {
      await Promise.race([all, pause(SWEEP_EVERY_MS)])
      clock.now()
      sweep.advance(clock.tick)
      onProgress(workers.reduce((made, _, thread) => made + log.made(thread), 0))
    }
    clock.now()
    sweep.advance(clock.tick)
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  if (sweep.units !== counts.units) {
    throw new Error(`${shape.name}: ${counts.units} units in the threads' counts, ${sweep.units} in the log`)
  }
  counts.complaints.push(...sweep.complaints)
  const { evicted } = limiter.stats()
  const { windows, over, ticks, fullest } = sweep
  return { ...counts, windows, over, rollovers: ticks, fullest, evicted: evicted }
}

function isOnline(worker: Worker): Promise<void> {
  return new Promise((resolve) => worker.once('online', () => resolve()))
}
