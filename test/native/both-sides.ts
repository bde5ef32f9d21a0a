// Threads of both sides decide batches on one arena. When a batch has refused every key, its thread advances
// the clock. With `haste` it also advances the clock at random before that. An advance by a window and a
// granule frees each limit. If a thread reads the same time before and after a batch, its admissions were
// charged at that time, and are recorded.
//
// At a calm advance all threads wait for the last one. It decides alone until every key is refused, and then advances
// the clock. So between two calm advances all admissions are recorded, and every key has reached its limit, in any
// order of the threads.
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
  /** The probability, 0 to 1, of advancing the clock after a batch that admitted a key. */
  readonly haste: number
  /** The last `calm.turns` of every `calm.every` advances are calm. */
  readonly calm: { readonly every: number; readonly turns: number }
  /**
   * Word 0: the number of advances. Word 1: the number of threads that are ready. Word 2: the number of threads
   * that wait at a calm advance.
   */
  readonly gate: Int32Array
  /** Units admitted to each key between two advances of the clock, in order. */
  readonly admitted: Int32Array
  readonly threads: number
}

/** Units admitted to each key between two advances of the clock, in order. */
export async function decideOnBothSides(
  limiter: Limiter,
  sides: readonly Side[],
  work: Pick<Work, 'keys' | 'phases' | 'cost' | 'startMs' | 'turnMs' | 'haste' | 'calm'>,
): Promise<Int32Array> {
  const gate = new Int32Array(new SharedArrayBuffer(12))
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
