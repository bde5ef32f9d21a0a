// run: typescript, also-full
// Functions of web requests: what a server hands on, where addresses come from, and what errors name.
import { MillraceError } from 'millrace'
import { rateLimit as deprecated } from 'millrace/hono'
import { type FetchOptions, ipKey, type LimitedRequest, rateLimit } from 'millrace/web'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const RULE = { limit: 2, window: '1m' } as const
const URL = 'http://localhost/'

/** As of Next.js: a request with a type of its own. */
class OwnRequest extends Request {
  readonly user = this.headers.get('x-user') ?? ''
}

interface Server {
  readonly name: string
  addressOf(request: Request): string | undefined
}

/** As of Bun. */
const server: Server = {
  name: 'server',
  addressOf: (request) => request.headers.get('x-from') ?? undefined,
}
const hello = () => new Response('hello')
const from = (address: string, headers: Record<string, string> = {}) =>
  new Request(URL, { headers: { 'x-from': address, ...headers } })
const byServer = { address: (request: Request, own: Server) => own.addressOf(request) }

function errorOf(make: () => unknown): MillraceError {
  try {
    make()
  } catch (error) {
    if (error instanceof MillraceError) return error
  }
  throw new Error('no error of Millrace')
}

test('all that the server hands on is handed to the functions of the options and to the handler', async () => {
  const handed: Record<string, unknown[]> = {}
  const noting =
    <T>(name: string, result: T) =>
    (...args: unknown[]) => {
      handed[name] = args
      return result
    }
  const limited = rateLimit(
    {
      window: '1m',
      key: noting('key', ''), // then the address is the key
      address: noting('address', '192.0.2.1'),
      cost: noting('cost', 1),
      skip: noting('skip', false),
      limit: noting('limit', 5),
    },
    noting('handler', new Response('hello')),
  )
  const request = new Request(URL)
  const rest = [server, { third: true }]
  assert.is((await limited(request, ...rest)).headers.get('ratelimit'), '"default";r=4;t=61')
  const names = ['address', 'cost', 'handler', 'key', 'limit', 'skip']
  assert.equal(Object.keys(handed).sort(), names)
  for (const name of names) {
    assert.is(handed[name]![0], request, name)
    assert.equal(handed[name]!.slice(1), rest, name)
  }
  await limited.close()
})

test('it has two parameters, as Deno hands on as many values as a function has', async () => {
  const limited = rateLimit({ ...RULE, key: () => 'all' }, hello)
  assert.is(limited.length, 2)
  await limited.close()
})

test('a client is limited by the address that the server knows, or that its proxies say', async () => {
  const limiters = [
    rateLimit({ ...RULE, ...byServer }, hello),
    rateLimit({ ...RULE, ...byServer, key: ipKey() }, hello),
    rateLimit({ ...RULE, trustProxy: 1 }, hello),
    rateLimit({ ...RULE, key: ipKey({ trustProxy: 1 }) }, hello),
    rateLimit({ ...RULE, ...byServer, trustProxy: ['10.0.0.0/8'] }, hello),
    deprecated({ ...RULE, ...byServer }, hello),
  ]
  for (const [i, limited] of limiters.entries()) {
    const isProxied = i >= 2 && i < 5
    const statusOf = async (address: string) => {
      const request = isProxied
        ? from('10.0.0.1', { 'x-forwarded-for': `203.0.113.9, ${address}` })
        : from(address)
      return (await limited(request, server)).status
    }
    const statuses: number[] = []
    for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2']) {
      statuses.push(await statusOf(address))
    }
    assert.equal(statuses, [200, 200, 429, 200], `${i}`)
    await limited.close()
  }
})

test('options that can find no client are refused, and the error names those that can', () => {
  const refused: [FetchOptions, string][] = [
    [RULE, 'key'],
    [{ ...RULE, key: ipKey() }, 'key'],
    [{ ...RULE, key: ipKey({ trustProxy: 0 }) }, 'key'],
    [{ ...RULE, trustProxy: 0 }, 'key'],
    [{ ...RULE, trustProxy: ['10.0.0.0/8'] }, 'key'],
    [{ ...RULE, key: () => 'all', deny: ['192.0.2.1'] }, 'deny'],
    [{ ...RULE, key: () => 'all', allow: ['192.0.2.1'] }, 'allow'],
  ]
  for (const [options, name] of refused) {
    const { code, option, message } = errorOf(() => rateLimit(options, hello))
    assert.equal([code, option], ['ERR_MILLRACE_INVALID_OPTION', name])
    assert.match(message, /option address, or trustProxy: 1/)
  }
  const wrong = { ...RULE, address: '192.0.2.1' } as unknown as FetchOptions
  assert.is(errorOf(() => rateLimit(wrong, hello)).option, 'address')
  const none = undefined as unknown as typeof hello
  assert.is(errorOf(() => rateLimit({ ...RULE, key: () => 'all' }, none)).option, 'fetch')
})

test('a request without an address is answered with 503, and the error names where it comes from', async () => {
  const errors: MillraceError[] = []
  const onError = (error: unknown) => {
    errors.push(error as MillraceError)
    return 'fail' as const
  }
  const limiters = [
    rateLimit({ ...RULE, ...byServer, onError }, hello),
    rateLimit({ ...RULE, trustProxy: 1, onError }, hello),
  ]
  for (const limited of limiters) {
    assert.is((await limited(new Request(URL), server)).status, 503)
    await limited.close()
  }
  for (const { code, option, message } of errors) {
    assert.equal([code, option], ['ERR_MILLRACE_NO_ADDRESS', 'address(request)'])
    assert.match(message, /option address .* trustProxy/)
  }
  assert.is(errors.length, 2)
  const { option, message } = errorOf(() => ipKey()(new Request(URL)))
  assert.is(option, 'request')
  assert.match(message, /option address of rateLimit or, with trustProxy/)
  assert.is(ipKey({ trustProxy: 1 })(from('10.0.0.1', { 'x-forwarded-for': '192.0.2.1' })), '192.0.2.1')
})

test('a function that has upgraded the connection returns nothing, and stays charged', async () => {
  const limited = rateLimit(
    { ...RULE, key: () => 'all', countIf: () => false },
    (_, isUpgraded: boolean): Response | undefined => (isUpgraded ? undefined : new Response('hello')),
  )
  const request = () => new Request(URL)
  assert.is(await limited(request(), true), undefined)
  for (let i = 0; i < 3; i++) {
    assert.is((await limited(request(), false))?.headers.get('ratelimit'), '"default";r=0;t=61')
  }
  assert.is(await limited(request(), true), undefined)
  assert.is((await limited(request(), true))?.status, 429)
  await limited.close()
})

test('a request keeps its type, and has the decision where there is one', async () => {
  const own = rateLimit<OwnRequest>({ ...RULE, key: ({ user }) => user }, (request) =>
    Response.json([request.user, request.rateLimit?.remaining]),
  )
  const byParameter = rateLimit({ ...RULE, key: ({ user }) => user }, (request: LimitedRequest<OwnRequest>) =>
    Response.json([request.user, request.rateLimit?.remaining]),
  )
  const skipped = rateLimit({ ...RULE, key: () => 'all', skip: () => true }, ({ rateLimit }) =>
    Response.json(rateLimit === undefined),
  )
  const request = () => new OwnRequest(URL, { headers: { 'x-user': 'alice' } })
  for (const limited of [own, byParameter]) {
    assert.equal(await (await limited(request())).json(), ['alice', 1])
    await limited.close()
  }
  assert.equal(await (await skipped(request())).json(), true)
  await skipped.close()
  // @ts-expect-error a plain request has no user
  const asPlain = () => own(new Request(URL))
  // @ts-expect-error the decision may be missing
  const unsafe = () => rateLimit(RULE, (request) => Response.json(request.rateLimit.remaining))
  assert.equal([typeof asPlain, typeof unsafe], ['function', 'function'])
})

test.run()
