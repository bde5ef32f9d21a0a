// run: full
// Many processes that come back to a server at once.
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES } from './clients.js'
import { poll } from './poll.js'
import { startProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, type Wire } from './wire.js'

const NODES = 32
/** Requests of each node that arrive together. */
const TOGETHER = 20
/** Failures that open the breaker. */
const FAILURES = 5

/** How often the server has run a script. */
async function scriptCalls(wire: Wire): Promise<number> {
  const stats = await wire.send('INFO', 'commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

test(`${NODES} limiters that recover at once try with one request each`, async () => {
  const server = await startRedis()
  const wire = await connectWire(server.port)
  const proxy = await startProxy(server.port)
  const nodes = Array.from({ length: NODES }, (_, i) =>
    createRedisLimiter({
      client: CLIENTS[LIBRARIES[i % LIBRARIES.length]!](proxy.port),
      ...{ prefix: 'test', limit: 1_000_000, window: '1h', deadline: '500ms' },
    }),
  )
  for (const node of nodes) await node.ready()
  await Promise.all(nodes.map((node) => node.check('key')))
  const before = await scriptCalls(wire)

  proxy.hold()
  // One after another, in turns of their own, so that each is a request to the server.
  await Promise.all(
    nodes.map(async (node) => {
      const failing: Promise<unknown>[] = []
      for (let i = 0; i < FAILURES; i++) {
        failing.push(node.check('key'))
        await new Promise((resolve) => setImmediate(resolve))
      }
      await Promise.all(failing)
    }),
  )
  await poll(async () => (await scriptCalls(wire)) - before === NODES * FAILURES, 'the requests')
  proxy.release()

  const outside = new Set(nodes)
  let rounds = 0
  while (outside.size > 0) {
    rounds++
    await Promise.all(
      [...outside].map(async (node) => {
        const decided = await Promise.all(Array.from({ length: TOGETHER }, () => node.check('key')))
        if (decided.some(({ source }) => source === 'redis')) outside.delete(node)
      }),
    )
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(rounds > 1, 'none tries before its pause is over')
  assert.is(await scriptCalls(wire), before + NODES * FAILURES + NODES)

  await Promise.all(nodes.map((node) => node.close()))
  wire.close()
  proxy.close()
  await server.stop()
})

test.run()
