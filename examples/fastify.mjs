// Limits each client of a Fastify app by its address: 10 requests in any minute, and 3 logins in 15 minutes.
//
//   node examples/fastify.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
//   for i in $(seq 4); do curl -si http://127.0.0.1:3000/login -X POST | head -1; done
import Fastify from 'fastify'
import { rateLimit } from 'millrace/fastify'

const app = Fastify()
await app.register(rateLimit, { limit: 10, window: '1m' })
app.get('/', ({ rateLimit }) => `hello, ${rateLimit.remaining} requests are left\n`)
app.post('/login', { config: { rateLimit: { limit: 3, window: '15m' } } }, () => 'welcome\n')

const url = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`listening on ${url}`)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
