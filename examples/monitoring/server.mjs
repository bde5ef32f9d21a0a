// An API that is watched: metrics for Prometheus at port 9464, refusals and outages as lines of pino. The page
// docs/how-to/monitor.md sets it up, from nothing to an alert.
//
//   npm install ioredis pino prom-client
//   redis-server --port 6379 --save '' &
//   node examples/monitoring/server.mjs
import { subscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import { createLimiter } from 'millrace'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { createRedisLimiter } from 'millrace/redis'
import { pino } from 'pino'
import { collectDefaultMetrics, register as registry } from 'prom-client'

const log = pino()
subscribe('millrace:limited', (event) => log.info(event, 'limited'))
subscribe('millrace:outage', ({ cause, ...event }) => log.error({ err: cause, ...event }, 'outage'))
subscribe('millrace:recovered', ({ cause: _, ...event }) => log.info(event, 'recovered'))

const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { lazyConnect: true })
const limiter = createRedisLimiter({ client, prefix: 'api', limit: 50, window: '1m', onOutage: 'open' })
const api = rateLimit({ limiter, routes: { 'POST /login': { limit: 5, window: '15m', name: 'login' } } })
const mails = createLimiter({ name: 'mails', limit: 3, window: '1h' }) // those that the service sends
register({ api, mails })
collectDefaultMetrics()

const server = createServer((request, response) => {
  api(request, response, () => {
    if (request.url === '/mail' && !mails.check('everybody').allowed) response.writeHead(429)
    response.end('hello\n')
  })
})
// On a port of its own, which clients can't reach.
const metrics = createServer(async (_request, response) => {
  const text = await registry.metrics()
  response.setHeader('content-type', registry.contentType).end(text)
})
for (const [served, port] of [
  [server, process.env.PORT ?? 3000],
  [metrics, process.env.METRICS_PORT ?? 9464],
])
  served.listen(Number(port), '127.0.0.1', () => {
    log.info(`listening on http://127.0.0.1:${served.address().port}`)
  })
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    for (const served of [server, metrics]) served.close()
    await api.close()
    await Promise.all([limiter.close(), mails.close()])
  })
