// Worker threads that set out together on one limiter: the main thread's side.
import { Worker } from 'node:worker_threads'
import type { Limiter } from 'millrace'
import { mostIn } from '../judge/window-judge.js'

export interface Task {
  name: 'admit' | 'churn' | 'roll' | 'meddle' | 'returns' | 'clears'
  keys: number
  rounds: number
  cost: number
}

/** What the threads count for all: how often each key was admitted, and how much in each tick. */
export class Tally {
  readonly admitted: Int32Array
  readonly byTick: Int32Array
  constructor(keys: number, ticks: number) {
    this.admitted = new Int32Array(new SharedArrayBuffer(4 * keys))
    this.byTick = new Int32Array(new SharedArrayBuffer(4 * ticks))
  }

  /** The most in any `width` ticks on end. */
  mostIn(width: number): number {
    return mostIn(this.byTick, width)
  }
}

/** Runs one task for each thread; resolves when all are through, rejects when one fails. */
export async function run(limiter: Limiter, tasks: Task[], tally: Tally, firstTick = 0): Promise<void> {
  const gate = new Int32Array(new SharedArrayBuffer(8))
  const ends = tasks.map((task, thread) => {
    const workerData = {
      shared: limiter.share(),
      task,
      tally,
      gate,
      thread,
      threads: tasks.length,
      firstTick,
    }
    const worker = new Worker(new URL('./crew-member.js', import.meta.url), { workerData })
    return new Promise<void>((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
    })
  })
  await Promise.all(ends)
}
