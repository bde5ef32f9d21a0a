// Threads of both sides on one arena, batch by batch. The clock stands until somebody has seen every key refused in one
// batch (or, where `haste` says so, now and then before that); then whoever sees it first turns it on: by a window and a
// granule, and all of each limit is there anew, or by less. What was admitted while the clock stood, read before and after
// the batch, was charged at that very moment.
import { Worker } from 'node:worker_threads'
import type { Limiter, SharedLimiter } from 'millrace'

import { type Side, wishFor } from './sides.js'

export interface Work {
  readonly shared: SharedLimiter
  readonly keys: number
  readonly phases: number
  readonly cost: number
  readonly startMs: number
  readonly turnMs: number
  /** How often the clock is turned on after a batch in which some were admitted, 0 to 1. */
  readonly haste: number
  /** How far all are (word 0), and how many threads are there (word 1). */
  readonly gate: Int32Array
  /** Units admitted to each key between two turns, turn by turn. */
  readonly admitted: Int32Array
  readonly threads: number
}

/** Units admitted to each key between two turns, turn by turn. */
export async function decideOnBothSides(
  limiter: Limiter,
  sides: readonly Side[],
  work: Pick<Work, 'keys' | 'phases' | 'cost' | 'startMs' | 'turnMs' | 'haste'>,
): Promise<Int32Array> {
  const gate = new Int32Array(new SharedArrayBuffer(8))
  const admitted = new Int32Array(new SharedArrayBuffer(4 * work.keys * work.phases))
  const ends = sides.map((side) => {
    const workerData: Work = { ...work, shared: limiter.share(), gate, admitted, threads: sides.length }
    const env = { ...process.env, MILLRACE_NATIVE: wishFor(side) }
    const worker = new Worker(new URL('./both-sides-member.js', import.meta.url), { workerData, env })
    return new Promise<void>((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
    })
  })
  await Promise.all(ends)
  return admitted
}
