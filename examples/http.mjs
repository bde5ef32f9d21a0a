// Limits each client of an HTTP server by its address: 10 requests in any minute. Every response says what is
// left, in the header fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). A refusal
// is 429 with Retry-After and a problem document.
//
//   node examples/http.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
import { createServer } from 'node:http'
import { rateLimit } from 'millrace/http'

// Behind a proxy every request has the proxy's address. Then add trustProxy: 1, and its header holds.
const limited = rateLimit({ name: 'per-client', limit: 10, window: '1m' })

const server = createServer((request, response) => {
  limited(request, response, () => response.end('hello\n'))
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => server.close(() => limited.close()))
}
