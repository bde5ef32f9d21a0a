// `millrace/client`: limiters whose decisions are made by a decision service, `millrace serve`.
import { ClientLimiter } from './client-limiter.js'
import { type ClientOptions, checkClientOptions } from './client-options.js'

export { type ErrorCode, MillraceError } from '../core/errors.js'
export type { OnOutage, OutageChange } from '../remote/outage-watch.js'
export type { ClientLimiter, ClientStats, EngineStats } from './client-limiter.js'
export type { ClientEngine, ClientOptions, ClientTls } from './client-options.js'

/**
 * Creates a limiter that asks a decision service, such as `millrace serve`. The rules and the counts are the service's.
 * Connections stay open, and what is asked in one turn of the event loop goes out in one request. Calls of one turn are
 * decided in their order.
 * @param options the address, and what happens while the service does not answer
 * @returns an {@link AsyncLimiter}. `pack`, `share` and `clearAll` are not possible; `update` changes the limits that
 * this client asks for
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { createClient } from 'millrace/client'
 *
 * const limiter = createClient({ url: 'http://127.0.0.1:8080', onOutage: 'open' })
 * const { allowed, retryAfterSeconds } = await limiter.check('user:42')
 * if (!allowed) console.log(`Retry-After: ${retryAfterSeconds}`)
 * await limiter.close()
 * ```
 */
export const createClient = (options: ClientOptions): ClientLimiter =>
  new ClientLimiter(checkClientOptions(options))
