// Rules for routes: 100 requests a minute for each client in general, 5 logins in 15 minutes, 10 searches in
// 10 seconds with a burst limit of 3 a second, and no limit for the health check.
//
//   node examples/routes.mjs
//   for i in $(seq 6); do curl -si http://127.0.0.1:3000/login -X POST | grep -iE '^(http|rate)'; done
//   for i in $(seq 5); do curl -si 'http://127.0.0.1:3000/search?q=mill' | grep -iE '^(http|rate|retry)'; done
import express from 'express'
import { rateLimit } from 'millrace/express'

const app = express()
app.use(
  rateLimit({
    limit: 100,
    window: '1m',
    routes: {
      'POST /login': { name: 'logins', limit: 5, window: '15m' },
      '/search': {
        rules: [
          { name: 'burst', limit: 3, window: '1s' },
          { name: 'searches', limit: 10, window: '10s' },
        ],
      },
      '/health': false,
    },
  }),
)
app.post('/login', (_request, response) => response.send('welcome\n'))
app.get('/search', (request, response) => response.json({ found: [request.query.q] }))
app.get('/health', (_request, response) => response.send('well\n'))
app.get('/', (_request, response) => response.send('hello\n'))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
