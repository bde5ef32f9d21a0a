import { offAbort, onAbort, type Signal } from '../../core/on-abort.js'
import { abortedError } from './pool-errors.js'

/** A request to the pool, with the promise of its reply. */
export abstract class PendingReply<T> {
  readonly promise: Promise<T>
  isSettled = false
  #resolve!: (value: T) => void
  #reject!: (error: unknown) => void
  #signal: Signal | undefined = undefined
  #abort: (() => void) | undefined = undefined

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Whether at least a part of it is in a ring, so that a worker may have charged it. */
  protected abstract get isSent(): boolean

  /** Rejects the promise when the signal is aborted before the reply comes. */
  rejectOnAbort(signal: Signal): void {
    this.#signal = signal
    this.#abort = () => this.reject(abortedError(signal.reason, this.isSent))
    onAbort(signal, this.#abort)
  }

  reject(error: unknown): void {
    if (this.#settle()) this.#reject(error)
  }

  protected resolve(value: T): void {
    if (this.#settle()) this.#resolve(value)
  }

  /** False if the promise is settled already. */
  #settle(): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    if (this.#abort !== undefined) offAbort(this.#signal!, this.#abort)
    return true
  }
}
