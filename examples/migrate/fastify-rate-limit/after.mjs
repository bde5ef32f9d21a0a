// The same app as before.mjs on a store of Millrace: 5 requests in any minute for each client, 2 to log in.
//
//   node examples/migrate/fastify-rate-limit/after.mjs
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { MillraceStore } from 'millrace/compat/fastify-rate-limit'

const app = Fastify()
await app.register(rateLimit, { max: 5, timeWindow: '1 minute', store: MillraceStore })
app.get('/', () => ({ hello: 'world' }))
app.get('/login', { config: { rateLimit: { max: 2, timeWindow: '15 minutes' } } }, () => ({ welcome: true }))

console.log(`listening on ${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}`)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
