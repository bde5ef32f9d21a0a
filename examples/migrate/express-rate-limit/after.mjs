// The same app as before.mjs on a store of Millrace, which differs by one import: 5 requests in any minute.
//
//   node examples/migrate/express-rate-limit/after.mjs
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { MemoryStore } from 'millrace/compat/express-rate-limit'

const app = express()
const options = { windowMs: 60_000, limit: 5, standardHeaders: 'draft-8' }
const store = new MemoryStore()
app.use(rateLimit({ ...options, store }))
app.get('/', (_, response) => response.send('hello\n'))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => store.shutdown()))
