import { type Clock, SharedManualClock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { MillraceError } from '../core/errors.js'
import { offAbort, onAbort, type Signal } from '../core/on-abort.js'
import type { WordWatch } from '../core/word-watch.js'
import { type Waiter, WaitQueue, type WaitRequest } from './wait-queue.js'

/**
 * A change for all keys (of the limit, or of a manual clock) wakes this many queues in one turn of the event
 * loop. One wake costs about a refused decision with its `retryAfterMs`, so 64 take less than a millisecond.
 */
const QUEUES_PER_TURN = 64

// Captured at load, so that fake timers of a test don't stop the sweep.
const { setImmediate } = globalThis

/**
 * The pending `wait()` calls of this thread on one limiter, in a queue for each key. A change of one key
 * (`refund`, `clear`, `block`, `unblock`) wakes its queue. A change for all keys, by any thread or process,
 * wakes every queue.
 */
export class WaitQueues {
  readonly #isManual: boolean
  /** The words to watch while a call is pending: the updates of the limit, and a manual clock. */
  readonly #watches: readonly WordWatch[]
  readonly #queues = new Map<string, WaitQueue>()
  readonly #wakeAll = () => this.#beginSweep()
  /** The queues to wake for the last change, and how many of them are woken. */
  #sweep: WaitQueue[] = []
  #swept = 0
  #hasChangedAgain = false

  constructor(clock: Clock, updates: WordWatch) {
    this.#isManual = clock instanceof SharedManualClock
    this.#watches = clock instanceof SharedManualClock ? [updates, clock.changes] : [updates]
  }

  /**
   * Resolves with the first decision that admits the request. The calls for one key are served in order, so
   * that small costs can't overtake a large one for ever. Rejects with the signal's reason, with
   * `neverError()`, and with the errors of `decide`.
   */
  wait(request: WaitRequest, signal?: Signal): Promise<Decision> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const waiter: Waiter = {
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
        const isFirst = queue.first === waiter
        queue.remove(waiter)
        if (isFirst) queue.wake()
        waiter.reject(signal?.reason)
      }
      if (signal) onAbort(signal, abort)
      const name = nameOf(request.lo, request.hi)
      const existing = this.#queues.get(name)
      const queue = existing ?? new WaitQueue()
      queue.push(waiter)
      if (existing !== undefined) return
      // Before the first decision: a change between the two would be missed. See `WordWatch`.
      if (this.#queues.size === 0) for (const watch of this.#watches) watch.add(this.#wakeAll)
      this.#queues.set(name, queue)
      void this.#serve(name, queue)
    })
  }

  /** This key may have room earlier than estimated: the first call of its queue tries again. */
  wake(lo: number, hi: number): void {
    if (this.#queues.size > 0) this.#queues.get(nameOf(lo, hi))?.wake()
  }

  /** Rejects every pending call. Nothing reads the memory after it has returned. */
  close(reason: MillraceError): void {
    this.#sweep = []
    for (const queue of this.#queues.values()) {
      for (let { first } = queue; first !== undefined; { first } = queue) {
        queue.remove(first)
        first.reject(reason)
      }
      queue.wake()
    }
    this.#stopWatching()
    for (const watch of this.#watches) watch.end()
  }

  async #serve(name: string, queue: WaitQueue): Promise<void> {
    for (let { first } = queue; first !== undefined; { first } = queue) {
      const { request } = first
      const { wakes } = queue
      try {
        const decided = request.decide()
        const decision = decided instanceof Promise ? await decided : decided
        if (queue.first !== first) {
          if (decision.allowed) request.giveBack?.(decision)
        } else if (decision.allowed) {
          queue.remove(first)
          first.resolve(decision)
        } else if (decision.retryAfterMs === Number.POSITIVE_INFINITY) {
          const reason = request.neverError()
          queue.remove(first)
          first.reject(reason)
        } else if (queue.wakes === wakes) {
          await queue.sleep(decision.retryAfterMs, !this.#isManual)
        }
      } catch (error) {
        if (queue.first !== first) continue // the call was aborted, and the next one has not failed
        queue.remove(first)
        first.reject(error)
      }
    }
    this.#queues.delete(name)
    if (this.#queues.size === 0) this.#stopWatching()
  }

  #stopWatching(): void {
    for (const watch of this.#watches) watch.delete(this.#wakeAll)
  }

  #beginSweep(): void {
    this.#hasChangedAgain = this.#sweep.length > 0 // the queues that this sweep has woken must try again
    if (this.#hasChangedAgain) return
    this.#sweep = [...this.#queues.values()]
    this.#swept = 0
    this.#wakeSome()
  }

  #wakeSome(): void {
    const end = this.#swept + QUEUES_PER_TURN
    for (const queue of this.#sweep.slice(this.#swept, end)) queue.wake()
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
