import type { Dispatcher } from 'undici'
import { DispatcherWatch } from './dispatcher-watch.js'
import { LimitedDispatch } from './limited-dispatch.js'
import type { OutgoingOptions } from './options.js'
import { Outgoing, type OutgoingHandles } from './outgoing.js'

export type { OutgoingOptions, OutgoingRequest } from './options.js'
export type { OutgoingHandles, OutgoingStats } from './outgoing.js'

/**
 * Limits the requests of a dispatcher of the package undici, 7: an `Agent`, a `Pool` or a `Client`. They wait and
 * are sent again as by `limitedFetch`. The body of a request is not read before its turn. Redirects, retries and
 * the like are counted if their interceptors are composed after this one.
 *
 * A request that waits is accepted: `dispatch` returns true for it, and `maxPending` bounds how many there are.
 * A request that need not wait gets the dispatcher's own answer. What waits when the dispatcher is destroyed or
 * closed ends with the dispatcher's error.
 * @param options the limiter, and how requests wait
 * @returns an interceptor for `compose`, with `stats()`
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_CLOSED`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { limitInterceptor } from 'millrace/undici'
 * import { Agent, request } from 'undici'
 *
 * const limiter = createLimiter({ limit: 10, window: '1s' })
 * const dispatcher = new Agent().compose(limitInterceptor({ limiter }))
 * const { statusCode } = await request('https://api.example.com/items', { dispatcher })
 * ```
 */
export function limitInterceptor(
  options: OutgoingOptions,
): Dispatcher.DispatcherComposeInterceptor & OutgoingHandles {
  const outgoing = new Outgoing(options)
  const intercept: Dispatcher.DispatcherComposeInterceptor = (dispatch) => {
    const watch = new DispatcherWatch(dispatch)
    return (request, handler) => new LimitedDispatch(outgoing, dispatch, watch, request, handler).start()
  }
  return Object.assign(intercept, outgoing.handles)
}
