// The option keyHeader: the key is in the header that a balancer hashes, and no request has two.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Engine, engine } from './engine.js'

const tokens = [{ token: 'all-scopes-0123456789', scopes: ['decide', 'read', 'change'] }] as const
const authorization = { authorization: `Bearer ${tokens[0].token}` }
const by = (key: string) => ({ ...authorization, 'x-millrace-key': key })

async function withEngine(act: (own: Engine) => Promise<void>) {
  const own = await engine({ limit: '10/1m', keyHeader: true, tokens })
  try {
    await act(own)
  } finally {
    await own.close()
  }
}

/** What each route needs beside the key. */
const ROUTES: Readonly<Record<string, object>> = {
  check: {},
  peek: {},
  reserve: { cost: 1 },
  refund: { cost: 1 },
  penalize: { cost: 1 },
  block: { ms: 1 },
  unblock: {},
  clear: {},
  usage: {},
}

for (const [route, fields] of Object.entries(ROUTES)) {
  test(`/v1/${route} takes the key of the header, and no other`, () =>
    withEngine(async (own) => {
      const ask = async (body: object, headers: Record<string, string>) => {
        const { status, body: answer } = await own.post(`/v1/${route}`, { ...fields, ...body }, headers)
        return answer.code ?? status
      }
      assert.is(await ask({}, by('a')), 200)
      assert.is(await ask({ key: 'a' }, by('a')), 200)
      assert.is(await ask({ key: 'b' }, by('a')), 'ERR_MILLRACE_SEVERAL_KEYS')
      assert.is(await ask({ key: 7 }, by('a')), 'ERR_MILLRACE_SEVERAL_KEYS')
      assert.is(await ask({ key: 'a' }, authorization), 'ERR_MILLRACE_KEY_HEADER')
      assert.is(await ask({ key: 'a' }, by('')), 'ERR_MILLRACE_KEY_HEADER')
    }))
}

test('a key of the header is the same as in a body: both are UTF-8', () =>
  withEngine(async (own) => {
    const header = Buffer.from('clé').toString('latin1')
    for (const [body, remaining] of [
      [{ key: 'clé' }, 9],
      [{}, 8],
    ] as const) {
      const { status, body: answer } = await own.post('/v1/check', body, by(header))
      assert.equal([status, answer.remaining], [200, remaining])
    }
    const { status } = await own.post('/v1/check', { key: 'clé' }, by('cl\xe9'))
    assert.is(status, 200, 'a client that writes Latin-1')
  }))

for (const method of ['check', 'peek']) {
  test(`/v1/${method} decides a batch of one key, and refuses one of several before it charges any`, () =>
    withEngine(async (own) => {
      const ask = (checks: unknown) => own.post(`/v1/${method}`, { checks }, by('a'))
      const refused = (await ask([{ key: 'a' }, { key: 'b', cost: 2 }])).body
      assert.equal([refused.code, refused.field], ['ERR_MILLRACE_SEVERAL_KEYS', 'checks[1].key'])
      assert.is((await ask([7, null])).body.code, 'ERR_MILLRACE_INVALID_OPTION')
      const { decisions } = (await ask([{ key: 'a' }, { cost: 2 }])).body
      const remaining = decisions.map((decision: { remaining: number }) => decision.remaining)
      assert.equal(remaining, method === 'check' ? [9, 7] : [10, 10])
    }))
}

test('a token travels with the header of its key', () =>
  withEngine(async (own) => {
    const { token } = (await own.post('/v1/check', { cost: 4, token: true }, by('a'))).body
    const { reservation } = (await own.post('/v1/reserve', { cost: 3 }, by('a'))).body
    for (const [path, body] of [
      ['refund', { token }],
      ['commit', { reservation, cost: 1 }],
    ] as const) {
      const refused = await own.post(`/v1/${path}`, body, authorization)
      assert.is(refused.body.code, 'ERR_MILLRACE_KEY_HEADER')
    }
    for (const [path, body] of [
      ['refund', { token }],
      ['refund', { reservation }],
      ['commit', { token, cost: 1 }],
      ['commit', { reservation, cost: 1 }],
    ] as const) {
      const { status, body: refused } = await own.post(`/v1/${path}`, body, by('b'))
      const [field] = Object.keys(body)
      assert.equal([status, refused.code, refused.field], [400, 'ERR_MILLRACE_SEVERAL_KEYS', field], path)
      const changed = await own.post(`/v1/${path}`, { ...body, [field!]: 'x.y' }, by('b'))
      assert.is(changed.body.code, 'ERR_MILLRACE_INVALID_TOKEN')
    }
    assert.equal((await own.post('/v1/refund', { token }, by('a'))).body, { refunded: 4 })
    assert.equal((await own.post('/v1/commit', { reservation, cost: 1 }, by('a'))).body, { committed: -2 })
    assert.is((await own.post('/v1/peek', {}, by('a'))).body.remaining, 9)
  }))

test('a body that is no object is refused as without the option, and routes without keys need no header', () =>
  withEngine(async (own) => {
    for (const body of ['[]', '7', 'null'])
      assert.is((await own.post('/v1/check', body, by('a'))).status, 400, body)
    assert.is((await own.post('/v1/stats', {}, authorization)).status, 200)
    assert.is((await own.get('/readyz')).status, 200)
  }))

test('/openapi.json has the header, and takes bodies without a key', () =>
  withEngine(async (own) => {
    const { paths } = (await own.get('/openapi.json')).body
    const ajv = new Ajv2020({ strict: false })
    for (const [route, fields] of Object.entries(ROUTES)) {
      const { parameters, requestBody } = paths[`/v1/${route}`].post
      const named = parameters.filter((one: { in: string }) => one.in === 'header')
      assert.equal(
        named.map((one: { name: string; required: boolean }) => [one.name, one.required]),
        [['x-millrace-key', true]],
      )
      const { schema } = requestBody.content['application/json']
      for (const body of [fields, { ...fields, key: 'a' }])
        assert.ok(ajv.validate(schema, body), `${route}: ${ajv.errorsText()}`)
      assert.not.ok(ajv.validate(schema, { ...fields, other: 1 }), route)
    }
    const { schema } = paths['/v1/check'].post.requestBody.content['application/json']
    assert.ok(ajv.validate(schema, { checks: [{ cost: 2 }] }))
    assert.not.ok(ajv.validate(paths['/v1/commit'].post.requestBody.content['application/json'].schema, {}))
  }))

test('without the option the header makes no difference', async () => {
  const own = await engine({ limit: '10/1m' })
  const answer = await own.post(
    '/v1/check',
    { checks: [{ key: 'a' }, { key: 'b' }] },
    { 'x-millrace-key': 'a' },
  )
  assert.is(answer.status, 200)
  await own.close()
})

test.run()
