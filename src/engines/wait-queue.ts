import type { Decision } from '../core/decision.js'

const LONGEST_TIMER_MS = 2 ** 31 - 1 // a longer one fires at once

/** What a `wait()` call asks for. */
export interface WaitRequest {
  /** The key's fingerprint. */
  readonly lo: number
  readonly hi: number
  decide(): Decision | Promise<Decision>
  /** Takes back an admission that came after its caller's signal was aborted. */
  giveBack?(decision: Decision): void
  /** The error for a refusal that no waiting ends. */
  never(): Error
}

/** A pending `wait()` call, and its neighbours in the line. */
export interface Waiter {
  readonly want: WaitRequest
  resolve(decision: Decision): void
  reject(reason: unknown): void
  previous: Waiter | undefined
  next: Waiter | undefined
}

/**
 * The pending calls for one key, first come first served; one timer for all of them. They are linked, so a call leaves in
 * the same time however many there are: one signal may abort 50,000.
 */
export class WaitQueue {
  /** How often it was woken. */
  wakes = 0
  #first: Waiter | undefined = undefined
  #last: Waiter | undefined = undefined
  #endSleep = () => {}

  get first(): Waiter | undefined {
    return this.#first
  }

  join(waiting: Waiter): void {
    waiting.previous = this.#last
    if (this.#last === undefined) this.#first = waiting
    else this.#last.next = waiting
    this.#last = waiting
  }

  /** Only for a call that stands in this line. */
  leave({ previous, next }: Waiter): void {
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

  /** Until the line is woken; where a timer can tell the time, at most for `ms`. */
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
