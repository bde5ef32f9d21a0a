// The main thread's side of a group of threads that start together on one limiter.
import { Worker } from 'node:worker_threads'
import type { Limiter } from 'millrace'
import { mostIn } from '../judge/window-judge.js'

export interface Task {
  name: 'admit' | 'churn' | 'roll' | 'adjust' | 'refund' | 'clear'
  keys: number
  rounds: number
  cost: number
}

/** The shared tally of all threads: admissions by key, and admitted units by tick, for each rule. */
export class Tally {
  readonly admitted: Int32Array
  /** The ticks of the first rule, then those of the next. */
  readonly byTick: Int32Array
  readonly ticks: number
  constructor(keys: number, ticks: number, rules = 1) {
    this.admitted = new Int32Array(new SharedArrayBuffer(4 * keys))
    this.byTick = new Int32Array(new SharedArrayBuffer(4 * ticks * rules))
    this.ticks = ticks
  }

  /** The most units in any `width` consecutive ticks of a rule. */
  mostIn(width: number, rule = 0): number {
    return mostIn(this.byTick.subarray(rule * this.ticks, (rule + 1) * this.ticks), width)
  }
}

/** Runs one task for each thread. Resolves once all have finished, and rejects if one fails. */
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
    const worker = new Worker(new URL('./thread-group-worker.js', import.meta.url), { workerData })
    return new Promise<void>((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
    })
  })
  await Promise.all(ends)
}
