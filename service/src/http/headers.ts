import type { FastifyReply } from 'fastify'
import type { Decision } from 'millrace'
import { RateLimitHeaders } from 'millrace/internal'
import type { AnyLimiter } from '../limiters.js'

const access = {
  set: (reply: FastifyReply, name: string, value: string): void => void reply.header(name, value),
  get: (reply: FastifyReply, name: string) => reply.getHeader(name) as string | undefined,
}
const written = new WeakMap<AnyLimiter, RateLimitHeaders<FastifyReply>>()

/** Sets the RateLimit fields of a decision, and `Retry-After` of a refusal. */
export function writeHeaders(reply: FastifyReply, limiter: AnyLimiter, decision: Decision): void {
  let headers = written.get(limiter)
  if (headers === undefined) {
    headers = new RateLimitHeaders('draft-11', limiter, access)
    written.set(limiter, headers)
  }
  headers.write(reply, decision, false)
  headers.writeRetryAfter(reply, decision)
}
