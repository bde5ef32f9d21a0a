import { offAbort, onAbort, type Signal } from '../core/on-abort.js'

/** Ends a wait: after a time, or by the caller's signal. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #caller: Signal | undefined
  readonly #abort = () => this.#controller.abort(this.#caller?.reason)
  readonly #timer: NodeJS.Timeout | undefined

  /**
   * @param ms milliseconds, at most those of a timer, or `Infinity`
   * @param caller a signal that is not aborted
   * @param lateError returns the reason of a wait that takes too long
   */
  constructor(ms: number, caller: Signal | undefined, lateError: () => Error) {
    this.#caller = caller
    if (caller !== undefined) onAbort(caller, this.#abort)
    if (ms !== Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#controller.abort(madeBy(lateError)), ms)
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Resolves after `ms`, or as soon as the wait ends. */
  sleep(ms: number): Promise<void> {
    const { signal } = this
    if (ms === 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal.addEventListener('abort', done)
    })
  }

  end(): void {
    clearTimeout(this.#timer)
    if (this.#caller !== undefined) offAbort(this.#caller, this.#abort)
  }
}

/** The error that a function returns or, if the limiter has been closed meanwhile, throws. */
function madeBy(make: () => Error): unknown {
  try {
    return make()
  } catch (error) {
    return error
  }
}
