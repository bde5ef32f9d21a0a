// Which answers are kept for an Idempotency-Key, and how many.
// run: own
import { writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'
import { type Engine, engine } from './engine.js'
import { temporaryFolder } from './folder.js'

const TOKEN = 'a-token-of-a-caller-0123456789'
const ALL = { authorization: `Bearer ${TOKEN}` }
const isReplayed = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed') === 'true'

test('a request that was refused for its token is judged again when the token may do it', async () => {
  const folder = temporaryFolder()
  const tokensFile = folder.path('tokens.json')
  const give = (scopes: string[]) => writeFileSync(tokensFile, JSON.stringify([{ token: TOKEN, scopes }]))
  give(['decide'])
  const own = await engine({ limit: '10/1m', tokensFile })
  const headers = { ...ALL, 'idempotency-key': 'one' }
  const ask = () => own.post('/v1/check', { key: 'a', limit: 5 }, headers)
  assert.is((await ask()).status, 403)
  give(['decide', 'change'])
  own.reload()
  const judged = await ask()
  assert.equal([judged.status, judged.body.remaining, isReplayed(judged)], [200, 4, false])
  const again = await ask()
  assert.equal([again.status, again.body.remaining, isReplayed(again)], [200, 4, true])
  give(['read'])
  own.reload()
  assert.is((await ask()).status, 403, 'a kept answer needs the scope, too')
  await own.close()
  folder.remove()
})

test('an answer that has changed nothing is not kept: the next body is judged', async () => {
  const own = await engine({ limit: '10/1m' })
  const ask = (path: string, body: object, key: string) =>
    own.post(`/v1/${path}`, body, { 'idempotency-key': key })
  for (const wrong of [
    { key: 'a', limiter: 'none' },
    { key: '', cost: 1 },
  ]) {
    const name = JSON.stringify(wrong)
    assert.is((await ask('check', wrong, name)).status, 400, name)
    const right = await ask('check', { key: 'a', cost: 0 }, name)
    assert.equal([right.status, isReplayed(right)], [200, false], name)
  }
  const { reservation } = (await ask('reserve', { key: 'b', cost: 2 }, 'reserve')).body
  assert.is((await ask('commit', { reservation, cost: 2 ** 54 }, 'commit')).status, 400)
  assert.equal((await ask('commit', { reservation, cost: 1 }, 'commit')).body, { committed: -1 })
  assert.ok(isReplayed(await ask('commit', { reservation, cost: 1 }, 'commit')))
  assert.is((await ask('commit', { reservation, cost: 1 }, 'other')).status, 409)
  await own.close()
})

/** Wrong values, and the field of the request that each is in. */
const WRONG: readonly [path: string, body: object, field: string][] = [
  ['check', { key: '' }, 'key'],
  ['check', { key: 'a', cost: -1 }, 'cost'],
  ['check', { key: 'a', limiter: 'none' }, 'limiter'],
  ['reserve', { key: 'a', cost: -1 }, 'cost'],
  ['penalize', { key: 'a', cost: -1 }, 'cost'],
  ['refund', { key: 'a', cost: -1 }, 'cost'],
  ['refund', { token: 'x' }, 'token'],
  ['refund', { reservation: 'x' }, 'reservation'],
  ['commit', { reservation: 'RESERVATION', cost: 2 ** 54 }, 'cost'],
  ['commit', { token: 'RESERVATION', cost: 2 ** 54 }, 'cost'],
  ['commit', { reservation: 'x', cost: 1 }, 'reservation'],
  ['usage', { key: 'a', lastMs: 1e15 }, 'lastMs'],
  ['usage', { key: 'a', rule: 'none' }, 'rule'],
  ['block', { key: 'a', ms: -1 }, 'ms'],
]

for (const [path, body, field] of WRONG) {
  test(`/v1/${path} names the field of the request: ${JSON.stringify(body)}`, async () => {
    const tokens = [{ token: TOKEN, scopes: ['decide', 'read', 'change'] }] as const
    const own = await engine({ limit: '10/1m', tokens })
    const { reservation } = (await own.post('/v1/reserve', { key: 'b', cost: 1 }, ALL)).body
    const sent = JSON.stringify(body).replace('RESERVATION', reservation)
    const { status, body: answer } = await own.post(`/v1/${path}`, sent, ALL)
    assert.equal([status, answer.field], [400, field], JSON.stringify(answer))
    assert.ok(answer.detail.startsWith(`${field}: `), answer.detail)
    await own.close()
  })
}

/** More requests than an engine keeps the answers of, by which the oldest are forgotten. */
async function isBounded(own: Engine, most: number): Promise<void> {
  const ask = async (i: number) =>
    isReplayed(await own.post('/v1/check', { key: 'a' }, { 'idempotency-key': `${i}` }))
  for (let i = 0; i < 2 * most; i++) assert.is(await ask(i), false)
  for (let i = most + 1; i < 2 * most; i++) assert.is(await ask(i), true, `${i} is kept`)
  await poll(async () => !(await ask(0)), 'the oldest is forgotten')
}

test('the answers in memory are bounded: the oldest go', async () => {
  const own = await engine({ limit: '1000/1m', idempotencyEntries: 5 })
  await isBounded(own, 5)
  await own.close()
})

redisTest('the answers in Redis are bounded: the oldest of an engine go', async () => {
  const redis = await startRedis()
  const counts = `redis://127.0.0.1:${redis.port}`
  const own = await engine({ limit: '1000/1m', counts, deadline: '10s', idempotencyEntries: 5 })
  await isBounded(own, 5)
  const kept = async () => (await sendOnce(redis.port, 'KEYS', 'millrace:answers:*')).length
  await poll(async () => (await kept()) <= 5, 'five answers in Redis')
  await own.close()
  await redis.stop()
})

memcachedTest('the answers in Memcached are bounded: the oldest of an engine go', async () => {
  const memcached = await startMemcached()
  const counts = `memcached://127.0.0.1:${memcached.port}`
  const own = await engine({ limit: '1000/1m', counts, deadline: '10s', idempotencyEntries: 5 })
  await isBounded(own, 5)
  await own.close()
  await memcached.stop()
})

test.run()
