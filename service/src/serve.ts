import { createLimiter } from 'millrace'
import { createApp } from './http/app.js'
import type { Limiters } from './limiters.js'

/** Options of {@link serve}. */
export interface ServeOptions {
  /** A limit and its window, such as `'100/1m'`. */
  readonly limit?: string
  /** @default '127.0.0.1' */
  readonly host?: string
  /** 0: any free port. @default 8080 */
  readonly port?: number
}

/** A running engine. */
export interface Served {
  /** Where it answers, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** Ends it: requests in flight are answered first. */
  close(): Promise<void>
}

/** Ready-made parts, for programs that embed the service. */
export interface Parts {
  /** The limiters by name, the default one first, in place of those of the options. It is read at each request. */
  readonly limiters?: Limiters
}

/**
 * Starts an engine of the decision service.
 * @example
 * ```ts
 * import { serve } from 'millrace-service'
 *
 * const { url, close } = await serve({ limit: '100/1m', port: 0 })
 * ```
 */
export async function serve(options: ServeOptions, parts: Parts = {}): Promise<Served> {
  const [limit, window] = (options.limit ?? '').split('/')
  const limiters =
    parts.limiters ?? new Map([['default', createLimiter({ limit: Number(limit), window: window as '1m' })]])
  const app = createApp(limiters)
  const url = await app.listen({ host: options.host ?? '127.0.0.1', port: options.port ?? 8080 })
  return {
    url,
    async close() {
      await app.close()
      if (parts.limiters === undefined) for (const limiter of limiters.values()) await limiter.close()
    },
  }
}
