// Limits each client of a Hono app by its address: 10 requests in any minute.
//
//   node examples/hono.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { rateLimit } from 'millrace/hono'

const app = new Hono()
app.use(rateLimit({ limit: 10, window: '1m' }))
app.get('/', (context) => context.text(`hello, ${context.get('rateLimit').remaining} requests are left\n`))

const options = { fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' }
const server = serve(options, ({ port }) => console.log(`listening on http://127.0.0.1:${port}`))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
