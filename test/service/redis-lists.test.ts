// Counts in several servers of Redis: the option counts with a list, and its change.
// run: own
import * as assert from 'uvu/assert'
import { HOST } from '../redis/ports.js'
import { SENTINEL_NAME, startSentinel } from '../redis/sentinel.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'
import { engine } from './engine.js'

const KEYS = Array.from({ length: 24 }, (_, i) => `user:${i}`)
const common = { limit: '5/1h', deadline: '10s', signingKeys: ['a signing key of 32 characters, or more'] }

async function withServers(count: number, act: (ports: readonly number[]) => Promise<void>): Promise<void> {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis()))
  try {
    await act(servers.map(({ port }) => port))
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

const listOf = (ports: readonly number[]) => `redis://${ports.map((port) => `${HOST}:${port}`).join(',')}`

test('keys are spread over the servers of a list, in any order of it', () =>
  withServers(3, async (ports) => {
    const [one, other] = [
      await engine({ ...common, counts: listOf(ports) }),
      await engine({ ...common, counts: listOf([...ports].reverse()) }),
    ]
    for (const key of KEYS) {
      assert.is((await one.post('/v1/check', { key })).body.remaining, 4)
      assert.is((await other.post('/v1/check', { key })).body.remaining, 3)
    }
    for (const port of ports) assert.ok((await sendOnce(port, 'DBSIZE')) > 0)
    await one.close()
    await other.close()
  }))

test('while a list changes, counts, tokens and kept answers of both lists are one', () =>
  withServers(3, async (ports) => {
    const counts = listOf(ports.slice(0, 2))
    const before = await engine({ ...common, counts })
    const now = await engine({ ...common, counts: listOf(ports), countsBefore: counts })
    for (const [i, key] of KEYS.entries()) {
      const order = i % 2 === 0 ? [before, now] : [now, before]
      for (const [n, own] of [...order, ...order].entries()) {
        const answer = await own.post('/v1/check', { key, token: true }, { 'idempotency-key': key })
        assert.equal([answer.status, answer.body.remaining], [200, 4], key)
        assert.is(answer.headers.get('idempotency-replayed'), n === 0 ? null : 'true')
      }
      const { token } = (await order[0]!.post('/v1/check', { key, cost: 4, token: true })).body
      assert.is((await order[1]!.post('/v1/check', { key })).body.allowed, false, key)
      assert.equal((await order[1]!.post('/v1/refund', { token })).body, { refunded: 4 })
      assert.equal((await order[0]!.post('/v1/refund', { token })).body, { refunded: 0 })
    }
    assert.ok((await sendOnce(ports[2]!, 'DBSIZE')) > 0, 'the third server has keys')
    await before.close()
    await now.close()
  }))

test('counts of the primary that a Sentinel names', async () => {
  const watched = await startSentinel()
  const counts = `redis+sentinel://${HOST}:${watched.sentinel.port}/${SENTINEL_NAME}/3`
  const own = await engine({ ...common, counts })
  assert.is((await own.post('/v1/check', { key: 'a' }, { 'idempotency-key': 'a' })).body.source, 'redis')
  assert.match(await sendOnce(watched.primary.port, 'INFO', 'keyspace'), 'db3:')
  await own.close()
  await watched.stop()
})

const WRONG = {
  'counts: expected': [
    { counts: 'redis://a:1,a:1' },
    { counts: 'redis+sentinel://a:1' },
    { counts: 'redis://a:1,:2' },
  ],
  'countsBefore: expected': [
    { counts: 'redis://a:1', countsBefore: 'memory' },
    { counts: 'redis://a:1', countsBefore: 'redis+sentinel://a:1/name' },
  ],
  'counts: expected redis': [
    { counts: 'memory', countsBefore: 'redis://a:1' },
    { counts: 'redis+sentinel://a:1/name', countsBefore: 'redis://a:1' },
  ],
}

for (const [message, all] of Object.entries(WRONG)) {
  for (const options of all) {
    test(`refused by name: ${JSON.stringify(options)}`, async () => {
      const error = await engine({ ...common, ...options }).catch((reason) => reason)
      assert.match(error.message, message)
    })
  }
}

test.run()
