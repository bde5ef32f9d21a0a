/**
 * Threads that decide concurrently. Each warms up and reports. After all reports, a word of shared memory
 * starts them together, so that starting the threads and compiling their code is not timed.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Limiter, SharedLimiter } from 'millrace'

export interface Work {
  /** Undefined: a bare loop, which reads each key and decides nothing. */
  readonly limiter: SharedLimiter | undefined
  /** One word: 0 until the threads may start. */
  readonly start: Int32Array<SharedArrayBuffer>
  /** Keys per thread; no two threads have the same. */
  readonly keys: number
  readonly thread: number
  readonly operations: number
}

/** The times at which a thread started and ended, in nanoseconds of the clock that all threads share. */
export interface Span {
  readonly startNs: bigint
  readonly endNs: bigint
  readonly allowed: number
}

const WORKER = new URL('./worker.js', import.meta.url)

/**
 * Starts a thread per limiter of the list, which may repeat one limiter or have none. Returns nanoseconds per decision,
 * from the start of the first thread to the end of the last. @throws Error if a decision is a refusal
 */
export async function timeThreads(
  limiters: readonly (Limiter | undefined)[],
  keys: number,
  operations: number,
): Promise<number> {
  const start = new Int32Array(new SharedArrayBuffer(4))
  const workers = limiters.map((limiter, thread) => {
    const work: Work = { limiter: limiter?.share(), start, keys, thread, operations }
    return new Worker(WORKER, { workerData: work })
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const ends = workers.map((worker) => once(worker, 'message'))
  Atomics.store(start, 0, 1)
  Atomics.notify(start, 0)
  const spans = (await Promise.all(ends)).map(([span]) => span as Span)
  const refused = spans.find(({ allowed }) => allowed !== operations)
  if (refused) throw new Error(`only ${refused.allowed} of a thread's ${operations} decisions were admitted`)
  const firstNs = spans.reduce((least, { startNs }) => (startNs < least ? startNs : least), spans[0]!.startNs)
  const lastNs = spans.reduce((most, { endNs }) => (endNs > most ? endNs : most), spans[0]!.endNs)
  return Number(lastNs - firstNs) / (workers.length * operations)
}
