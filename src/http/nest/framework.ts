import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ExecutionContext } from '@nestjs/common'
import type { Decision } from '../../core/decision.js'
import type { Framework, HttpRequest } from '../framework.js'
import { connectionOf, hasGone, onEnd } from '../node-framework.js'
import { fastifyPathsOf, type Paths, pathsAfter, pathsWithin } from '../readings.js'
import { pathsByParse, usesSemicolon } from '../routes/request-path.js'

/** The platform's request: that of Express, or of Fastify. Give your parameter the type that you use. */
// biome-ignore lint/suspicious/noExplicitAny: Nest does not know its platform either
export type NestRequest = any

/** The platform's response: that of Express, or the reply of Fastify. */
// biome-ignore lint/suspicious/noExplicitAny: see NestRequest
export type NestResponse = any

declare global {
  namespace Express {
    interface Request {
      /** The decision about this request; undefined if it was not limited. */
      rateLimit?: Decision | undefined
    }
  }
}

/** A request of either platform, `Limited<FastifyRequest>`, with the decision; undefined if it was not limited. */
export type Limited<Request> = Request & { readonly rateLimit?: Decision | undefined }

/** A call of a handler that Nest asks the guard about. */
export interface Call {
  readonly request: NestRequest
  /** Undefined if the transport has no response with headers. */
  readonly response: NestResponse
  readonly context: ExecutionContext
  /** The same object wherever a guard is asked about this call. */
  readonly identity: object
  /** The last decision about this call. */
  decision?: Decision
}

/** The service that has kept a decision at a request. */
const KEPT_BY = Symbol('millrace kept by')

/** The paths of a request of either platform, as its router reads them. Those of Express have an `app`. */
export function pathsOf(request: NestRequest): Paths {
  const { url = '/', originalUrl = url, baseUrl, app, server } = request
  if (app !== undefined) return pathsAfter(url, originalUrl, pathsByParse, baseUrl)
  return fastifyPathsOf(request, usesSemicolon(server))
}

/** The parts of Express's and Fastify's requests and responses. Each service has one of its own. */
export class NestFramework implements Framework<Call, Call> {
  readonly #prefix: () => string

  /** @param prefix tells the global prefix of the app, which may be set after the service was made */
  constructor(prefix: () => string) {
    this.#prefix = prefix
  }

  requestOf({ request }: Call): HttpRequest {
    const raw = request.raw ?? request
    // Other transports than HTTP may have no headers.
    return raw.headers === undefined ? { socket: raw.socket, headers: {} } : raw
  }

  identityOf({ identity }: Call): object {
    return identity
  }

  pathsOf({ request }: Call): Paths {
    const paths = pathsOf(request)
    const prefix = this.#prefix()
    return prefix === '' ? paths : pathsWithin(prefix, paths)
  }

  keep(call: Call, _: Call, decision: Decision): void {
    const { request } = call
    call.decision = decision
    request.rateLimit = decision
    request[KEPT_BY] = this
  }

  /**
   * The decision of an earlier limiter: middleware, which Fastify hands the request of Node.js. Of this service only
   * one about the same call: a request of GraphQL may call several handlers, and the last one sets the headers.
   */
  kept({ request, decision }: Call): Decision | undefined {
    if (request[KEPT_BY] === this) return decision
    return request.rateLimit ?? request.raw?.rateLimit
  }

  set({ response }: Call, name: string, value: string): void {
    if (response === undefined) return
    if (response.raw === undefined) response.setHeader(name, value)
    else response.header(name, value)
  }

  get({ response }: Call, name: string): string | undefined {
    const value = response?.getHeader(name)
    return value === undefined ? undefined : String(value)
  }

  hasGone(call: Call): boolean {
    return call.request.socket !== undefined && hasGone(this.requestOf(call))
  }

  onEnd(_: Call, { response }: Call, done: (isSent: boolean) => void): void {
    if (response !== undefined) onEnd((response.raw ?? response) as ServerResponse, done)
  }

  connectionOf(_: Call, { response }: Call): Socket | undefined {
    return response && connectionOf(response.raw ?? response)
  }
}
