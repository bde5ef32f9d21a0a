// Limits each client of an Express app by its address: 10 requests in any minute.
//
//   node examples/express.mjs
//   for i in $(seq 12); do curl -si http://127.0.0.1:3000/ | grep -iE '^(http|rate|retry)'; done
import express from 'express'
import { rateLimit } from 'millrace/express'

const app = express()
app.use(rateLimit({ limit: 10, window: '1m' }))
app.get('/', (request, response) => {
  response.send(`hello, ${request.rateLimit.remaining} requests are left\n`)
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
