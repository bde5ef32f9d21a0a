import { type Clock, SharedManualClock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { MillraceError } from '../../core/errors.js'
import type { Signal } from '../../core/on-abort.js'
import { setImmediate } from '../../core/real-timers.js'
import type { WordWatch } from '../../core/word-watch.js'
import { WaitQueue, type WaitRequest } from './wait-queue.js'

/**
 * A change for all keys (of the limit, or of a manual clock) wakes this many queues in one turn of the event
 * loop. One wake costs about a refused decision with its `retryAfterMs`, so 64 take less than a millisecond.
 */
const QUEUES_PER_TURN = 64

/** The arguments of a `wait()` call for one key. */
export interface KeyWaitRequest extends WaitRequest {
  /** The key's fingerprint. */
  readonly lo: number
  readonly hi: number
}

/** A queue of this limiter, or of a group that it is a member of. */
type Wakeable = Pick<WaitQueue, 'wake' | 'rejectAll'>

/**
 * The pending `wait()` calls of this thread on one limiter, in a queue for each key. A change of one key
 * (`refund`, `clear`, `block`, `unblock`) wakes its queue. A change for all keys, by any thread or process,
 * wakes every queue.
 */
export class WaitQueues {
  /** Whether the clock is manual: then no timer tells when a key may have room. */
  readonly isManual: boolean
  /** The words to watch while a call is pending: the updates of the limit, and a manual clock. */
  readonly #watches: readonly WordWatch[]
  readonly #queues = new Map<string, WaitQueue>()
  /** The queues of groups, by the keys of this limiter that their calls wait for. */
  readonly #joined = new Map<string, Set<Wakeable>>()
  readonly #wakeAll = () => this.#beginSweep()
  /** The queues to wake for the last change, and how many of them are woken. */
  #sweep: Wakeable[] = []
  #swept = 0
  #hasChangedAgain = false

  constructor(clock: Clock, updates: WordWatch) {
    this.isManual = clock instanceof SharedManualClock
    this.#watches = clock instanceof SharedManualClock ? [updates, clock.changes] : [updates]
  }

  /**
   * Resolves with the first decision that admits the request. The calls for one key are served in order.
   * Rejects with the signal's reason, with `neverError()`, and with the errors of `decide`.
   */
  wait(request: KeyWaitRequest, signal?: Signal): Promise<Decision> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const name = nameOf(request.lo, request.hi)
    const existing = this.#queues.get(name)
    if (existing !== undefined) return existing.add(request, signal)
    const queue = new WaitQueue()
    const waiting = queue.add(request, signal)
    this.#beginWatching()
    this.#queues.set(name, queue)
    const timerMs = ({ retryAfterMs }: Decision) => (this.isManual ? undefined : retryAfterMs)
    void queue.serve(timerMs, () => {
      this.#queues.delete(name)
      this.#stopWatching()
    })
    return waiting
  }

  /** This key may have room earlier than estimated: the first call of its queue tries again. */
  wake(lo: number, hi: number): void {
    if (this.#queues.size > 0) this.#queues.get(nameOf(lo, hi))?.wake()
    if (this.#joined.size === 0) return
    for (const queue of this.#joined.get(nameOf(lo, hi)) ?? []) queue.wake()
  }

  /** Wakes a queue of a group, too, whenever this key may have room. `close` rejects its calls. */
  join(lo: number, hi: number, queue: Wakeable): void {
    const name = nameOf(lo, hi)
    const joined = this.#joined.get(name) ?? new Set()
    joined.add(queue)
    this.#beginWatching()
    this.#joined.set(name, joined)
  }

  leave(lo: number, hi: number, queue: Wakeable): void {
    const name = nameOf(lo, hi)
    const joined = this.#joined.get(name)
    if (!joined?.delete(queue) || joined.size > 0) return
    this.#joined.delete(name)
    this.#stopWatching()
  }

  /** Rejects every pending call. Nothing reads the memory after it has returned. */
  close(reason: MillraceError): void {
    this.#sweep = []
    for (const queue of this.#all()) queue.rejectAll(reason)
    for (const watch of this.#watches) watch.delete(this.#wakeAll)
    for (const watch of this.#watches) watch.end()
  }

  #all(): Wakeable[] {
    return [...this.#queues.values(), ...[...this.#joined.values()].flatMap((joined) => [...joined])]
  }

  /** Before the first decision: a change between the two would be missed. See `WordWatch`. */
  #beginWatching(): void {
    if (this.#queues.size > 0 || this.#joined.size > 0) return
    for (const watch of this.#watches) watch.add(this.#wakeAll)
  }

  #stopWatching(): void {
    if (this.#queues.size > 0 || this.#joined.size > 0) return
    for (const watch of this.#watches) watch.delete(this.#wakeAll)
  }

  #beginSweep(): void {
    this.#hasChangedAgain = this.#sweep.length > 0 // the queues that this sweep has woken must try again
    if (this.#hasChangedAgain) return
    this.#sweep = this.#all()
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

/** Names the queue of a key. */
export const nameOf = (lo: number, hi: number): string => `${lo}:${hi}`
