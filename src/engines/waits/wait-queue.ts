import type { Decision } from '../../core/decision.js'
import { LONGEST_TIMER_MS } from '../../core/long-timer.js'
import { offAbort, onAbort, type Signal } from '../../core/on-abort.js'

/** The arguments of a `wait()` call. */
export interface WaitRequest<D extends Decision = Decision> {
  decide(): D | Promise<D>
  /** Takes back an admission that came after its caller's signal was aborted. */
  giveBack?(decision: D): void
  /** Returns the error for a refusal without end. */
  neverError(): Error
}

/** A pending `wait()` call, and its neighbours in the queue. */
export interface Waiter<D extends Decision = Decision> {
  readonly request: WaitRequest<D>
  resolve(decision: D): void
  reject(reason: unknown): void
  previous: Waiter<D> | undefined
  next: Waiter<D> | undefined
}

/**
 * The pending calls for one key, or for the same keys of a group: first in, first out, with one timer. It is a
 * linked list, so that removing a call takes constant time: one signal may abort 50,000 calls.
 */
export class WaitQueue<D extends Decision = Decision> {
  /** How many times `wake` was called. */
  #wakes = 0
  #first: Waiter<D> | undefined = undefined
  #last: Waiter<D> | undefined = undefined
  #endSleep = () => {}

  /**
   * Adds a call. Resolves with the first decision that admits it. Rejects with the signal's reason, with
   * `neverError()`, and with the errors of `decide`.
   */
  add(request: WaitRequest<D>, signal?: Signal): Promise<D> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<D> = {
        request,
        resolve: (decision) => {
          if (signal) offAbort(signal, abort)
          resolve(decision)
        },
        reject: (reason) => {
          if (signal) offAbort(signal, abort)
          reject(reason)
        },
        previous: undefined,
        next: undefined,
      }
      const abort = () => {
        const isFirst = this.#first === waiter
        this.#remove(waiter)
        if (isFirst) this.wake()
        waiter.reject(signal?.reason)
      }
      if (signal) onAbort(signal, abort)
      this.push(waiter)
    })
  }

  push(waiter: Waiter<D>): void {
    waiter.previous = this.#last
    if (this.#last === undefined) this.#first = waiter
    else this.#last.next = waiter
    this.#last = waiter
  }

  /**
   * Serves the calls in order, so that small costs can't overtake a large one for ever. When none is left, it
   * calls `atEnd`. `timerMs` says how long to sleep after a refusal; undefined: until the next `wake`.
   */
  async serve(timerMs: (refusal: D) => number | undefined, atEnd: () => void): Promise<void> {
    for (let first = this.#first; first !== undefined; first = this.#first) {
      const { request } = first
      const wakes = this.#wakes
      try {
        const decided = request.decide()
        const decision = decided instanceof Promise ? await decided : decided
        if (this.#first !== first) {
          if (decision.allowed) request.giveBack?.(decision)
        } else if (decision.allowed) {
          this.#remove(first)
          first.resolve(decision)
        } else if (decision.retryAfterMs === Number.POSITIVE_INFINITY) {
          const reason = request.neverError()
          this.#remove(first)
          first.reject(reason)
        } else if (this.#wakes === wakes) {
          await this.#sleep(timerMs(decision))
        }
      } catch (error) {
        if (this.#first !== first) continue // the call was aborted, and the next one has not failed
        this.#remove(first)
        first.reject(error)
      }
    }
    atEnd()
  }

  /** Ends the sleep: the first call tries again. */
  wake(): void {
    this.#wakes++
    this.#endSleep()
  }

  /** Rejects every pending call. */
  rejectAll(reason: unknown): void {
    for (let first = this.#first; first !== undefined; first = this.#first) {
      this.#remove(first)
      first.reject(reason)
    }
    this.wake()
  }

  /** Removes a call of this queue. */
  #remove({ previous, next }: Waiter<D>): void {
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
  }

  /** Resolves at the next `wake`, or after `ms` if there is a timer. */
  #sleep(ms: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS))
      this.#endSleep = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
