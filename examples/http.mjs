// Limits each client of an HTTP server by its address: 10 requests in any minute. Every response says what is left, in the
// header fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). A refusal is 429 with Retry-After.
//
//   node examples/http.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
import { createServer } from 'node:http'
import { createLimiter } from 'millrace'

const limiter = createLimiter({ name: 'per-client', limit: 10, window: '1m' })
const seconds = (ms) => Math.ceil(ms / 1000)
const { name, limit, windowMs } = limiter.rule
const policy = `"${name}";q=${limit};w=${seconds(windowMs)}`

const server = createServer((request, response) => {
  // Behind a proxy, every request has the proxy's address: take the client's address from the header that the proxy sets.
  // For IPv6 take the first 64 bits: a client has all addresses that begin with them.
  const decision = limiter.check(request.socket.remoteAddress ?? 'gone')
  response.setHeader('RateLimit-Policy', policy)
  response.setHeader('RateLimit', `"${name}";r=${decision.remaining};t=${seconds(decision.resetMs)}`)
  if (decision.allowed) return response.end('hello\n')
  response.setHeader('Retry-After', decision.retryAfterSeconds)
  response.writeHead(429).end('too many requests\n')
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => limiter.close()))
