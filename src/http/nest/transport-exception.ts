import { createRequire } from 'node:module'
import type { Refusal } from '../step.js'
import { RateLimitException } from './exception.js'

/** The figures of a refusal, as plain data. */
function figuresOf({ status, decision }: Refusal): Record<string, unknown> {
  if (decision === undefined) return { status }
  const { rule, limit, remaining, retryAfterSeconds } = decision
  return { status, rule, limit, remaining, retryAfterSeconds }
}

/** The exceptions that Nest's own filters send to the clients of transports without HTTP. */
const TRANSPORTS: Readonly<Record<string, readonly [packageName: string, exception: string]>> = {
  ws: ['@nestjs/websockets', 'WsException'],
  rpc: ['@nestjs/microservices', 'RpcException'],
}

type Exception = new (error: object) => Error

/**
 * Makes an exception for a transport that is not HTTP: a `WsException` for WebSocket gateways, an `RpcException`
 * for microservices, both with the `RateLimitException` as their cause. Elsewhere it is a `RateLimitException`
 * itself, whose `extensions` GraphQL puts into its error.
 */
export function transportExceptionFor(refusal: Refusal, type: string): Error {
  const exception = new RateLimitException(refusal)
  const figures = figuresOf(refusal)
  const transport = TRANSPORTS[type]
  const Own = transport && exceptionOf(...transport)
  if (Own !== undefined) {
    const own = new Own({ ...figures, status: 'error', code: refusal.status, message: exception.message })
    return Object.assign(own, { cause: exception, decision: refusal.decision })
  }
  const code = refusal.decision === undefined ? 'RATE_LIMIT_UNAVAILABLE' : 'RATE_LIMITED'
  return Object.assign(exception, { extensions: { code, ...figures } })
}

/** The class of the app's own package. Undefined if this one can't reach it. */
function exceptionOf(packageName: string, exception: string): Exception | undefined {
  const require = createRequire(import.meta.url)
  let path: string
  try {
    path = require.resolve(packageName)
  } catch {
    return undefined
  }
  return (require(path) as Record<string, Exception>)[exception]
}
