// run: full
// Limiters on a Cluster in good health, and while a slot moves.
import { Cluster as Ioredis } from 'ioredis'
import { Cluster as Iovalkey } from 'iovalkey'
import { group } from 'millrace'
import * as assert from 'uvu/assert'
import { slotOf } from '#millrace/redis/clients/slots.js'
import { type Cluster, startCluster } from './cluster.js'
import { clientOf, figureOf, keysOfEach, keysWhere, limiterOn, namesOf, sum } from './cluster-limiter.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startProxy } from './proxy.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

let cluster: Cluster
let primaries: readonly Server[]
test.before(async () => {
  cluster = await startCluster()
  primaries = cluster.nodes.slice(0, 3)
})
test.after(() => cluster?.stop())

const ofEach = (name: string) => Promise.all(primaries.map((primary) => figureOf(primary, name)))
const TWO_RULES = {
  rules: [
    { name: 'hour', limit: 5, window: '1h' },
    { name: 'day', limit: 9, window: '1d' },
  ],
}
const NO_RULE = { limit: undefined, window: undefined }
const twoRules = () => limiterOn(cluster, { ...NO_RULE, ...TWO_RULES, deadline: '1m' } as never)

/** A primary that does not own the slot. */
const otherThan = (owner: Server) => primaries.find((primary) => primary !== owner)!

test('names have the slot that the servers compute', async () => {
  const names = ['a', '', '{a}b', 'x{a}{b}', '{}a', '{{a}}', 'a{b', 'é{ü}', '{\u{1f600}}', ...namesOf('key')]
  for (let i = 0; i < 50; i++) names.push(`name ${i}`)
  for (const name of names) assert.is(slotOf(name), await cluster.slotOf(name), name)
})

for (const [library, Client] of Object.entries({ ioredis: Ioredis, iovalkey: Iovalkey }))
  test(`${library}: each primary decides its keys, all rules of a key together`, async () => {
    const client = clientOf(cluster, {}, Client as typeof Ioredis)
    const limiter = limiterOn(cluster, { client, ...NO_RULE, ...TWO_RULES, deadline: '1m' } as never)
    const keys = [...(await keysOfEach(cluster, 5)).values()].flat()
    for (const key of keys) {
      const decided = await Promise.all(Array.from({ length: 7 }, () => limiter.check(key)))
      assert.is(decided.filter(({ allowed }) => allowed).length, 5)
      assert.ok(decided.every(({ source }) => source === 'redis'))
      assert.equal(
        await Promise.all(['hour', 'day'].map((rule) => limiter.usage(key, undefined, { rule }))),
        [5, 5],
      )
    }
    for (const { port } of primaries) assert.ok((await sendOnce(port, 'DBSIZE')) >= 10)
    await limiter.clearAll()
    for (const key of keys) assert.is((await limiter.peek(key)).remaining, 5)
    await limiter.close()
  })

test('checkMany puts up to 64 keys of one slot in one call, and keeps their order', async () => {
  const limiter = limiterOn(cluster, { limit: 2, deadline: '1m' })
  await limiter.check('warm up')
  const [slot] = [slotOf(namesOf('many 0')[0]!)]
  const ofOneSlot = await keysWhere((each) => each === slot, 70, 'many')
  const calls = async () => sum(await ofEach('cmdstat_evalsha:calls'))
  const before = await calls()
  const together = await limiter.checkMany(ofOneSlot)
  assert.is((await calls()) - before, 2, '64 and 6')
  assert.ok(together.allowed.every((allowed) => allowed === 1))
  const mixed = [
    ...ofOneSlot.slice(0, 3),
    ...Array.from({ length: 20 }, (_, i) => `other ${i}`),
    ofOneSlot[0]!,
  ]
  const { allowed, remaining } = await limiter.checkMany(mixed, 1, { remaining: true })
  assert.equal([...remaining!], [0, 0, 0, ...Array.from({ length: 20 }, () => 1), 0])
  assert.equal([...allowed], [...Array.from({ length: 23 }, () => 1), 0])
  await limiter.close()
})

test('the calls of one turn go to each node together', async () => {
  const limiter = limiterOn(cluster, { deadline: '1m' })
  const keys = [...(await keysOfEach(cluster, 100)).values()].flat()
  await limiter.checkMany(keys)
  const before = await ofEach('total_reads_processed')
  await Promise.all(keys.map((key) => limiter.check(key)))
  const after = await ofEach('total_reads_processed')
  for (const [i, reads] of after.entries())
    assert.ok(reads - before[i]! < 50, `${reads - before[i]!} reads of 100`)
  await limiter.close()
})

test('nodes that have forgotten the script learn it again', async () => {
  const limiter = limiterOn(cluster, { deadline: '1m' })
  const keys = [...(await keysOfEach(cluster, 3)).values()].flat()
  for (const key of keys) await limiter.check(key)
  for (const { port } of primaries) await sendOnce(port, 'SCRIPT', 'FLUSH')
  const before = await Promise.all(keys.map((key) => limiter.usage(key)))
  for (const { port } of primaries) await sendOnce(port, 'SCRIPT', 'FLUSH')
  const decided = await Promise.all(keys.map((key) => limiter.check(key)))
  assert.ok(decided.every(({ source }) => source === 'redis'))
  assert.equal(
    await Promise.all(keys.map((key) => limiter.usage(key))),
    before.map((units) => units + 1),
  )
  await limiter.close()
})

test('a reply that is cut was charged once, a request that is cut was not; neither goes out again', async () => {
  const proxies = await Promise.all(cluster.nodes.map(({ port }) => startProxy(port)))
  const natMap = Object.fromEntries(
    proxies.map(({ port }, i) => [`${HOST}:${cluster.nodes[i]!.port}`, { host: HOST, port }]),
  )
  const client = clientOf(cluster, { natMap })
  const limiter = limiterOn(cluster, { client, deadline: 500 })
  try {
    await limiter.ready()
    for (const [primary, [key]] of await keysOfEach(cluster, 1)) {
      const proxy = proxies[cluster.nodes.indexOf(primary)]!
      await limiter.check(key!)
      const used = await limiter.usage(key!)
      proxy.cutReplies()
      assert.is((await limiter.check(key!)).source, 'outage')
      await poll(async () => (await limiter.peek(key!)).source === 'redis', 'the connection to the node')
      assert.is(await limiter.usage(key!), used + 1)
      proxy.cutRequests()
      assert.is((await limiter.check(key!)).source, 'outage')
      await poll(async () => (await limiter.peek(key!)).source === 'redis', 'the connection to the node')
      assert.is(await limiter.usage(key!), used + 1)
    }
  } finally {
    await limiter.close()
    for (const proxy of proxies) proxy.close()
  }
})

test('a client of the caller that sends twice or queues is refused by name', () => {
  const safe = {
    enableOfflineQueue: false,
    retryDelayOnFailover: 0,
    redisOptions: { autoResendUnfulfilledCommands: false },
  }
  for (const [options, option] of [
    [{ ...safe, enableOfflineQueue: true }, 'enableOfflineQueue'],
    [{ ...safe, redisOptions: {} }, 'autoResendUnfulfilledCommands'],
    [{ ...safe, retryDelayOnFailover: 100 }, 'retryDelayOnFailover'],
    [{ ...safe, keyPrefix: 'a' }, 'keyPrefix'],
  ] as const) {
    try {
      limiterOn(cluster, { client: clientOf(cluster, options), ownConnection: false })
      assert.unreachable()
    } catch (error) {
      assert.is((error as { option: string }).option, `client.options.${option}`)
    }
  }
})

test('a client of the caller is used as it is, and stays open', async () => {
  const client = clientOf(cluster, {
    lazyConnect: false,
    enableOfflineQueue: false,
    retryDelayOnFailover: 0,
    redisOptions: { autoResendUnfulfilledCommands: false },
  })
  const limiter = limiterOn(cluster, { client, ownConnection: false, deadline: '1m' })
  try {
    await limiter.ready()
    for (const [, keys] of await keysOfEach(cluster, 3))
      for (const key of keys) assert.is((await limiter.check(key)).source, 'redis')
    await limiter.close()
    assert.is(client.status, 'ready')
  } finally {
    client.disconnect()
  }
})

test('one primary of three that may evict any key is refused by name', async () => {
  await sendOnce(primaries[1]!.port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  const limiter = limiterOn(cluster)
  try {
    for (const act of [() => limiter.ready(), () => limiter.check('key')]) {
      const error = await act().catch((reason) => reason)
      assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', 'maxmemory-policy'])
    }
  } finally {
    await limiter.close()
    await sendOnce(primaries[1]!.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  }
})

test('a group decides keys of one slot together, and refuses others by name, before anything is charged', async () => {
  const client = clientOf(cluster)
  const [burst, day] = [
    limiterOn(cluster, { client, prefix: 'burst', limit: 2, deadline: '1m' }),
    limiterOn(cluster, { client, prefix: 'day', limit: 9, deadline: '1m' }),
  ]
  const both = group({ burst, day })
  for (const key of (await keysOfEach(cluster, 2)).values()) {
    const keys = { burst: key[0]!, day: key[0]! }
    assert.ok((await both.check(keys, 2)).allowed)
    assert.equal([(await both.check(keys)).member, await day.usage(key[0]!)], ['burst', 2])
  }
  const twoSubjects = { burst: 'alice', day: 'home' }
  for (const act of [
    () => both.check(twoSubjects),
    () => both.peek(twoSubjects),
    () => both.wait(twoSubjects),
  ]) {
    const error = await act().catch((reason) => reason)
    assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_KEY', 'keys'])
  }
  assert.equal([await burst.usage('alice'), await day.usage('home')], [0, 0])
  await burst.close()
  await day.close()
})

test('durability: replica is refused by name', () => {
  assert.throws(
    () => limiterOn(cluster, { durability: 'replica' }),
    (error: { option: string }) => error.option === 'durability',
  )
})

test('close ends all connections to all nodes', async () => {
  const clients = async () =>
    sum(await Promise.all(cluster.nodes.map((node) => figureOf(node, 'connected_clients'))))
  const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  await poll(() => sockets() === 0, 'the end of the connections of the tests before')
  const before = await clients()
  for (let i = 0; i < 3; i++) {
    const limiter = limiterOn(cluster)
    await Promise.all([...(await keysOfEach(cluster, 3)).values()].flat().map((key) => limiter.check(key)))
    await limiter.close()
  }
  await poll(() => sockets() === 0, 'the end of all sockets')
  await poll(async () => (await clients()) <= before, 'the end of all connections')
})

test('a slot that moves: a key on either side is decided where it is, and counts on', async () => {
  const limiter = limiterOn(cluster, { limit: 6, deadline: '1m' })
  const slot = slotOf(namesOf('moving 0')[0]!)
  const [left, moved, added] = await keysWhere((each) => each === slot, 3, 'moving')
  const [from, to] = [await cluster.ownerOf(slot), otherThan(await cluster.ownerOf(slot))]
  await limiter.check(left!, 2)
  await limiter.check(moved!, 2)
  const migration = await cluster.migrate(slot, to, namesOf(moved!))
  for (const port of [to.port]) await sendOnce(port, 'SCRIPT', 'FLUSH')
  for (const key of [left!, moved!, added!]) {
    const { source, remaining } = await limiter.check(key, 2)
    assert.equal([source, remaining], ['redis', key === added ? 4 : 2], key)
  }
  assert.is(await sendOnce(from.port, 'EXISTS', ...namesOf(left!)), 1)
  assert.is(await sendOnce(to.port, 'CLUSTER', 'COUNTKEYSINSLOT', slot), 2)
  await migration.finish()
  for (const key of [left!, moved!, added!]) {
    const { source, remaining } = await limiter.check(key, 2)
    assert.equal([source, remaining], ['redis', key === added ? 2 : 0], key)
    assert.not((await limiter.check(key, 3)).allowed)
  }
  assert.is(await sendOnce(to.port, 'CLUSTER', 'COUNTKEYSINSLOT', slot), 3)
  await limiter.close()
})

test('a slot that moves between two rules of a key: decided at the deadline, and charged in neither', async () => {
  const key = 'halfway'
  const names = namesOf(key, ['hour', 'day'])
  const limiter = limiterOn(cluster, { ...NO_RULE, ...TWO_RULES, deadline: 500 } as never)
  const patient = twoRules()
  const slot = slotOf(names[0]!)
  const owner = await cluster.ownerOf(slot)
  await limiter.check(key, 2)
  await patient.peek(key)
  const migration = await cluster.migrate(slot, otherThan(owner), names.slice(0, 1))
  const before = await limiter.stats()
  assert.is((await limiter.check(key, 2)).source, 'outage')
  assert.is((await limiter.stats()).outages, before.outages + 1)
  const waiting = patient.check(key, 2)
  await migration.finish()
  const { source, remaining } = await waiting
  assert.equal(
    [source, remaining],
    ['redis', 1],
    'the call that was halfway was decided once, after the move',
  )
  await limiter.close()
  await patient.close()
})

test('a replica that is promoted while its primary runs: the calls go to it, and nothing is lost', async () => {
  const limiter = limiterOn(cluster, { limit: 1_000_000, deadline: '1m' })
  const owner = await cluster.ownerOf(0)
  const keys = (await keysOfEach(cluster, 20)).get(owner)!
  const checkAll = () => Promise.all(keys.map((key) => limiter.check(key)))
  await checkAll()
  const before = sum(await Promise.all(keys.map((key) => limiter.usage(key))))
  let isPromoted = false
  let admitted = 0
  const load = async () => {
    while (!isPromoted) {
      const decided = await checkAll()
      assert.ok(decided.every(({ source }) => source === 'redis'))
      admitted += decided.length
    }
  }
  const loads = load()
  const [replica] = await cluster.replicasOf(owner)
  await cluster.promote(replica!)
  isPromoted = true
  await loads
  assert.ok((await checkAll()).every(({ source }) => source === 'redis'))
  assert.is(await cluster.ownerOf(0), replica)
  assert.is(sum(await Promise.all(keys.map((key) => limiter.usage(key)))), before + admitted + keys.length)
  await limiter.close()
})

test.run()
