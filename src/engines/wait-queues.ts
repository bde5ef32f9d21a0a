import { type Clock, SharedManualClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { MillraceError } from '../core/errors.js'
import { offAbort, onAbort, type Signal } from '../core/on-abort.js'
import type { WordWatch } from '../core/word-watch.js'
import { type Waiter, WaitQueue, type WaitRequest } from './wait-queue.js'

/**
 * A change that concerns every key (the limit, a manual clock) wakes so many lines in one turn of the event loop. To
 * wake one takes about as long as a refused decision and its `retryAfterMs`: 64 take less than a millisecond.
 */
const LINES_A_TURN = 64

// As it was when this was loaded: a test that stops the timers of its own code should not stop this.
const { setImmediate } = globalThis

/**
 * The pending `wait()` calls of this thread on one limiter. What changes one key (a refund, `clear`, `block`, `unblock`)
 * wakes the line of that key. What changes all of them wakes every line, also where another thread or process does it.
 */
export class WaitQueues {
  readonly #isManual: boolean
  /** What to listen to while a call is pending: the updates of the limit, and a manual clock. */
  readonly #watches: readonly WordWatch[]
  readonly #lines = new Map<string, WaitQueue>()
  readonly #wakeAll = () => this.#beginSweep()
  /** Lines still to be woken for the last change, and how many of them have been. */
  #sweep: WaitQueue[] = []
  #swept = 0
  #hasChangedAgain = false

  constructor(clock: Clock, updates: WordWatch) {
    this.#isManual = clock instanceof SharedManualClock
    this.#watches = clock instanceof SharedManualClock ? [updates, clock.changes] : [updates]
  }

  /**
   * Resolves with the first decision that admits. Calls for the same key are served in order, so that small costs can't pass
   * a large one for ever. Rejects with the signal's reason, with `never()`, and with what `decide` throws.
   */
  wait(want: WaitRequest, signal?: Signal): Promise<Decision> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const waiting: Waiter = {
        want,
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
        const isFirst = line.first === waiting
        line.leave(waiting)
        if (isFirst) line.wake()
        waiting.reject(signal?.reason)
      }
      if (signal) onAbort(signal, abort)
      const name = nameOf(want.lo, want.hi)
      const standing = this.#lines.get(name)
      const line = standing ?? new WaitQueue()
      line.join(waiting)
      if (standing !== undefined) return
      // Before the first decision, or a change between the two would be missed: see `WordWatch`.
      if (this.#lines.size === 0) for (const watch of this.#watches) watch.add(this.#wakeAll)
      this.#lines.set(name, line)
      void this.#serve(name, line)
    })
  }

  /** There may be room for this key earlier than foreseen: the first call in its line tries again. */
  wake(lo: number, hi: number): void {
    if (this.#lines.size > 0) this.#lines.get(nameOf(lo, hi))?.wake()
  }

  /** Rejects every pending call. Memory is not read any more when this returns. */
  close(reason: MillraceError): void {
    this.#sweep = []
    for (const line of this.#lines.values()) {
      for (let { first } = line; first !== undefined; { first } = line) {
        line.leave(first)
        first.reject(reason)
      }
      line.wake()
    }
    this.#stopWatching()
    for (const watch of this.#watches) watch.end()
  }

  async #serve(name: string, line: WaitQueue): Promise<void> {
    for (let { first } = line; first !== undefined; { first } = line) {
      const { want } = first
      const { wakes } = line
      try {
        const decided = want.decide()
        const decision = decided instanceof Promise ? await decided : decided
        if (line.first !== first) {
          if (decision.allowed) want.giveBack?.(decision)
        } else if (decision.allowed) {
          line.leave(first)
          first.resolve(decision)
        } else if (decision.retryAfterMs === Number.POSITIVE_INFINITY) {
          const reason = want.never()
          line.leave(first)
          first.reject(reason)
        } else if (line.wakes === wakes) {
          await line.sleep(decision.retryAfterMs, !this.#isManual)
        }
      } catch (error) {
        if (line.first !== first) continue // it was aborted, and the next one has not failed
        line.leave(first)
        first.reject(error)
      }
    }
    this.#lines.delete(name)
    if (this.#lines.size === 0) this.#stopWatching()
  }

  #stopWatching(): void {
    for (const watch of this.#watches) watch.delete(this.#wakeAll)
  }

  #beginSweep(): void {
    this.#hasChangedAgain = this.#sweep.length > 0 // lines that this sweep has woken already must try again
    if (this.#hasChangedAgain) return
    this.#sweep = [...this.#lines.values()]
    this.#swept = 0
    this.#wakeSome()
  }

  #wakeSome(): void {
    const end = this.#swept + LINES_A_TURN
    for (const line of this.#sweep.slice(this.#swept, end)) line.wake()
    this.#swept = end
    if (end < this.#sweep.length) {
      setImmediate(() => this.#wakeSome())
      return
    }
    this.#sweep = []
    if (this.#hasChangedAgain) this.#beginSweep()
  }
}

const nameOf = (lo: number, hi: number): string => `${lo}:${hi}`
