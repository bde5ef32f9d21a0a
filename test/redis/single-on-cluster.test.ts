// A client of one server that is a node of a Cluster: it has the keys of its slots only.
import type { MillraceError } from 'millrace'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES } from './clients.js'
import { poll } from './poll.js'
import { freePort, HOST } from './ports.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const startNode = async () => {
  const bus = await freePort()
  return { bus, server: await startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`] }) }
}

async function sizeIs(servers: readonly Server[], size: number): Promise<void> {
  await poll(async () => {
    const infos: string[] = await Promise.all(servers.map(({ port }) => sendOnce(port, 'CLUSTER', 'INFO')))
    return infos.every((info) => info.includes('cluster_state:ok') && info.includes(`cluster_size:${size}`))
  }, `a Cluster of ${size} primaries`)
}

test(`${LIBRARIES.join(', ')}: one primary with all slots is used; with another one, ready and calls reject`, async () => {
  const { server } = await startNode()
  const other = await startNode()
  const made = () =>
    LIBRARIES.map((library) =>
      createRedisLimiter({
        client: CLIENTS[library](server.port),
        prefix: 'test',
        limit: 1_000,
        window: '1h',
      }),
    )
  await sendOnce(server.port, 'CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await sizeIs([server], 1)
  const limiters = made()
  try {
    for (const limiter of limiters) {
      await limiter.ready()
      await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
    }
    await sendOnce(server.port, 'CLUSTER', 'MEET', HOST, other.server.port, other.bus)
    const id = await sendOnce(other.server.port, 'CLUSTER', 'MYID')
    await poll(async () => (await sendOnce(server.port, 'CLUSTER', 'NODES')).includes(id), 'the other node')
    await sendOnce(other.server.port, 'CLUSTER', 'BUMPEPOCH')
    const slot: number = await sendOnce(server.port, 'CLUSTER', 'KEYSLOT', '{key}')
    await sendOnce(server.port, 'FLUSHALL')
    for (const { port } of [other.server, server])
      await sendOnce(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', id)
    await sizeIs([server, other.server], 2)
    for (const limiter of limiters) {
      await poll(() => limiter.check('key').then(() => false, isNamed), 'the error of a call')
    }
    limiters.push(...made())
    for (const limiter of limiters) assert.ok(await limiter.ready().then(() => false, isNamed))
  } finally {
    await Promise.all(limiters.map((limiter) => limiter.close()))
    await Promise.all([server, other.server].map((each) => each.kill()))
  }
})

function isNamed(error: MillraceError): boolean {
  assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', 'client'])
  assert.match(error.message, /a client of the Cluster: .*, got "a client of one node of a Cluster"/)
  return true
}

test.run()
