// A server with two limiters, one by the default clock and one by the wall clock: asked for /default/KEY or /wall/KEY it
// answers what was decided, in which order, by which reading of its own, and when that took effect.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter } from 'millrace'
import type { InlineDecision } from '#millrace/core/decision.js'
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
// A clock that is set ahead must not look like a client that has said nothing for an hour.
server.requestTimeout = 0
server.headersTimeout = 0
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
process.on('disconnect', () => server.close())
