// `/openapi.json` against what the server does: every route, and every status that the document names.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startRedis } from '../redis/servers.js'
import { type Answer, type Engine, engine } from './engine.js'

const TOKENS = {
  all: 'all-scopes-0123456789',
  decide: 'decides-only-0123456789',
  change: 'changes-only-0123456789',
}
const tokens = [
  { token: TOKENS.all, scopes: ['decide', 'read', 'change'] },
  { token: TOKENS.decide, scopes: ['decide'] },
  { token: TOKENS.change, scopes: ['change'] },
] as const
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const ALL = bearer(TOKENS.all)

interface Schema {
  readonly [name: string]: unknown
}
interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, { schema: Schema }> }>>
  readonly requestBody?: unknown
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const redis = await startRedis()
const url = `redis://127.0.0.1:${redis.port}`
const asked = await engine({ limit: '3/1m', tokens, policies: url, maxBody: 2_048 })
/** Its Redis will be stopped. */
const onRedis = await engine({ limit: '3/1m', tokens, counts: url, deadline: '10s', policies: url })
/** Its limiter is closed: it can't decide. */
const broken = createLimiter({ limit: 1, window: '1m' })
await broken.close()
const down = await engine({ tokens }, { limiters: new Map([['default', broken]]) })

test.after(async () => {
  await asked.close()
  await down.close()
  await onRedis.close()
  await redis.stop()
})

const { body: document } = (await asked.get('/openapi.json')) as { body: Document }
const ajv = new Ajv2020({ strict: false })

/** Checks an answer against the document, and notes that its status was seen. */
const seen = new Set<string>()
function judge(method: string, path: string, answer: Answer): void {
  const { responses } = document.paths[path]![method]!
  const name = `${method} ${path} ${answer.status}`
  const response = responses[answer.status]
  assert.ok(response, `${name} is in the document: ${JSON.stringify(answer.body)}`)
  seen.add(name)
  if (answer.status === 204) {
    assert.is(answer.body, '', name)
    return
  }
  const type = answer.headers.get('content-type')!.split(';')[0]!
  const { schema } = response.content![type] ?? {}
  assert.ok(schema, `${name} has the type ${type}`)
  assert.ok(ajv.validate(schema, answer.body), `${name}: ${ajv.errorsText()} ${JSON.stringify(answer.body)}`)
}

async function post(
  path: string,
  body: unknown,
  status: number,
  headers: Record<string, string> = {},
  on: Engine = asked,
) {
  const answer = await on.post(path, body, { ...ALL, ...headers })
  assert.is(answer.status, status, `${path} ${JSON.stringify(answer.body)}`)
  judge('post', path.split('?')[0]!, answer)
  return answer.body
}

async function get(path: string, status: number, headers: Record<string, string> = {}, on: Engine = asked) {
  const answer = await on.get(path, headers)
  assert.is(answer.status, status, `${path} ${JSON.stringify(answer.body)}`)
  judge('get', path, answer)
  return answer.body
}

test('decisions of one key and of many', async () => {
  await post('/v1/check', { key: 'a', token: true }, 200)
  await post(
    '/v1/check',
    { checks: [{ key: 'a' }, { key: 'a', limiter: 'none' }, { key: 'a', limit: 10 }] },
    200,
  )
  await post('/v1/check', { key: 'a', cost: 9 }, 200)
  await post('/v1/check?status=decision', { key: 'a', cost: 9 }, 429)
  await post('/v1/peek', { key: 'a' }, 200)
  await post('/v1/peek', { checks: [{ key: 'a' }] }, 200)
  await post('/v1/peek?status=decision', { key: 'a', cost: 9 }, 429)
})

test('reservations, refunds and changes of keys', async () => {
  const { reservation } = await post('/v1/reserve', { key: 'b', cost: 2 }, 200)
  await post('/v1/commit', { reservation, cost: 1 }, 200)
  await post('/v1/commit', { reservation, cost: 1 }, 409)
  await post('/v1/refund', { reservation }, 200)
  await post('/v1/refund', { key: 'b', cost: 1 }, 200)
  await post('/v1/penalize', { key: 'b', cost: 1 }, 200)
  await post('/v1/block', { key: 'b', ms: 'forever' }, 200)
  await post('/v1/check', { key: 'b' }, 200)
  await post('/v1/unblock', { key: 'b' }, 200)
  await post('/v1/clear', { key: 'b' }, 200)
  await post('/v1/usage', { key: 'b', lastMs: 1_000 }, 200)
  await post('/v1/stats', {}, 200)
})

test('policies with their versions', async () => {
  const policy = { limit: 5, window: '1m' }
  const { version } = await post('/v1/policies/put', { key: 'c', policy }, 200)
  await post('/v1/policies/put', { key: 'c', policy }, 412, { 'if-match': `"${version + 1}"` })
  await post('/v1/policies/put', { key: 'c', policy }, 412, { 'if-none-match': '*' })
  await post('/v1/policies/put', { key: 'c', policy }, 200, { 'if-match': `"${version}"` })
  assert.is((await post('/v1/policies/get', { key: 'c' }, 200)).policy.limit, 5)
  await post('/v1/policies/get', { key: 'none' }, 404)
  assert.is((await post('/v1/policies/list', { prefix: 'c', n: 1 }, 200)).next, 'c')
  assert.equal((await post('/v1/policies/list', { after: 'c' }, 200)).policies, [])
  await post('/v1/policies/delete', { key: 'c' }, 412, { 'if-match': `"${version}"` })
  await post('/v1/policies/delete', { key: 'c' }, 200)
  for (const path of ['list', 'get', 'put', 'delete']) {
    const body = path === 'list' ? {} : path === 'put' ? { key: 'c', policy } : { key: 'c' }
    await post(`/v1/policies/${path}`, body, 404, {}, down)
  }
})

test('an Idempotency-Key: another body is refused, and so is a request while the first is under way', async () => {
  const waiting = new Map<string, () => void>()
  const limiter = createLimiter({ limit: 9, window: '1m' })
  /** Waits until the test lets it go on, as a store that is slow. */
  const slow = new Proxy(limiter, {
    get(_, name: 'check' | 'penalize' | 'refund') {
      const method = limiter[name] as (...args: unknown[]) => unknown
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => {
        const act = () => method.apply(limiter, args)
        if (args[0] !== 'slow') return act()
        return new Promise<void>((resolve) => waiting.set(name, resolve)).then(act)
      }
    },
  })
  const own = await engine({ tokens }, { limiters: new Map([['default', slow as never]]) })
  const bodies: Record<string, object> = {
    check: {},
    reserve: { cost: 1 },
    penalize: { cost: 1 },
    refund: { cost: 1 },
  }
  const methods: Record<string, string> = { reserve: 'check' }
  for (const [path, body] of Object.entries(bodies)) {
    const headers = { 'idempotency-key': `slow ${path}` }
    const first = own.post(`/v1/${path}`, { key: 'slow', ...body }, { ...ALL, ...headers })
    const method = methods[path] ?? path
    while (!waiting.has(method)) await new Promise(setImmediate)
    await post(`/v1/${path}`, { key: 'slow', ...body }, 409, headers, own)
    waiting.get(method)!()
    waiting.delete(method)
    judge('post', `/v1/${path}`, await first)
    await post(`/v1/${path}`, { key: 'other', ...body }, 422, headers, own)
  }
  const commit = { 'idempotency-key': 'commit' }
  const { reservation } = await post('/v1/reserve', { key: 'a', cost: 1 }, 200, {}, own)
  await post('/v1/commit', { reservation, cost: 1 }, 200, commit, own)
  await post('/v1/commit', { reservation, cost: 2 }, 422, commit, own)
  await own.close()
  await limiter.close()
})

test('what is read by GET', async () => {
  await get('/healthz', 200)
  await get('/readyz', 200)
  await get('/v1/limiters', 200, ALL)
  await get('/v1/limiters', 401)
  await get('/v1/limiters', 403, bearer(TOKENS.change))
  assert.match(
    await get('/metrics', 200),
    'millrace_service_request_duration_seconds_count{method="POST",route="/v1/check"',
  )
  await get('/openapi.json', 200)
})

test('/v1/auth decides by headers', async () => {
  const key = { ...ALL, 'x-millrace-key': 'auth' }
  await get('/v1/auth', 204, { ...key, 'x-millrace-cost': '3' })
  const { headers } = await asked.get('/v1/auth', key)
  assert.ok(Number(headers.get('retry-after')) > 0)
  assert.match(headers.get('ratelimit')!, /^"default";r=0;t=/)
  await get('/v1/auth', 403, key)
  await get('/v1/auth', 400, ALL)
  await get('/v1/auth', 400, { ...key, 'x-millrace-cost': 'many' })
  await get('/v1/auth', 401, { 'x-millrace-key': 'a' })
  await get('/v1/auth', 401, { ...bearer(TOKENS.change), 'x-millrace-key': 'a' })
  await get('/v1/auth', 503, key, down)
})

/** A body that the route takes. */
const TAKEN: Readonly<Record<string, object>> = {
  '/v1/policies/list': {},
  '/v1/stats': {},
  '/v1/commit': { reservation: 'x', cost: 1 },
  '/v1/block': { key: 'a', ms: 1 },
  '/v1/policies/put': { key: 'a', policy: { limit: 1, window: '1m' } },
}

for (const [path, { post: operation }] of Object.entries(document.paths)) {
  if (operation === undefined) continue
  const body = { key: 'a', ...(/reserve|refund|penalize/.test(path) && { cost: 1 }), ...TAKEN[path] }

  test(`${path} refuses what it does not take`, async () => {
    judge('post', path, await asked.post(path, '{'))
    await post(path, '{', 400)
    await post(path, { unknown: true }, 400)
    await post(path, `{"key":"${'a'.repeat(3_000)}"}`, 413)
    await post(path, body, 415, { 'content-type': 'text/plain' })
    judge('post', path, await asked.post(path, body))
    const scoped = /check|peek|reserve|commit|refund|penalize/.test(path) ? TOKENS.change : TOKENS.decide
    judge('post', path, await asked.post(path, body, bearer(scoped)))
  })
}

test('a limiter or a store that can not answer is 503', async () => {
  for (const path of ['check', 'peek', 'unblock', 'clear', 'usage', 'stats'])
    await post(`/v1/${path}`, path === 'stats' ? {} : { key: 'a' }, 503, {}, down)
  for (const path of ['reserve', 'refund', 'penalize'])
    await post(`/v1/${path}`, { key: 'a', cost: 1 }, 503, {}, down)
  await post('/v1/block', { key: 'a', ms: 1 }, 503, {}, down)
  const limiters = new Map([['default', createLimiter({ limit: 3, window: '1m' })]])
  const own = await engine({ tokens }, { limiters })
  const { reservation } = await post('/v1/reserve', { key: 'a', cost: 1 }, 200, {}, own)
  await limiters.get('default')!.close()
  await post('/v1/commit', { reservation, cost: 0 }, 503, {}, own)
  await own.close()
  await get('/readyz', 200, {}, onRedis)
  await redis.stop()
  await get('/readyz', 503, {}, onRedis)
  for (const path of ['check', 'peek']) {
    const { code, mayBeCharged } = await post(`/v1/${path}`, { key: 'a' }, 503, {}, onRedis)
    assert.equal([code, mayBeCharged], ['ERR_MILLRACE_UNDECIDED', false], path)
  }
  const { decisions } = await post('/v1/check', { checks: [{ key: 'a' }] }, 200, {}, onRedis)
  assert.is(decisions[0].error.code, 'ERR_MILLRACE_UNDECIDED')
  await post('/v1/policies/list', {}, 503, {}, onRedis)
  await post('/v1/policies/get', { key: 'a' }, 503, {}, onRedis)
  await post('/v1/policies/put', { key: 'a', policy: { limit: 1, window: '1m' } }, 503, {}, onRedis)
  await post('/v1/policies/delete', { key: 'a' }, 503, {}, onRedis)
})

test('every status of the document was seen', () => {
  const named = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.keys(responses)
        .filter((status) => status !== 'default')
        .map((status) => `${method} ${path} ${status}`),
    ),
  )
  assert.ok(named.length > 100, `${named.length} answers`)
  assert.equal(
    named.filter((name) => !seen.has(name)),
    [],
  )
})

test.run()
