// The same server as before.mjs on a limiter of Millrace, which differs by one import.
//
//   node examples/migrate/limiter/after.mjs
import { createServer } from 'node:http'
import { RateLimiter } from 'millrace/compat/limiter'

const limiter = new RateLimiter({ tokensPerInterval: 5, interval: 'minute' })
const server = createServer((_, response) => {
  const isAllowed = limiter.tryRemoveTokens(1)
  if (!isAllowed) response.setHeader('Retry-After', Math.ceil(limiter.getWaitTime(1) / 1000))
  response.statusCode = isAllowed ? 200 : 429
  response.end(isAllowed ? 'hello\n' : 'too many requests\n')
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
