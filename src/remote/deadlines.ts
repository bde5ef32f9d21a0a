import { clearTimeout, setImmediate, setTimeout } from '../core/real-timers.js'
/** A request that waits for its reply. */
export interface Pending {
  /** Whether it has been settled. */
  readonly isSettled: boolean
  /** Settles it, because its deadline has passed. */
  expire(): void
}

interface Entry {
  readonly pending: Pending
  readonly dueMs: number
  next: Entry | undefined
}

/** The cause of an outage: the deadline has passed. */
export const lateError = (server = 'Redis'): Error => new Error(`no reply of ${server} before the deadline`)

const nowMs = (): number => performance.now()

/**
 * The deadlines of all pending requests. All have the same length, so they end in the order in which they
 * began: a queue with one timer, for the first of them that is not settled.
 */
export class Deadlines {
  readonly #afterMs: number
  #first: Entry | undefined
  #last: Entry | undefined
  #timer: NodeJS.Timeout | undefined
  /**
   * After a pause of the event loop, such as a garbage collection, timers run before replies that have arrived
   * are read. They are read before the next `setImmediate`.
   */
  readonly #fire = (): void => {
    setImmediate(() => this.#expire())
  }

  constructor(afterMs: number) {
    this.#afterMs = afterMs
  }

  add(pending: Pending): void {
    // What is settled goes, or a server that is quick leaves a deadline's length of entries to the garbage collection.
    while (this.#first?.pending.isSettled) this.#first = this.#first.next
    if (this.#first === undefined) this.#last = undefined
    const entry: Entry = { pending, dueMs: nowMs() + this.#afterMs, next: undefined }
    if (this.#last === undefined) this.#first = entry
    else this.#last.next = entry
    this.#last = entry
    this.#timer ??= setTimeout(this.#fire, this.#afterMs)
  }

  /** The same promise, but it rejects at the deadline. A lost connection may leave an answer pending for ever. */
  within<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        pending.isSettled = true
      }
      const pending = { isSettled: false, expire: () => reject(lateError()) }
      this.add(pending)
      answer.finally(settle).then(resolve, reject)
    })
  }

  /** Settles all. */
  expireAll(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (!entry.pending.isSettled) entry.pending.expire()
    }
    this.#first = undefined
    this.#last = undefined
  }

  #expire(): void {
    const now = nowMs()
    for (let entry = this.#first; entry !== undefined; entry = this.#first) {
      if (!entry.pending.isSettled) {
        if (entry.dueMs > now) break
        entry.pending.expire()
      }
      this.#first = entry.next
    }
    if (this.#first === undefined) this.#last = undefined
    // Rounded up: a timer that fires early would turn idly.
    this.#timer = this.#first && setTimeout(this.#fire, Math.max(1, Math.ceil(this.#first.dueMs - now)))
  }
}
