import { Worker } from 'node:worker_threads'
import type { Job, Manner } from './job.js'

const THREAD = new URL('./thread.js', import.meta.url)
/** What a thread that is to run out of memory has: little more than Node needs to start in it. */
const LITTLE_MEMORY = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }

/** A worker thread, and how it ended: its exit code, and the error it threw, where it did. */
export class Member {
  readonly job: Job
  readonly worker: Worker
  hasEnded = false
  code: number | undefined
  error: (Error & { code?: string }) | undefined
  readonly #onEnd: (member: Member) => void

  constructor(job: Job, onEnd: (member: Member) => void) {
    this.job = job
    this.#onEnd = onEnd
    this.worker = new Worker(THREAD, {
      workerData: job,
      stderr: true, // Node tells there of threads that ran out of memory
      ...(job.manner === 'memory' && { resourceLimits: LITTLE_MEMORY }),
    })
    this.worker.on('error', (error) => (this.error = error))
    this.worker.on('exit', (code) => {
      this.hasEnded = true
      this.code = code
      this.#onEnd(this)
    })
  }

  /** What is wrong with the way it ended, or undefined: a thread must die as it was meant to. */
  get complaint(): string | undefined {
    const { manner, thread } = this.job
    const how = this.error ? `${this.error.code ?? this.error.stack}` : `code ${this.code}`
    const expected: Record<Manner, boolean> = {
      terminate: this.error === undefined && this.code === 1,
      exit: this.error === undefined && this.code === 0,
      memory: this.error?.code === 'ERR_WORKER_OUT_OF_MEMORY',
      survive: this.error === undefined && this.code === 0,
    }
    return expected[manner] ? undefined : `thread ${thread} (${manner}) ended with ${how}`
  }
}
