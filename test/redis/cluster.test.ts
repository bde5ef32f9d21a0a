// run: full, typescript
// The cluster that tests of clients stand on.
import * as assert from 'uvu/assert'
import { type Cluster, startCluster } from './cluster.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { redisTest as test } from './skip.js'
import { connectWire, sendOnce } from './wire.js'

let cluster: Cluster
test.before(async () => {
  cluster = await startCluster()
})
test.after(() => cluster?.stop())

const errorOf = (reply: Promise<unknown>) => reply.then(String, ({ message }) => message)

test('three primaries own all slots, and each has a linked replica', async () => {
  const info: string = await sendOnce(cluster.nodes[5]!.port, 'CLUSTER', 'INFO')
  assert.match(info, 'cluster_slots_ok:16384')
  assert.match(info, 'cluster_size:3')
  for (const [slot, owner] of [0, 5_461, 5_462, 10_922, 10_923, 16_383].entries())
    assert.is(await cluster.ownerOf(owner), cluster.nodes[Math.floor(slot / 2)])
  for (const primary of cluster.nodes.slice(0, 3)) {
    const [replica, ...more] = await cluster.replicasOf(primary)
    assert.equal(more, [])
    const [role, , port, state] = await sendOnce(replica!.port, 'ROLE')
    assert.equal([role, port, state], ['slave', primary.port, 'connected'])
  }
})

test('the owner of a slot takes its keys, the others say where they belong', async () => {
  const slot = await cluster.slotOf('{a}:key')
  assert.is(slot, await cluster.slotOf('a'))
  const owner = await cluster.ownerOf(slot)
  assert.is(await sendOnce(owner.port, 'SET', '{a}:key', 'value'), 'OK')
  const other = cluster.nodes.slice(0, 3).find((node) => node !== owner)!
  assert.is(await errorOf(sendOnce(other.port, 'GET', '{a}:key')), `MOVED ${slot} 127.0.0.1:${owner.port}`)
  await sendOnce(owner.port, 'DEL', '{a}:key')
})

test('halfway through a migration, some keys of the slot are on each side; finished, all have moved', async () => {
  const keys = ['{m}:1', '{m}:2', '{m}:3'] as const
  const slot = await cluster.slotOf('m')
  const owner = await cluster.ownerOf(slot)
  for (const key of keys) await sendOnce(owner.port, 'SET', key, key)
  const target = cluster.nodes.slice(0, 3).find((node) => node !== owner)!

  const { from, to, finish } = await cluster.migrate(slot, target, [keys[0]])
  assert.equal([from, to], [owner, target])
  const ask = `ASK ${slot} 127.0.0.1:${to.port}`
  assert.is(await errorOf(sendOnce(from.port, 'GET', keys[0])), ask)
  assert.is(await sendOnce(from.port, 'GET', keys[1]), keys[1])
  assert.match(await errorOf(sendOnce(from.port, 'MGET', ...keys)), 'TRYAGAIN')
  assert.match(await errorOf(sendOnce(to.port, 'GET', keys[0])), 'MOVED')
  const wire = await connectWire(to.port)
  assert.equal(await wire.pipeline([['ASKING'], ['GET', keys[0]]]), ['OK', keys[0]])
  wire.close()

  await finish()
  assert.is(await cluster.ownerOf(slot), to)
  assert.equal(await sendOnce(to.port, 'MGET', ...keys), [...keys])
  assert.is(await errorOf(sendOnce(from.port, 'GET', keys[1])), `MOVED ${slot} 127.0.0.1:${to.port}`)
  for (const { port } of cluster.nodes)
    assert.not.match(await sendOnce(port, 'CLUSTER', 'NODES'), /\[\d+-[<>]-/, 'no slot is open')
})

test('a replica can be promoted, and its primary becomes its replica', async () => {
  const primary = await cluster.ownerOf(0)
  const [replica] = await cluster.replicasOf(primary)
  await cluster.promote(replica!)
  assert.is(await cluster.ownerOf(0), replica)
  assert.equal(await cluster.replicasOf(replica!), [primary])
})

test('the replica of a killed primary takes its slots; restarted, the node is a replica', async () => {
  const primary = await cluster.ownerOf(0)
  const wire = await connectWire(primary.port)
  const key = await keyOf(primary)
  const written = await wire.pipeline([
    ['SET', key, 'value'],
    ['WAIT', 1, 0],
  ])
  assert.equal(written, ['OK', 1])
  const replica = await cluster.failover(primary)
  assert.is(await cluster.ownerOf(0), replica)
  assert.is(await sendOnce(replica.port, 'GET', key), 'value')
  assert.equal(await cluster.replicasOf(replica), [])
  await primary.restart()
  await poll(async () => (await cluster.replicasOf(replica)).includes(primary), 'the return of the node')
  await cluster.healthy()
  assert.is(await sendOnce(primary.port, 'DBSIZE'), await sendOnce(replica.port, 'DBSIZE'))
})

/** A key that a primary owns. */
async function keyOf(primary: Server): Promise<string> {
  for (let i = 0; ; i++)
    if ((await cluster.ownerOf(await cluster.slotOf(`key-${i}`))) === primary) return `key-${i}`
}

test.run()
