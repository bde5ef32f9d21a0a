/**
 * Threads that decide at the same time. Each warms up by itself and reports; when all have, they are let go together by
 * one word of shared memory, so that starting a thread and compiling its code is not timed.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Limiter, SharedLimiter } from 'millrace'

export interface Work {
  readonly limiter: SharedLimiter
  /** One word: 0 until all may go. */
  readonly start: Int32Array<SharedArrayBuffer>
  /** How many keys each thread has, no two threads the same. */
  readonly keys: number
  readonly thread: number
  readonly operations: number
}

/** When a thread began and ended, by the one clock that all threads share, in nanoseconds. */
export interface Span {
  readonly startNs: bigint
  readonly endNs: bigint
  readonly allowed: number
}

const WORKER = new URL('./worker.js', import.meta.url)

/**
 * Starts a thread for each of the limiters, which may be one and the same. Nanoseconds a decision, from the first
 * thread's beginning to the last one's end. @throws Error for a refusal
 */
export async function timeThreads(
  limiters: readonly Limiter[],
  keys: number,
  operations: number,
): Promise<number> {
  const start = new Int32Array(new SharedArrayBuffer(4))
  const workers = limiters.map((limiter, thread) => {
    const work: Work = { limiter: limiter.share(), start, keys, thread, operations }
    return new Worker(WORKER, { workerData: work })
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const ends = workers.map((worker) => once(worker, 'message'))
  Atomics.store(start, 0, 1)
  Atomics.notify(start, 0)
  const spans = (await Promise.all(ends)).map(([span]) => span as Span)
  const refused = spans.find(({ allowed }) => allowed !== operations)
  if (refused) throw new Error(`timed ${operations} decisions a thread, and ${refused.allowed} were admitted`)
  const firstNs = spans.reduce((least, { startNs }) => (startNs < least ? startNs : least), spans[0]!.startNs)
  const lastNs = spans.reduce((most, { endNs }) => (endNs > most ? endNs : most), spans[0]!.endNs)
  return Number(lastNs - firstNs) / (workers.length * operations)
}
