// An API with plans: each customer has the limit of their plan, by their API key. A change of plan holds at
// once, and what the customer has used in this minute stays used. Unknown keys share the limit of their
// address.
//
//   node examples/plans.mjs
//   for i in $(seq 7); do curl -si http://127.0.0.1:3000/ -H 'x-api-key: free-1' | grep -iE '^(http|rate)'; done
//   curl -si http://127.0.0.1:3000/ -H 'x-api-key: pro-1' | grep -iE '^(http|rate)'
import express from 'express'
import { ipKey, rateLimit } from 'millrace/express'

const plans = { free: 5, pro: 50 }
const customers = new Map([
  ['free-1', { plan: 'free' }],
  ['pro-1', { plan: 'pro' }],
])
const address = ipKey()

const app = express()
app.use((request, _response, next) => {
  request.customer = customers.get(request.get('x-api-key'))
  next()
})
app.use(
  rateLimit({
    name: 'plan',
    window: '1m',
    key: (request) => (request.customer ? `key:${request.get('x-api-key')}` : `address:${address(request)}`),
    limit: (request) => plans[request.customer?.plan ?? 'free'],
  }),
)
app.get('/', (_request, response) => response.send('data\n'))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
