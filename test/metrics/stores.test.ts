// Limiters on servers: the calls of the store are recorded, and an outage is seen while it goes on.
import { Redis } from 'ioredis'
import { group } from 'millrace'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { createRedisLimiter } from 'millrace/redis'
import { Registry } from 'prom-client'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { of, scrape } from './scrape.js'

const RULES = { limit: 2, window: '1h', deadline: '10s' } as const

test('each call that decides is recorded once, of limiters, routes and groups on Redis', async () => {
  const server = await startRedis()
  const client = new Redis({ host: HOST, port: server.port })
  const registry = new Registry()
  const api = createRedisLimiter({ client, prefix: 'api', ...RULES })
  const login = createRedisLimiter({ client, prefix: 'login', ...RULES })
  const site = rateLimit({ limiter: login })
  const both = group({ api, login })
  await api.check('a')
  register({ api, site, both }, registry)
  for (let i = 0; i < 3; i++) await api.check('a')
  await api.checkMany(['b', 'c'])
  await api.peek('a')
  await login.check('a')
  await both.check({ api: 'd', login: 'd' })
  const series = await scrape(registry)
  const count = (labels: string) => series.get(`millrace_store_duration_seconds_count{${labels},store=redis}`)
  assert.equal([count('limiter=api'), count('limiter=site'), count('limiter=both')], [4, 1, 1])
  const decisions = of(series, 'millrace_decisions_total')
  assert.is(decisions['limiter=api,outcome=refused,store=redis'], 2)
  assert.is(decisions['limiter=site,outcome=admitted,route=default,store=redis'], 2)
  assert.is(series.get('millrace_store_outage{limiter=api,store=redis}'), 0)
  assert.equal(of(series, 'millrace_table_keys'), {}, 'there is no table')
  await Promise.all([api.close(), login.close()])
  client.disconnect()
  await server.stop()
})

test('an outage is 1 while it goes on, and its calls and decisions are counted', async () => {
  const server = await startRedis()
  const client = new Redis({ host: HOST, port: server.port })
  const registry = new Registry()
  const api = createRedisLimiter({ client, prefix: 'api', limit: 2, window: '1h', onOutage: 'open' })
  register({ api }, registry)
  await poll(async () => (await api.check('a')).source === 'redis', 'an answer')
  const labels = '{limiter=api,store=redis}'
  await server.pause()
  for (let i = 0; i < 3; i++) await api.check('a')
  const during = await scrape(registry)
  assert.is(during.get(`millrace_store_outage${labels}`), 1)
  assert.ok(during.get(`millrace_outages_total${labels}`)! >= 3)
  assert.ok(during.get('millrace_without_store_total{limiter=api,outcome=open,store=redis}')! >= 3)
  await server.resume()
  const isOver = async (): Promise<boolean> => {
    await api.check('b')
    return (await scrape(registry)).get(`millrace_store_outage${labels}`) === 0
  }
  await poll(isOver, 'the end of the outage')
  await api.close()
  client.disconnect()
  await server.stop()
})

test.run()
