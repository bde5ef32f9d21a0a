// Several engines: what one has charged, another gives back; a retry at another one gets the same answer.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../native/sides.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { type Engine, engine } from './engine.js'
import { temporaryFolder } from './folder.js'

const signingKeys = ['a signing key of 32 characters, or more']
const folder = temporaryFolder()
const redis = await startRedis()
const memcached = await startMemcached()
test.after(async () => {
  await redis.stop()
  await memcached.stop()
  folder.remove()
})

const places: Record<string, { counts: string; keepsAnswers: boolean; strict?: boolean }> = {
  Redis: { counts: `redis://127.0.0.1:${redis.port}`, keepsAnswers: true },
  Memcached: { counts: `memcached://127.0.0.1:${memcached.port}`, keepsAnswers: true },
  'Memcached, strict': {
    counts: `memcached://127.0.0.1:${memcached.port}`,
    keepsAnswers: true,
    strict: true,
  },
  ...(!isLeftOut() && { 'a shared file': { counts: `file:${folder.path('counts')}`, keepsAnswers: false } }),
}

let prefixes = 0
async function fleet(
  place: string,
  act: (first: Engine, second: Engine) => Promise<void>,
  more: object = {},
) {
  const { counts, strict = false } = places[place]!
  const options = {
    counts: place === 'a shared file' ? `${counts}${prefixes}` : counts,
    strict,
    prefix: `fleet${prefixes++}`,
    limiters: {
      default: { limit: 10, window: '1m' },
      several: {
        rules: [
          { name: 'a', limit: 10, window: '1m' },
          { name: 'b', limit: 50, window: '1h' },
        ],
      },
    },
    signingKeys,
    deadline: '5s',
    ...more,
  }
  const [first, second] = [await engine(options), await engine(options)]
  try {
    await act(first, second)
  } finally {
    await first.close()
    await second.close()
  }
}

for (const [place, { keepsAnswers }] of Object.entries(places)) {
  for (const limiter of ['default', 'several']) {
    test(`${place}, ${limiter}: another engine gives a charge back once, and settles a reservation once`, () =>
      fleet(place, async (first, second) => {
        const remaining = async (key: string) =>
          (await first.post('/v1/peek', { key, limiter })).body.remaining
        const { token } = (await first.post('/v1/check', { key: 'a', cost: 4, limiter, token: true })).body
        await first.post('/v1/check', { key: 'a', cost: 2, limiter })
        assert.equal((await second.post('/v1/refund', { token })).body, { refunded: 4 })
        for (const each of [first, second])
          assert.equal((await each.post('/v1/refund', { token })).body, { refunded: 0 })
        assert.is(await remaining('a'), 8)
        for (const [used, committed] of [
          [1, -3],
          [4, 0],
          [6, 2],
        ] as const) {
          const key = `used ${used}`
          const { reservation } = (await first.post('/v1/reserve', { key, cost: 4, limiter })).body
          assert.equal((await second.post('/v1/commit', { reservation, cost: used })).body, { committed })
          assert.is(
            (await first.post('/v1/commit', { reservation, cost: 0 })).body.code,
            'ERR_MILLRACE_SETTLED',
          )
          assert.is(await remaining(key), 10 - used)
        }
      }))
  }

  test(`${place}: a retry at another engine is ${keepsAnswers ? 'charged once' : 'charged again, and no more is admitted'}`, () =>
    fleet(place, async (first, second) => {
      const headers = { 'idempotency-key': 'one' }
      const { idempotency } = (await first.get('/v1/limiters')).body
      assert.is(idempotency, keepsAnswers)
      const body = { key: 'a', cost: 4 }
      const answers = []
      for (const each of [first, second, second, first])
        answers.push(await each.post('/v1/check', body, headers))
      const replayed = answers.map((answer) => answer.headers.get('idempotency-replayed'))
      const allowed = answers.map((answer) => answer.body.allowed)
      assert.equal(replayed, keepsAnswers ? [null, 'true', 'true', 'true'] : [null, null, null, null])
      assert.equal(allowed, keepsAnswers ? [true, true, true, true] : [true, true, false, false])
      assert.is((await first.post('/v1/peek', { key: 'a' })).body.remaining, keepsAnswers ? 6 : 2)
      const other = await second.post('/v1/check', { ...body, cost: 5 }, headers)
      assert.is(other.status, keepsAnswers ? 422 : 200)
    }))
}

test('one limit over all engines on Redis', () =>
  fleet('Redis', async (...engines) => {
    const asked = Array.from({ length: 40 }, (_, i) => engines[i % 2]!.post('/v1/check', { key: 'one' }))
    const allowed = (await Promise.all(asked)).filter(({ body }) => body.allowed)
    assert.is(allowed.length, 10)
  }))

test('a policy that one engine stores is in force on another, and its charges are given back there', async () => {
  const policies = `redis://127.0.0.1:${redis.port}?prefix=fleet-policies`
  const tokens = [{ token: 'all-scopes-0123456789', scopes: ['decide', 'read', 'change'] }] as const
  const headers = { authorization: `Bearer ${tokens[0].token}` }
  await fleet(
    'Redis',
    async (first, second) => {
      const { watchDelayMs } = (await first.get('/v1/limiters', headers)).body.policies
      assert.ok(watchDelayMs < 1_000)
      await first.post('/v1/policies/put', { key: 'vip', policy: { limit: 3, window: '2h' } }, headers)
      const ask = async () => (await first.post('/v1/check', { key: 'vip', token: true }, headers)).body
      let asked = await ask()
      while (asked.limit !== 3) asked = await ask()
      const given = await second.post('/v1/refund', { token: asked.token }, headers)
      assert.equal(given.body, { refunded: 1 })
    },
    { policies, tokens },
  )
})

test('a policy of a store that answers by promises holds for counts in memory, too', async () => {
  const policies = `redis://127.0.0.1:${redis.port}?prefix=memory-policies`
  const tokens = [{ token: 'all-scopes-0123456789', scopes: ['decide', 'read', 'change'] }] as const
  const headers = { authorization: `Bearer ${tokens[0].token}` }
  const one = await engine({ limit: '10/1m', policies, tokens })
  await one.post('/v1/policies/put', { key: 'vip', policy: { limit: 3, window: '2h' } }, headers)
  assert.is((await one.post('/v1/peek', { key: 'vip' }, headers)).body.limit, 3)
  const { token } = (await one.post('/v1/check', { key: 'vip', cost: 2, token: true }, headers)).body
  assert.equal((await one.post('/v1/refund', { token }, headers)).body, { refunded: 2 })
  await one.post('/v1/penalize', { key: 'vip', cost: 2 }, headers)
  assert.equal((await one.post('/v1/usage', { key: 'vip' }, headers)).body, { usage: 2 })
  await one.post('/v1/clear', { key: 'vip' }, headers)
  assert.is((await one.post('/v1/peek', { key: 'vip' }, headers)).body.remaining, 3)
  await one.close()
})

test('a token of counts in the memory of another engine gives nothing back', async () => {
  const [first, second] = [
    await engine({ limit: '10/1m', signingKeys }),
    await engine({ limit: '10/1m', signingKeys }),
  ]
  const { token } = (await first.post('/v1/check', { key: 'a', token: true })).body
  assert.equal((await second.post('/v1/refund', { token })).body, { refunded: 0 })
  assert.equal((await first.post('/v1/refund', { token })).body, { refunded: 1 })
  await first.close()
  await second.close()
})

test('a token is refused if it was changed, has expired, or another key has signed it', async () => {
  const other = ['another key of 32 characters, or more']
  const [first, second] = [
    await engine({ limit: '10/1m', signingKeys }),
    await engine({ limit: '10/1m', signingKeys: other }),
  ]
  const late = await engine({ limit: '10/1m', signingKeys, tokenLifetime: 1 })
  const check = { key: 'a', token: true }
  const { token } = (await first.post('/v1/check', check)).body as { token: string }
  const [payload, signature] = token.split('.')
  const changed = Buffer.from(
    Buffer.from(payload!, 'base64url').toString().replace('"cost":1', '"cost":9'),
  ).toString('base64url')
  for (const wrong of [`${changed}.${signature}`, payload, `${payload}.`, `.${signature}`, `${token}.`, 'x'])
    assert.is(
      (await first.post('/v1/refund', { token: wrong })).body.code,
      'ERR_MILLRACE_INVALID_TOKEN',
      wrong,
    )
  assert.is((await second.post('/v1/refund', { token })).body.code, 'ERR_MILLRACE_INVALID_TOKEN')
  const short = (await late.post('/v1/check', check)).body.token
  let answer = await late.post('/v1/refund', { token: short })
  while (answer.status === 200) answer = await late.post('/v1/refund', { token: short })
  assert.is(answer.body.expected, 'a token that has not expired')
  for (const each of [first, second, late]) await each.close()
})

test('the records of a token are its own', async () => {
  const tokens = ['one', 'two'].map((name) => ({
    name: 'both',
    token: `${name}-0123456789abcdef`,
    scopes: ['decide'] as const,
  }))
  const own = await engine({ limit: '10/1m', tokens })
  const ask = async (name: string) => {
    const headers = { authorization: `Bearer ${name}-0123456789abcdef`, 'idempotency-key': 'same' }
    return (await own.post('/v1/check', { key: 'a' }, headers)).body.remaining
  }
  assert.equal([await ask('one'), await ask('two'), await ask('one'), await ask('two')], [9, 8, 9, 8])
  await own.close()
})

test.run()
