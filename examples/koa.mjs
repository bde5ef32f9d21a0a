// Limits each client of a Koa app by its address: 10 requests in any minute.
//
//   node examples/koa.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
import Koa from 'koa'
import { rateLimit } from 'millrace/koa'

const app = new Koa()
app.use(rateLimit({ limit: 10, window: '1m' }))
app.use((context) => {
  context.body = `hello, ${context.state.rateLimit.remaining} requests are left\n`
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
