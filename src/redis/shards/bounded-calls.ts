import { Deadlines, lateError, type Pending } from '../../remote/deadlines.js'
import { Outage } from '../../remote/outage.js'

/** Calls that take several steps, each by a server, and have one deadline for all steps. */
export class BoundedCalls {
  readonly #deadlines: Deadlines
  readonly #running = new Set<Promise<unknown>>()

  constructor(deadlineMs: number) {
    this.#deadlines = new Deadlines(deadlineMs)
  }

  /**
   * Runs the steps. Rejects with an {@link Outage} at the deadline. Steps that go on see then that the call is
   * settled, and give back what they have charged.
   */
  run<T>(steps: (call: Pick<Pending, 'isSettled'>) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = {
        isSettled: false,
        expire(): void {
          call.isSettled = true
          reject(new Outage(lateError(), true))
        },
      }
      this.#deadlines.add(call)
      const running = steps(call).finally(() => {
        call.isSettled = true
        this.#running.delete(running)
      })
      this.#running.add(running)
      running.then(resolve, reject)
    })
  }

  /** Waits for the calls that are running. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#running)
    this.#deadlines.expireAll()
  }
}
