import { invalid } from '../core/errors.js'
import type { FetchInit, FetchInput } from './arguments.js'
import {
  canSendAgain,
  type FetchResponse,
  firstHop,
  type Hop,
  isHttp,
  isRedirect,
  MAX_REDIRECTS,
  networkError,
  nextHop,
} from './hop.js'
import { hasIntegrity } from './integrity.js'
import type { OutgoingOptions } from './options.js'
import { Outgoing, type OutgoingHandles } from './outgoing.js'

export type { OutgoingOptions, OutgoingRequest } from './options.js'
export type { OutgoingHandles, OutgoingStats } from './outgoing.js'

/** A `fetch`: that of Node.js, of the package undici, or one that calls them. */
export type AnyFetch = (input: never, init?: never) => Promise<FetchResponse>
export type { FetchResponse } from './hop.js'

/**
 * Limits the calls of `fetch`: each waits for its turn under the limit of its host, and for the end of a pause
 * that an answer of the host told, to whichever caller (`Retry-After`, and the `RateLimit` headers of all IETF
 * drafts). A 429 or a 503 that tells when is sent again then.
 *
 * It follows redirects itself, and counts each of them. A pending call ends by its `signal`.
 * @param fetch the function to limit
 * @param options the limiter, and how calls wait
 * @returns a function with the same arguments and results, and with `stats()`. In addition to the errors of `fetch`, it rejects with
 * `ERR_MILLRACE_OVERLOADED` (`maxPending`), `MillraceLimited` (`maxWaitMs`, and `mode: 'refuse'`), and the errors
 * of {@link Limiter.wait}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_CLOSED`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { limitedFetch } from 'millrace/fetch'
 *
 * const limiter = createLimiter({ limit: 10, window: '1s' })
 * const politeFetch = limitedFetch(fetch, { limiter })
 * const response = await politeFetch('https://api.example.com/items', { signal: AbortSignal.timeout(5_000) })
 * ```
 */
export function limitedFetch<Fetch extends AnyFetch>(
  fetch: Fetch,
  options: OutgoingOptions,
): Fetch & OutgoingHandles {
  if (typeof fetch !== 'function') throw invalid('fetch', fetch, 'a function')
  const outgoing = new Outgoing(options)
  const send = fetch as unknown as (input: FetchInput, init?: FetchInit) => Promise<FetchResponse>

  /** Sends one hop, again where the answers tell so. */
  const sendHop = async (hop: Hop): Promise<FetchResponse> => {
    const key = outgoing.keyOf(hop)
    for (let attempt = 0; ; attempt++) {
      const permit = await outgoing.admit(key, hop.signal, attempt)
      let response: FetchResponse
      try {
        response = await send(hop.input, hop.init)
      } catch (error) {
        permit.end() // the server may have counted it
        throw error
      }
      const { status, headers } = response
      const sent = { method: hop.method, canResend: canSendAgain(hop), attempt }
      const answer = { status, headerOf: (name: string) => headers.get(name) }
      if (!outgoing.answered(key, permit, answer, sent)) return response
      await response.body?.cancel()
    }
  }

  const limited = async (input: FetchInput, init?: FetchInit): Promise<FetchResponse> => {
    let hop = firstHop(input, init)
    if (!isHttp(hop.url)) return send(hop.input, hop.init)
    for (let redirects = 0; ; redirects++) {
      const response = await sendHop(hop)
      if (!hop.follows || !isRedirect(response)) {
        if (hop.integrity !== '') await checkIntegrity(response, hop.integrity)
        return redirects === 0 ? response : asRedirected(response, hop.isCrossOrigin)
      }
      await response.body?.cancel()
      if (redirects === MAX_REDIRECTS) {
        throw networkError('redirect count exceeded')
      }
      hop = nextHop(hop, response)
    }
  }
  return Object.assign(limited as unknown as Fetch, outgoing.handles)
}

/** @throws TypeError as `fetch` rejects with, if the body is not what the call asked for */
async function checkIntegrity(response: FetchResponse, integrity: string): Promise<void> {
  const copy = response.body === null ? undefined : response.clone?.()
  if (copy !== undefined && (await hasIntegrity(await copy.arrayBuffer(), integrity))) return
  throw networkError('integrity mismatch')
}

/** A response that says that it came by a redirect, and from another origin if it did. */
function asRedirected(response: FetchResponse, isCrossOrigin: boolean): FetchResponse {
  const redirected = { value: true }
  return Object.defineProperties(
    response,
    isCrossOrigin ? { redirected, type: { value: 'cors' } } : { redirected },
  )
}
