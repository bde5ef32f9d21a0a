// An app that @fastify/rate-limit limits, on its own store: 5 requests a minute for each client, 2 to log in.
//
//   node examples/migrate/fastify-rate-limit/before.mjs
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'

const app = Fastify()
await app.register(rateLimit, { max: 5, timeWindow: '1 minute' })
app.get('/', () => ({ hello: 'world' }))
app.get('/login', { config: { rateLimit: { max: 2, timeWindow: '15 minutes' } } }, () => ({ welcome: true }))

console.log(`listening on ${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}`)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
