import { request as rawRequest } from 'node:http'
import type { Decision } from 'millrace'
import type { MemberKeys, RateLimitOptions, RateLimitStats } from 'millrace/http'

/** The options of any framework. Its requests and responses are of its own types. */
// biome-ignore lint/suspicious/noExplicitAny: the suite reaches them only through the driver
export type AnyOptions = RateLimitOptions<any, any>

/** Whether these are the options of `groupLimit`. */
export const isGroup = (options: object): boolean => 'members' in options

/** A server that is being tested. */
export interface Served {
  readonly url: string
  reset(key: string | MemberKeys): Promise<void>
  /** Those of the first limiter. */
  stats(): Promise<RateLimitStats>
  close(): Promise<void>
}

/** Sends requests. */
export interface Client {
  fetch(url: string, init: { method: string; headers: Record<string, string> }): Promise<Response>
  /** Sends a GET whose response may never come. Returns a function that closes it, and waits for that. */
  open(url: string, headers: Record<string, string>): () => Promise<void>
}

/**
 * A framework under test. Its server has these routes, behind `rateLimit`, or `groupLimit` for options with `members`:
 *
 *     GET /           'hello'
 *     GET /decision   the kept decision as JSON, or null
 *     GET /status/:n  status n
 *     GET /hang       no response, as long as the client waits
 *     POST /login     status 401
 */
export interface FrameworkDriver {
  readonly name: string
  /** Whether the framework answers plain requests without a server, with no socket to take an address from. */
  readonly hasNoSocket?: true
  /** Whether only requests are limited that the router has a handler for. */
  readonly isBehindRouter?: true
  /** @default HTTP/1.1 */
  readonly client?: Client
  /** Several sets of options: several limiters in one chain. */
  serve(...chain: readonly AnyOptions[]): Promise<Served>
  /** Serves `GET /` behind one limiter that each request meets three times, or as often as the framework allows. */
  serveRepeatedly(options: AnyOptions): Promise<Served>
  /** A header of the framework's request. */
  header(request: unknown, name: string): string | undefined
  /** The status of what the framework hands to `countIf`. */
  statusOf(response: unknown): number
  /** The option `handler` that answers 418 with the name of the deciding rule as text. */
  teapot(): Pick<AnyOptions & { handler: unknown }, 'handler'>
}

/** The body of `GET /decision`. */
export const decisionBody = (decision: Decision | undefined): string =>
  JSON.stringify(decision?.toJSON() ?? null)

export const http1Client: Client = {
  fetch: (url, init) => fetch(url, init),
  open(url, headers) {
    const request = rawRequest(url, { headers }).end()
    request.on('error', () => {}) // it is closed before its response
    const closed = new Promise<void>((resolve) => request.once('close', resolve))
    return () => {
      request.destroy()
      return closed
    }
  },
}
