// The middleware with a limiter on Memcached.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rateLimit } from 'millrace/http'
import { createMemcachedLimiter } from 'millrace/memcached'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { clientOf, end } from './limiters.js'

test('it answers 200 and 429, and 503 while the server is gone', async () => {
  const memcached = await startMemcached()
  const client = clientOf(memcached.port)
  const limiter = createMemcachedLimiter({ client, prefix: 'http', limit: 2, window: '1d', deadline: '1m' })
  await limiter.ready()
  const limit = rateLimit({ limiter, key: () => 'all' })
  const server = createServer((request, response) => limit(request, response, () => response.end('ok')))
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve))
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}/`
  const status = async () => (await fetch(url)).status
  try {
    assert.equal([await status(), await status(), await status()], [200, 200, 429])
    await memcached.kill()
    await poll(async () => (await status()) === 503, 'an outage')
    await memcached.restart()
    await poll(async () => (await status()) === 200, 'the recovery, with empty counters')
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await limiter.close()
    await end(memcached)
  }
})

test.run()
