import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Socket } from 'node:net'
import type { Decision } from '../core/decision.js'
import type { Framework, HttpRequest } from './framework.js'
import { onHangUp, queuedOn } from './hang-up.js'
import { pathsAfter, pathsOf } from './readings.js'
import { pathsByParse, pathsByUrl, type Targets } from './routes/request-path.js'
import type { Refusal } from './step.js'

/** A request of node:http, or of node:http2 by its compatible interface. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** The code of HTTP/2 for a stream that its server could not finish (RFC 9113, section 7). */
const INTERNAL_ERROR = 2

/** Where the decision of a request is kept. */
interface Kept {
  rateLimit?: Decision
}

/** A framework such as Connect keeps the target, and cuts off `url` what a handler is mounted at. */
interface Connected {
  readonly url?: string | undefined
  readonly originalUrl?: string
}

/** Connect reads a path as Express does. Its handlers may read it as an app on node:http. */
const pathsByConnect = (target: string): Targets =>
  [...new Set([...pathsByUrl(target), ...pathsByParse(target)])] as [string, ...string[]]

/**
 * The request that a response answers. Middleware may hand a limiter an object in its place that only looks like it:
 * one made by `Object.create`, or a proxy. The response says which request is meant. A batch whose parts have responses
 * of their own is several requests.
 */
export const answeredBy = <Request extends object>(request: Request, response?: NodeResponse): Request =>
  (response?.req as unknown as Request | undefined) ?? request

/** The parts of node's own requests and responses, on which Express is built. */
export const nodeFramework: Framework<NodeRequest, NodeResponse> = {
  requestOf: (request) => request as HttpRequest,
  identityOf: answeredBy,
  pathsOf(request) {
    const { url = '/', originalUrl } = request as Connected
    return originalUrl === undefined ? pathsOf(pathsByUrl(url)) : pathsAfter(url, originalUrl, pathsByConnect)
  },
  keep(request, response, decision) {
    ;(request as Kept).rateLimit = decision
    const answered = answeredBy(request, response)
    if (answered !== request) (answered as Kept).rateLimit = decision
  },
  kept: (request) => (request as Kept).rateLimit,
  set(response, name, value) {
    response.setHeader(name, value)
  },
  get(response, name) {
    const value = response.getHeader(name)
    return value === undefined ? undefined : String(value)
  },
  hasGone: (request) => hasGone(request),
  onEnd(_, response, done) {
    onEnd(response, done)
  },
  connectionOf: (_, response) => connectionOf(response),
}

/** A connection that its client has reset still has the address of this side. A Unix socket has neither. */
export function hasGone({ socket }: HttpRequest): boolean {
  const { remoteAddress, localAddress, destroyed } = socket
  return remoteAddress === undefined && (destroyed === true || localAddress !== undefined)
}

/**
 * Undefined for HTTP/2, whose requests share a connection but don't wait for one another, and where something else
 * stands for a connection: in tests that inject requests, and in other runtimes.
 */
export function connectionOf(response: NodeResponse): Socket | undefined {
  const connection = 'stream' in response ? undefined : response.req?.socket
  return connection instanceof Socket ? connection : undefined
}

/** Calls `done` when the response has been sent, or its connection has closed. That may be at once. */
export function onEnd(response: NodeResponse, done: (isSent: boolean) => void): void {
  const connection = 'stream' in response ? undefined : queuedOn(response)
  if (isClosed(response) || connection?.destroyed === true) {
    done(false)
    return
  }
  let isSent = false
  let isDone = false
  const emitter = response as ServerResponse
  emitter.once('finish', () => {
    // A response of HTTP/2 also emits `finish` when its client has reset the stream.
    isSent = response.writableEnded
  })
  const end = (): void => {
    if (isDone) return
    isDone = true
    forget?.()
    done(isSent)
  }
  const forget = connection && onHangUp(connection, end)
  emitter.once('close', end)
}

function isClosed(response: NodeResponse): boolean {
  return 'stream' in response ? response.stream.closed : response.closed
}

/**
 * Sends the answer to a refused request. A response that has begun can't become another one: its connection is
 * closed, so that the client does not take the part for the whole.
 */
export function send(response: NodeResponse, { status, contentType, body }: Refusal): void {
  if (response.writableEnded) return
  if (response.headersSent) {
    if ('stream' in response) response.stream.close(INTERNAL_ERROR)
    else response.destroy()
    return
  }
  response.statusCode = status
  response.setHeader('Content-Type', contentType)
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body) // node leaves the body out for HEAD
}
