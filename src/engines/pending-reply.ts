import { offAbort, onAbort, type Signal } from '../core/on-abort.js'
import { aborted } from './pool-errors.js'

/** Something that was asked of another thread, and the promise of its answer. */
export abstract class PendingReply<T> {
  readonly promise: Promise<T>
  /** The caller has been told something. */
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

  /** Some of it may have been begun with. */
  protected abstract get isSent(): boolean

  /** Rejects it when the signal is aborted before it is answered. */
  endBy(signal: Signal): void {
    this.#signal = signal
    this.#abort = () => this.reject(aborted(signal.reason, this.isSent))
    onAbort(signal, this.#abort)
  }

  reject(error: unknown): void {
    if (this.#settles()) this.#reject(error)
  }

  protected resolve(value: T): void {
    if (this.#settles()) this.#resolve(value)
  }

  #settles(): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    if (this.#abort !== undefined) offAbort(this.#signal!, this.#abort)
    return true
  }
}
