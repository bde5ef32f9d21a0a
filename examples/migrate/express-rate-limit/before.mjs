// An app that express-rate-limit limits, on its own store: 5 requests a minute for each client.
//
//   node examples/migrate/express-rate-limit/before.mjs
import express from 'express'
import { MemoryStore, rateLimit } from 'express-rate-limit'

const app = express()
const options = { windowMs: 60_000, limit: 5, standardHeaders: 'draft-8' }
const store = new MemoryStore()
app.use(rateLimit({ ...options, store }))
app.get('/', (_, response) => response.send('hello\n'))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => store.shutdown()))
