import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Decision } from '../core/decision.js'
import type { Framework, HttpRequest } from './framework.js'
import type { Refusal } from './policy.js'

/** A request of node:http, or of node:http2 by its compatible interface. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Where the decision of a request is kept. */
interface Kept {
  rateLimit?: Decision
}

/** The parts of node's own requests and responses, on which Express is built. */
export const nodeFramework: Framework<NodeRequest, NodeResponse> = {
  requestOf: (request) => request as HttpRequest,
  pathOf: ({ url }) => url ?? '/',
  keep(request, decision) {
    ;(request as Kept).rateLimit = decision
  },
  kept: (request) => (request as Kept).rateLimit,
  set(response, name, value) {
    response.setHeader(name, value)
  },
  get(response, name) {
    const value = response.getHeader(name)
    return value === undefined ? undefined : String(value)
  },
  onEnd(_, response, done) {
    onEnd(response, done)
  },
}

/** Calls `done` when the response has been sent, or its connection has closed. */
export function onEnd(response: NodeResponse, done: (isSent: boolean) => void): void {
  let isSent = false
  const emitter = response as ServerResponse
  emitter.once('finish', () => {
    isSent = true
  })
  emitter.once('close', () => done(isSent))
}

/** Sends the answer to a refused request. A response that has begun is ended as it is. */
export function send(response: NodeResponse, { status, contentType, body }: Refusal): void {
  if (response.headersSent) {
    response.end()
    return
  }
  response.statusCode = status
  response.setHeader('Content-Type', contentType)
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body) // node leaves the body out for HEAD
}
