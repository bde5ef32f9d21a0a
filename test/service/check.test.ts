import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Engine, engine } from './engine.js'

async function withEngine(act: (asked: Engine) => Promise<void>): Promise<void> {
  const clock = manualClock(1_000)
  const limiters = new Map([
    ['default', createLimiter({ limit: 3, window: '1m', clock })],
    ['login', createLimiter({ limit: 1, window: '1h', clock })],
  ])
  const asked = await engine({}, { limiters })
  try {
    await act(asked)
  } finally {
    await asked.close()
  }
}

test('one key is decided by the default limiter, or by the one that is named', () =>
  withEngine(async ({ post }) => {
    const first = await post('/v1/check', { key: 'user:1' })
    assert.equal([first.status, first.body.allowed, first.body.remaining], [200, true, 2])
    const login = { key: 'user:1', limiter: 'login' }
    assert.is((await post('/v1/check', login)).body.allowed, true)
    assert.is((await post('/v1/check', login)).body.allowed, false)
    assert.is((await post('/v1/peek', { key: 'user:1' })).body.remaining, 2)
  }))

test('many keys are decided in order, each by itself', () =>
  withEngine(async ({ post }) => {
    const checks = [{ key: 'a', cost: 2 }, { key: 'a', cost: 2 }, { key: 'b', limiter: 'no' }, { key: 'a' }]
    const { status, body } = await post('/v1/check', { checks })
    assert.is(status, 200)
    assert.equal(
      body.decisions.map(({ allowed, error }: { allowed?: boolean; error?: { code: string } }) =>
        error === undefined ? allowed : error.code,
      ),
      [true, false, 'ERR_MILLRACE_INVALID_OPTION', true],
    )
  }))

test('Infinity travels as a text', () =>
  withEngine(async ({ post }) => {
    const { body } = await post('/v1/check', { key: 'a', cost: 4 })
    assert.equal([body.allowed, body.retryAfterMs], [false, 'Infinity'])
  }))

test('a request identifier is echoed', () =>
  withEngine(async ({ post }) => {
    const { headers } = await post('/v1/check', { key: 'a' }, { 'x-request-id': 'abc' })
    assert.is(headers.get('x-request-id'), 'abc')
  }))

test('a 429 that is sent again for its Idempotency-Key says when to retry, too', () =>
  withEngine(async ({ post }) => {
    await post('/v1/check', { key: 'a', cost: 3 })
    const ask = () => post('/v1/check?status=decision', { key: 'a' }, { 'idempotency-key': 'one' })
    const [first, again] = [await ask(), await ask()]
    assert.equal([again.status, again.headers.get('idempotency-replayed')], [429, 'true'])
    for (const name of ['retry-after', 'ratelimit', 'ratelimit-policy']) {
      assert.ok(first.headers.get(name), name)
      assert.is(again.headers.get(name), first.headers.get(name), name)
    }
  }))

test('a key of UTF-8 in the headers of /v1/auth is the same as in a body', () =>
  withEngine(async ({ get, post }) => {
    for (const key of ['José', '日本', 'plain']) {
      const header = Buffer.from(key).toString('latin1')
      assert.is((await get('/v1/auth', { 'x-millrace-key': header })).status, 204)
      assert.is((await post('/v1/peek', { key })).body.remaining, 2, key)
    }
  }))

test.run()
