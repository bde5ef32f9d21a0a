import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Counts, Job } from './job.js'

const DECIDER = fileURLToPath(new URL('./decider.js', import.meta.url))

/** A process of the run. */
export class Running {
  /** Whether each rule has refused something. */
  isFull = false
  hasEnded = false
  /** Its report. Undefined: none, if it has ended. */
  counts: Counts | undefined
  readonly ended: Promise<unknown>
  readonly #child: ChildProcess

  constructor(job: Job) {
    this.#child = fork(DECIDER, [JSON.stringify(job)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child.on('message', (message: Counts | 'full') => {
      if (message === 'full') this.isFull = true
      else this.counts = message
    })
    this.ended = once(this.#child, 'exit').then(() => {
      this.hasEnded = true
    })
  }

  /** Resolves when the process has logged its last admission, and ended. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.send('stop')
    await this.ended
  }

  kill(): void {
    this.#child.kill()
  }
}
