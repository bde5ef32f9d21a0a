import { LONGEST_TIMER_MS } from '../core/long-timer.js'

/** Runs actions one after the other, in the order in which they came. */
export class Fifo {
  /** Resolves when the last action has ended; undefined if none is running. */
  #last: Promise<void> | undefined
  #pending = 0

  /** The actions that have not ended. */
  get pending(): number {
    return this.#pending
  }

  /** Runs the action when all before it have ended: at once, if there are none. */
  run<T>(action: () => Promise<T>): Promise<T> {
    const running = this.#last === undefined ? action() : this.#last.then(action)
    this.#pending++
    const ended = () => {
      this.#pending--
      if (this.#last === last) this.#last = undefined
    }
    const last: Promise<void> = running.then(ended, ended) // its error is the caller's
    this.#last = last
    return running
  }
}

/** Waits for at least a millisecond. After a long wait the caller looks again. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_TIMER_MS, Math.max(1, Math.ceil(ms)))))
}
