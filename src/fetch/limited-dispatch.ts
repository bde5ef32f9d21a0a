import type { Dispatcher } from 'undici'
import { invalid } from '../core/errors.js'
import { canResend } from './body.js'
import { DispatchControl } from './dispatch-control.js'
import type { DispatcherWatch } from './dispatcher-watch.js'
import type { Permit } from './host.js'
import type { OutgoingRequest } from './options.js'
import type { Outgoing } from './outgoing.js'

type Controller = Dispatcher.DispatchController
type ResponseHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>[1]
type Socket = Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>[3]

/** A longer body of a discarded answer ends its connection. A shorter one is read, which keeps the connection. */
const MOST_DISCARDED_BYTES = 131_072

/**
 * One request: it waits for its permit, is dispatched, and is dispatched again if its answer tells so. It is the
 * handler of each of these dispatches. The caller's handler sees one request.
 */
export class LimitedDispatch implements Dispatcher.DispatchHandler {
  readonly #outgoing: Outgoing
  readonly #dispatch: Dispatcher.Dispatch
  readonly #watch: DispatcherWatch
  readonly #options: Dispatcher.DispatchOptions
  readonly #handler: Dispatcher.DispatchHandler
  readonly #key: string
  /** What the caller's handler sees: it stays the same when the request is sent again. */
  readonly #control = new DispatchControl()
  #permit: Permit | undefined
  #attempt = 0
  #hasStarted = false
  /** How many bytes of an answer were read and discarded; -1 if the answer is passed on. */
  #discarded = -1

  constructor(
    outgoing: Outgoing,
    dispatch: Dispatcher.Dispatch,
    watch: DispatcherWatch,
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    this.#outgoing = outgoing
    this.#dispatch = dispatch
    this.#watch = watch
    this.#options = options
    this.#handler = handler
    this.#key = outgoing.keyOf(requestOf(options))
  }

  /** @returns false if the dispatcher asks to wait for its event `drain` */
  start(): boolean {
    const permit = this.#outgoing.admitNow(this.#key)
    if (permit !== undefined) return this.#send(permit)
    this.#begin({}) // so that the caller can abort it
    this.#sendLater()
    return true
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#control.connect(controller)
    this.#begin(context)
  }

  onRequestUpgrade(_: Controller, status: number, headers: ResponseHeaders, socket: Socket): void {
    this.#permit?.end()
    this.#handler.onRequestUpgrade?.(this.#control, status, headers, socket)
  }

  onResponseStart(_: Controller, status: number, headers: ResponseHeaders, message?: string): void {
    if (status >= 200 && this.#isSentAgain(status, headers)) this.#discarded = 0
    else this.#handler.onResponseStart?.(this.#control, status, headers, message)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#discarded < 0) {
      this.#handler.onResponseData?.(this.#control, chunk)
      return
    }
    this.#discarded += chunk.length
    if (this.#discarded > MOST_DISCARDED_BYTES) controller.abort(new Error('the answer is not read'))
  }

  onResponseEnd(_: Controller, trailers: ResponseHeaders): void {
    if (this.#discarded >= 0) this.#sendAgain()
    else this.#handler.onResponseEnd?.(this.#control, trailers)
  }

  onResponseError(_: Controller, error: Error): void {
    this.#permit?.end() // the server may have counted it
    if (this.#discarded >= 0 && !this.#control.signal.aborted) this.#sendAgain()
    else this.#fail(error)
  }

  /** Tells the caller's handler once that its request has begun. */
  #begin(context: unknown): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#handler.onRequestStart?.(this.#control, context)
  }

  #isSentAgain(status: number, headers: ResponseHeaders): boolean {
    const permit = this.#permit!
    const { method, body } = this.#options
    const headerOf = (name: string) => {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    }
    const sent = { method: method.toUpperCase(), canResend: canResend(body), attempt: this.#attempt }
    return this.#outgoing.answered(this.#key, permit, { status, headerOf }, sent)
  }

  #sendAgain(): void {
    this.#discarded = -1
    this.#attempt++
    this.#control.disconnect()
    this.#sendLater()
  }

  #sendLater(): void {
    const { signal } = this.#control
    this.#watch.add(this.#control)
    this.#outgoing.admit(this.#key, signal, this.#attempt).then(
      (permit) => {
        this.#watch.delete(this.#control)
        if (signal.aborted) {
          permit.cancel()
          this.#fail(signal.reason)
          return
        }
        try {
          this.#send(permit)
        } catch (error) {
          this.#fail(error as Error)
        }
      },
      (error: Error) => {
        this.#watch.delete(this.#control)
        this.#fail(error)
      },
    )
  }

  #send(permit: Permit): boolean {
    this.#permit = permit
    try {
      return this.#dispatch(this.#options, this)
    } catch (error) {
      permit.end()
      throw error
    }
  }

  #fail(error: Error): void {
    this.#handler.onResponseError?.(this.#control, error)
  }
}

/** What the option `key` sees of a request. Its parts are made when they are read. */
function requestOf({ origin, path, method, headers }: Dispatcher.DispatchOptions): OutgoingRequest {
  return {
    get url() {
      if (origin === undefined) {
        throw invalid('origin', origin, 'the origin of the request, or a string as the option key')
      }
      return urlOf(origin, path)
    },
    get headers() {
      return new Headers(pairsOf(headers))
    },
    method: method.toUpperCase(),
  }
}

/**
 * The URL of a request, whose host is that of the origin, where it is sent. A path is not resolved against it:
 * `//other/` would name another host, and so would `/\\other/` and an absolute URL, as a proxy gets it.
 */
function urlOf(origin: string | URL, path: string): URL {
  const { protocol, host } = new URL(origin)
  return new URL(`${protocol}//${host}${path.startsWith('/') ? '' : '/'}${path}`)
}

type RequestHeaders = Dispatcher.DispatchOptions['headers']

/** The headers of a request: a flat list of names and values, an object, or pairs. */
function pairsOf(headers: RequestHeaders): [string, string][] {
  if (headers === null || headers === undefined) return []
  if (Array.isArray(headers) && !Array.isArray(headers[0])) {
    const flat = headers as unknown as string[]
    return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, `${flat[i + 1]}`] as [string, string]] : []))
  }
  const pairs =
    Symbol.iterator in headers ? [...(headers as Iterable<[string, unknown]>)] : Object.entries(headers)
  return pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]))
}
