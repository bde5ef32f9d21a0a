import type { Decision } from '../core/decision.js'

const LONGEST_TIMER_MS = 2 ** 31 - 1 // a longer timer fires at once

/** The arguments of a `wait()` call. */
export interface WaitRequest {
  /** The key's fingerprint. */
  readonly lo: number
  readonly hi: number
  decide(): Decision | Promise<Decision>
  /** Takes back an admission that came after its caller's signal was aborted. */
  giveBack?(decision: Decision): void
  /** Returns the error for a refusal without end. */
  neverError(): Error
}

/** A pending `wait()` call, and its neighbours in the queue. */
export interface Waiter {
  readonly request: WaitRequest
  resolve(decision: Decision): void
  reject(reason: unknown): void
  previous: Waiter | undefined
  next: Waiter | undefined
}

/**
 * The pending calls for one key, first in, first out, with one timer. It is a linked list, so that removing a
 * call takes constant time: one signal may abort 50,000 calls.
 */
export class WaitQueue {
  /** How many times `wake` was called. */
  wakes = 0
  #first: Waiter | undefined = undefined
  #last: Waiter | undefined = undefined
  #endSleep = () => {}

  get first(): Waiter | undefined {
    return this.#first
  }

  push(waiter: Waiter): void {
    waiter.previous = this.#last
    if (this.#last === undefined) this.#first = waiter
    else this.#last.next = waiter
    this.#last = waiter
  }

  /** Removes a call of this queue. */
  remove({ previous, next }: Waiter): void {
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
  }

  /** Ends the sleep: the first call tries again. */
  wake(): void {
    this.wakes++
    this.#endSleep()
  }

  /** Resolves at the next `wake`. With a timer, also after `ms`. */
  sleep(ms: number, hasTimer: boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = hasTimer ? setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS)) : undefined
      this.#endSleep = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
