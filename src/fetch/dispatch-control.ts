import type { Dispatcher } from 'undici'

/**
 * The controller of a request for its caller. Before the request is dispatched, and between two dispatches, it
 * keeps what the caller asks for. Otherwise it passes that on to the controller of the connection.
 */
export class DispatchControl implements Dispatcher.DispatchController {
  readonly #abort = new AbortController()
  #connection: Dispatcher.DispatchController | undefined
  #isPaused = false

  /** Is aborted with the request. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  connect(connection: Dispatcher.DispatchController): void {
    this.#connection = connection
    if (this.aborted) connection.abort(this.reason!)
    else if (this.#isPaused) connection.pause()
  }

  disconnect(): void {
    this.#connection = undefined
  }

  abort(reason: Error): void {
    this.#abort.abort(reason)
    this.#connection?.abort(reason)
  }

  pause(): void {
    this.#isPaused = true
    this.#connection?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#connection?.resume()
  }

  get aborted(): boolean {
    return this.signal.aborted || (this.#connection?.aborted ?? false)
  }

  get reason(): Error | null {
    return this.signal.aborted ? this.signal.reason : (this.#connection?.reason ?? null)
  }

  get paused(): boolean {
    return this.#isPaused || (this.#connection?.paused ?? false)
  }

  get rawHeaders() {
    return this.#connection?.rawHeaders ?? null
  }

  get rawTrailers() {
    return this.#connection?.rawTrailers ?? null
  }
}
