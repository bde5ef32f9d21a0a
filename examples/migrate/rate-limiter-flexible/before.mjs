// A server that rate-limiter-flexible limits, in its own memory: 5 requests a minute for each client.
//
//   node examples/migrate/rate-limiter-flexible/before.mjs
import { createServer } from 'node:http'
import { RateLimiterMemory } from 'rate-limiter-flexible'

const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
const server = createServer(async (request, response) => {
  const isAllowed = await limiter.consume(request.socket.remoteAddress).then(
    () => true,
    (refused) => {
      response.setHeader('Retry-After', Math.ceil(refused.msBeforeNext / 1000))
      return false
    },
  )
  response.statusCode = isAllowed ? 200 : 429
  response.end(isAllowed ? 'hello\n' : 'too many requests\n')
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
