/** The three servers that are compared: each does what the one before does, and one thing more. */
import type { RequestListener } from 'node:http'
import { createLimiter } from 'millrace'
import { LIMIT, WINDOW_MS } from '../peers.js'

export const KEY_HEADER = 'x-api-key'
const BODY = 'hello\n'

export const HANDLERS = {
  bare: () => (_request, response) => {
    response.end(BODY)
  },

  /** What a client is told costs more than finding it out: this is what the limiter is held against. */
  'headers only': () => (_request, response) => {
    response.setHeader('RateLimit-Limit', LIMIT)
    response.setHeader('RateLimit-Remaining', LIMIT - 1)
    response.setHeader('RateLimit-Reset', WINDOW_MS / 1_000)
    response.end(BODY)
  },

  limiter() {
    const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
    return (request, response) => {
      const key = request.headers[KEY_HEADER]
      const decision = limiter.check(typeof key === 'string' ? key : 'unknown')
      response.setHeader('RateLimit-Limit', decision.limit)
      response.setHeader('RateLimit-Remaining', decision.remaining)
      response.setHeader('RateLimit-Reset', Math.ceil(decision.resetMs / 1_000))
      if (decision.allowed) return response.end(BODY)
      response.setHeader('Retry-After', Math.ceil(decision.retryAfterMs / 1_000))
      return response.writeHead(429).end()
    }
  },
} satisfies Record<string, () => RequestListener>

export type HandlerName = keyof typeof HANDLERS
