/**
 * The servers of the comparison. `headers only` adds constant headers to `bare`, `limiter` decides and sets
 * them, `two rules` decides by two rules, and `pool limiter` decides on other threads.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createLimiter, type Decision } from 'millrace'
import { LIMIT, WINDOW_MS } from '../peers.js'

export const KEY_HEADER = 'x-api-key'
export const BODY = 'hello\n'
const HOUR_MS = 3_600_000
const RULE = { limit: LIMIT, window: WINDOW_MS }

export const HANDLERS = {
  bare: () => (_request, response) => {
    response.end(BODY)
  },

  /** The baseline for the limiters: setting the headers takes longer than a decision. */
  'headers only': () => (_request, response) => answerConstantly(response),

  limiter() {
    const limiter = createLimiter(RULE)
    return (request, response) => answer(response, limiter.check(keyOf(request)))
  },

  'two rules': () => {
    const limiter = createLimiter({
      rules: [
        { ...RULE, name: 'burst' },
        { ...RULE, name: 'hourly', window: HOUR_MS },
      ],
    })
    return (request, response) => answer(response, limiter.check(keyOf(request)))
  },

  'pool limiter': () => {
    const limiter = createLimiter({ ...RULE, engine: 'pool' })
    return async (request, response) => answer(response, await limiter.check(keyOf(request)))
  },
} satisfies Record<string, () => RequestListener>

export type HandlerName = keyof typeof HANDLERS

export function keyOf(request: Pick<IncomingMessage, 'headers'>): string {
  const key = request.headers[KEY_HEADER]
  return typeof key === 'string' ? key : 'unknown'
}

/** Sets the headers of a decision. */
export function answer(response: ServerResponse, decision: Decision): void {
  response.setHeader('RateLimit-Limit', decision.limit)
  response.setHeader('RateLimit-Remaining', decision.remaining)
  response.setHeader('RateLimit-Reset', Math.ceil(decision.resetMs / 1_000))
  if (decision.allowed) {
    response.end(BODY)
    return
  }
  response.setHeader('Retry-After', decision.retryAfterSeconds)
  response.writeHead(429).end()
}

/** Sets the same headers to constants. */
export function answerConstantly(response: ServerResponse): void {
  response.setHeader('RateLimit-Limit', LIMIT)
  response.setHeader('RateLimit-Remaining', LIMIT - 1)
  response.setHeader('RateLimit-Reset', WINDOW_MS / 1_000)
  response.end(BODY)
}
