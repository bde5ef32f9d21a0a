// What callers read when a store does not answer: whether they are charged, and nothing of the store.
// run: own
import * as assert from 'uvu/assert'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { type Answer, type Engine, engine } from './engine.js'

const tokens = [{ token: 'all-scopes-0123456789', scopes: ['decide', 'read', 'change'] }] as const
const ALL = { authorization: `Bearer ${tokens[0].token}` }
type Redis = Awaited<ReturnType<typeof startRedis>>

async function withEngine(deadline: string, act: (own: Engine, redis: Redis) => Promise<void>) {
  const redis = await startRedis()
  const url = `redis://127.0.0.1:${redis.port}`
  const own = await engine({ limit: '3/1m', tokens, counts: url, policies: url, deadline })
  try {
    await act(own, redis)
  } finally {
    redis.resume()
    await own.close()
    await redis.stop()
  }
}

const judged = ({ status, body }: Answer) => [status, body.code, body.mayBeCharged]

test('what was sent to a store that stands still may be charged; what was not sent, or charges nothing, is not', () =>
  withEngine('50ms', async (own, redis) => {
    const key = { key: 'a' }
    const learned = await own.post('/v1/check', key, ALL)
    if (learned.status === 200) assert.is(learned.body.allowed, true)
    await redis.pause()
    const sent = await own.post('/v1/check', key, ALL)
    assert.equal(judged(sent), [503, 'ERR_MILLRACE_UNDECIDED', true])
    const many = await own.post('/v1/check', { checks: [key, key] }, ALL)
    for (const { error } of many.body.decisions) assert.is(typeof error.mayBeCharged, 'boolean')
    assert.equal(judged(await own.post('/v1/peek', key, ALL)), [503, 'ERR_MILLRACE_UNDECIDED', false])
    const kept = await own.post('/v1/check', key, { ...ALL, 'idempotency-key': 'one' })
    assert.equal(judged(kept), [503, 'ERR_MILLRACE_OUTAGE', false])
    let spared = await own.post('/v1/check', key, ALL)
    while (spared.body.mayBeCharged) spared = await own.post('/v1/check', key, ALL) // the breaker opens
    assert.equal(judged(spared), [503, 'ERR_MILLRACE_UNDECIDED', false])
  }))

const ASKED: readonly [path: string, body: object][] = [
  ['/v1/check', { key: 'a' }],
  ['/v1/check', { checks: [{ key: 'a' }] }],
  ['/v1/peek', { key: 'a' }],
  ['/v1/reserve', { key: 'a', cost: 1 }],
  ['/v1/refund', { key: 'a', cost: 1 }],
  ['/v1/penalize', { key: 'a', cost: 1 }],
  ['/v1/block', { key: 'a', ms: 1 }],
  ['/v1/unblock', { key: 'a' }],
  ['/v1/clear', { key: 'a' }],
  ['/v1/usage', { key: 'a' }],
  ['/v1/policies/list', {}],
  ['/v1/policies/get', { key: 'a' }],
  ['/v1/policies/put', { key: 'a', policy: { limit: 1, window: '1m' } }],
  ['/v1/policies/delete', { key: 'a' }],
]

for (const harm of ['pause', 'kill'] as const) {
  test(`no answer has the address of a store that is away (${harm})`, () =>
    withEngine('50ms', async (own, redis) => {
      const { token } = (await own.post('/v1/check', { key: 'a', token: true }, ALL)).body
      await redis[harm]()
      const asked = token ? [...ASKED, ['/v1/refund', { token }] as const] : ASKED
      for (const [path, body] of asked) {
        for (const headers of [ALL, { ...ALL, 'idempotency-key': path }]) {
          const answer = await own.post(path, body, headers)
          const text = JSON.stringify(answer.body)
          assert.not.match(text, new RegExp(`${redis.port}|127\\.0|REFUSED|ms\\b.*answer|reason`), path)
          assert.ok(answer.status === 503 || 'checks' in body, `${path}: ${answer.status} ${text}`)
        }
      }
      assert.not.match(JSON.stringify((await own.get('/readyz')).body), `${redis.port}`)
    }))
}

test.run()
