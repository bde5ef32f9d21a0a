import type { Socket } from 'node:net'
import type { Decision } from '../core/decision.js'
import type { HeaderAccess } from './headers/header-access.js'
import type { Paths } from './readings.js'

/** The socket of a request. `remoteAddress` is undefined if the client has gone, or it is no IP socket. */
export interface HttpSocket {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean
  /** What errors call the place of the address, if it is a function of the options and no socket. */
  readonly from?: string
}

/** Header values by their names in lower case, as Node.js has them. */
export type HttpHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * What Millrace reads of a request. The requests of Node.js (HTTP/1 and 2), Express and Fastify, and the
 * context of Koa, have these fields.
 */
export interface HttpRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: HttpHeaders
  readonly socket: HttpSocket
}

/**
 * A web framework: how the policy reaches the parts of its requests and responses. `Request` and `Response`
 * are what the framework hands to the functions in a user's options.
 */
export interface Framework<Request, Response> extends HeaderAccess<Response> {
  /** The part of a request that addresses and routes are read from. */
  requestOf(request: Request): HttpRequest
  /** An object of this request alone, which is the same wherever the request is met. It is given fields. */
  identityOf(request: Request, response: Response): object
  /** The path of a request, as the router reads it: what routes are compared with. */
  pathsOf(request: Request): Paths
  /** Puts the decision where the framework's users look for it. */
  keep(request: Request, response: Response, decision: Decision): void
  /** The decision that an earlier limiter has kept. */
  kept(request: Request): Decision | undefined
  /** Whether the client of a request has gone. False if that is not known. */
  hasGone(request: Request): boolean
  /**
   * Calls `done` once: with true when the response is sent whole, with false if the connection closed before.
   */
  onEnd(request: Request, response: Response, done: (isSent: boolean) => void): void
  /** The connection of a request of HTTP/1. Undefined if it is not known. */
  connectionOf(request: Request, response: Response): Socket | undefined
}
