// A server with two limiters, one with the default clock and one with the wall clock. The reply to
// /default/KEY or /wall/KEY has the decision, its position, its reading of the clock, and the time when it
// took effect.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter } from 'millrace'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { OPTIONS } from './wall-clock.js'

const limiters = {
  default: createLimiter(OPTIONS),
  wall: createLimiter({ ...OPTIONS, clock: { now: Date.now } }),
}
let order = 0

const server = createServer((request, response) => {
  const [, name, key] = request.url!.split('/')
  const decision = limiters[name as keyof typeof limiters].check(key!) as InlineDecision
  const { allowed, at: readingMs, retryAfterMs } = decision
  const effectMs = allowed ? decision.effectMs(readingMs) : 0
  response.writeHead(allowed ? 200 : 429)
  response.end(JSON.stringify({ order: order++, allowed, readingMs, effectMs, retryAfterMs }))
})
// Without this, setting the clock ahead would look like a client that was silent for an hour.
server.requestTimeout = 0
server.headersTimeout = 0
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
process.on('disconnect', () => server.close())
