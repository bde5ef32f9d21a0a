// run: full, typescript
// The sliding log and the sliding counter on a Cluster: all rules of a key are in one slot.
import { Cluster } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { startCluster } from './cluster.js'
import { HOST } from './ports.js'
import { redisTest as test } from './skip.js'

test('a log and a counter decide keys of all nodes of a Cluster, by two rules, and forget them', async () => {
  const nodes = await startCluster()
  const client = new Cluster([{ host: HOST, port: nodes.nodes[0]!.port }])
  try {
    for (const algorithm of ['sliding-log', 'sliding-counter'] as const) {
      const rules = [
        { name: 'burst', limit: 3, window: '10s', algorithm },
        { name: 'hour', limit: 5, window: '1h', algorithm },
      ]
      const limiter = createRedisLimiter({ client, prefix: algorithm, rules, deadline: '10s' })
      await limiter.ready()
      const keys = Array.from({ length: 60 }, (_, i) => `key ${i % 30}`)
      const { allowed } = await limiter.checkMany(keys, 2)
      assert.equal(
        [...allowed],
        keys.map((_, i) => (i < 30 ? 1 : 0)),
        algorithm,
      )
      const decision = await limiter.check('key 1')
      assert.equal([decision.allowed, await limiter.refund(decision)], [true, 1])
      await limiter.clearAll()
      for (const key of keys) assert.is(await limiter.usage(key, undefined, { rule: 'hour' }), 0)
      await limiter.close()
    }
  } finally {
    client.disconnect()
    await nodes.stop()
  }
})

test.run()
