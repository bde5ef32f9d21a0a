import type { Dispatcher } from 'undici'
import type { DispatchControl } from './dispatch-control.js'

/** How often a dispatcher is asked whether it has been closed, while requests wait for it. */
const LOOK_EVERY_MS = 100
const ENDS = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'])

/**
 * Ends the requests that wait for a dispatcher when that is destroyed or closed. An interceptor has only the
 * function `dispatch`, and undici has no event for it. So that function is asked, while a request waits: it is
 * called with a request that every dispatcher refuses before it opens a connection.
 */
export class DispatcherWatch {
  readonly #dispatch: Dispatcher.Dispatch
  readonly #waiting = new Set<DispatchControl>()
  #timer: NodeJS.Timeout | undefined

  constructor(dispatch: Dispatcher.Dispatch) {
    this.#dispatch = dispatch
  }

  add(request: DispatchControl): void {
    this.#waiting.add(request)
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref()
  }

  delete(request: DispatchControl): void {
    this.#waiting.delete(request)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const reason = refusalOf(this.#dispatch)
    if (!ENDS.has((reason as { readonly code?: string } | undefined)?.code ?? '')) return
    for (const request of this.#waiting) request.abort(reason as Error)
  }
}

/** The error with which a dispatcher refuses a request without a path. */
function refusalOf(dispatch: Dispatcher.Dispatch): unknown {
  const fail = (error: unknown) => {
    throw error // returned normally, a pool would take it for a busy connection
  }
  // An address, so that `dns` has nothing to look up; no URL and no string, so that an `Agent` opens no pool.
  const origin = { constructor: URL, hostname: '127.0.0.1', toString: () => 'http://127.0.0.1' }
  const request = { origin, path: '', method: 'GET', headers: {} } as unknown as Dispatcher.DispatchOptions
  try {
    dispatch(request, { onError: fail } as Dispatcher.DispatchHandler)
  } catch (error) {
    return error
  }
  return undefined
}
