import { Worker } from 'node:worker_threads'
import type { Job, Manner } from './job.js'

const THREAD = new URL('./thread.js', import.meta.url)
/** The memory of a thread that dies of running out of it: little more than Node needs to start. */
const LITTLE_MEMORY = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }

/** A worker thread of a round, with its exit code and the error it threw, if any. */
export class RoundThread {
  readonly job: Job
  readonly worker: Worker
  hasEnded = false
  code: number | undefined
  error: (Error & { code?: string }) | undefined
  readonly #onEnd: (thread: RoundThread) => void

  constructor(job: Job, onEnd: (thread: RoundThread) => void) {
    this.job = job
    this.#onEnd = onEnd
    this.worker = new Worker(THREAD, {
      workerData: job,
      stderr: true, // Node reports threads that ran out of memory there
      ...(job.manner === 'memory' && { resourceLimits: LITTLE_MEMORY }),
    })
    this.worker.on('error', (error) => (this.error = error))
    this.worker.on('exit', (code) => {
      this.hasEnded = true
      this.code = code
      this.#onEnd(this)
    })
  }

  /** Undefined if the thread ended as its job says, else a description of how it ended. */
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
