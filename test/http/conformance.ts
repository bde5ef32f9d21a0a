/** What `rateLimit` does in every framework. */

import { createLimiter, manualClock } from 'millrace'
import { parseList } from 'structured-headers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testCounts } from './conformance-counts.js'
import { testFailures } from './conformance-failures.js'
import { testGroups } from './conformance-groups.js'
import { type AnyOptions, type Client, type FrameworkDriver, http1Client, type Served } from './driver.js'

const PROBLEM = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** Runs the suite against a framework. */
export function testFramework(driver: FrameworkDriver): void {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const byHeader = (request: unknown) => driver.header(request, 'x-key') ?? 'nobody'
  /** Two requests a minute for each `x-key`, on a clock that stands still. */
  const base = (): AnyOptions => ({ limit: 2, window: '1m', clock: manualClock(1e9), key: byHeader })

  const serving: Serving = (chain, use) => async () => {
    const served = await driver.serve(...[chain].flat())
    try {
      await use(getter(served.url, client), served)
    } finally {
      await served.close()
    }
  }

  test('admits the limit, and refuses the next request with all headers', async () =>
    serving(base(), async (get) => {
      for (const left of [1, 0]) {
        const response = await get('/')
        assert.is(response.status, 200)
        assert.is(await response.text(), 'hello')
        assert.is(response.headers.get('ratelimit'), `"default";r=${left};t=61`)
        assert.is(response.headers.get('ratelimit-policy'), '"default";q=2;w=60')
        assert.is(response.headers.get('retry-after'), null)
      }
      const response = await get('/')
      assert.is(response.status, 429)
      assert.is(response.headers.get('retry-after'), '61')
      assert.is(response.headers.get('ratelimit'), '"default";r=0;t=61')
      assert.match(response.headers.get('content-type')!, /^application\/problem\+json/)
      const problem = (await response.json()) as Record<string, unknown>
      assert.is(problem.type, PROBLEM)
      assert.is(problem.status, 429)
      assert.equal(problem['violated-policies'], ['default'])
    })())

  test('limits each key by itself, and keeps the decision for the handler', async () =>
    serving(base(), async (get) => {
      for (const key of ['alice', 'bob']) {
        const decision = (await (await get('/decision', { 'x-key': key })).json()) as Record<string, unknown>
        assert.equal([decision.allowed, decision.remaining, decision.rule], [true, 1, 'default'])
      }
    })())

  if (driver.hasNoSocket === undefined) {
    test('limits by the address of the connection', async () =>
      serving({ limit: 1, window: '1m' }, async (get) => {
        assert.is((await get('/')).status, 200)
        assert.is((await get('/', { 'x-forwarded-for': '192.0.2.1' })).status, 429)
      })())

    test('two limiters of one connection count by themselves', async () => {
      const clock = manualClock(1e9)
      const chain = [3, 2].map((limit) => ({ name: `of ${limit}`, limit, window: '1m', clock }))
      await serving(chain, async (get) => {
        for (let i = 0; i < 2; i++) assert.is((await get('/')).status, 200)
        const response = await get('/')
        assert.is(response.status, 429)
        assert.is(response.headers.get('ratelimit'), '"of 3";r=0;t=61, "of 2";r=0;t=61')
      })()
    })

    test('limits by the address that a trusted proxy saw', async () =>
      serving({ limit: 1, window: '1m', trustProxy: 1 }, async (get) => {
        const statusOf = async (header: string) => (await get('/', { 'x-forwarded-for': header })).status
        assert.is(await statusOf('192.0.2.1'), 200)
        assert.is(await statusOf('192.0.2.2, 192.0.2.1'), 429)
        assert.is(await statusOf('192.0.2.2'), 200)
      })())

    test('limits each address behind a NAT64 prefix of your own', async () => {
      const nat64Prefixes = ['64:ff9b:1::/48']
      await serving({ limit: 1, window: '1m', trustProxy: 1, nat64Prefixes }, async (get) => {
        const statusOf = async (address: string) => (await get('/', { 'x-forwarded-for': address })).status
        assert.is(await statusOf('64:ff9b:1::c000:201'), 200)
        assert.is(await statusOf('64:ff9b:1::c000:202'), 200)
        assert.is(await statusOf('64:ff9b:1::c000:201'), 429)
      })()
    })

    test('refuses addresses of deny with 403, and does not limit those of allow', async () => {
      await serving({ ...base(), deny: ['127.0.0.0/8', '::1'] }, async (get) => {
        assert.is((await get('/')).status, 403)
      })()
      await serving({ ...base(), allow: ['127.0.0.0/8', '::1'] }, async (get) => {
        for (let i = 0; i < 3; i++) assert.is((await get('/')).status, 200)
      })()
    })
  }

  test('takes a cost and a limit of the request, also by promises', async () => {
    const number = (name: string) => (request: unknown) => Number(driver.header(request, name))
    for (const later of [false, true]) {
      const maybe = <T>(of: (request: unknown) => T) => (later ? async (r: unknown) => of(r) : of)
      const options = {
        ...base(),
        key: maybe(byHeader),
        cost: maybe(number('x-cost')),
        limit: maybe(number('x-limit')),
        skip: maybe(() => false),
      }
      await serving(options as AnyOptions, async (get) => {
        assert.is((await get('/', { 'x-cost': '3', 'x-limit': '5' })).status, 200)
        assert.is((await get('/', { 'x-cost': '3', 'x-limit': '5' })).status, 429)
        const response = await get('/', { 'x-cost': '3', 'x-limit': '6' })
        assert.is(response.headers.get('ratelimit-policy'), '"default";q=6;w=60')
        assert.is(response.status, 200)
      })()
    }
  })

  test('passes skipped requests and ignored user agents on without headers', async () =>
    serving(
      {
        ...base(),
        limit: 1,
        skip: (request: unknown) => driver.header(request, 'x-skip') !== undefined,
        ignoreUserAgents: [/^health-check/],
      },
      async (get) => {
        for (let i = 0; i < 2; i++) {
          for (const headers of [{ 'x-skip': '1' }, { 'user-agent': 'health-check/1.0' }]) {
            const response = await get('/', headers)
            assert.is(response.status, 200)
            assert.is(response.headers.get('ratelimit'), null)
          }
        }
        assert.is(await (await get('/decision', { 'x-skip': '1' })).text(), 'null')
        assert.is((await get('/')).status, 200)
        assert.is((await get('/')).status, 429)
      },
    )())

  test('has rules of their own for routes', async () =>
    serving(
      {
        ...base(),
        routes: { 'POST /login': { limit: 1, window: '15m', name: 'logins' }, '/status/*': false },
      },
      async (get) => {
        const login = (path = '/login') => get(path, {}, 'POST')
        assert.is((await login()).headers.get('ratelimit-policy'), '"logins";q=1;w=900')
        assert.is((await login()).status, 429)
        assert.is((await login('/LOGIN/?x=1')).status, 429)
        const { status } = await login('/%6Cogin')
        assert.ok(status === 429 || (driver.isBehindRouter && status === 404), String(status))
        for (let i = 0; i < 3; i++) {
          const response = await get('/status/204')
          assert.is(response.headers.get('ratelimit'), null)
          assert.is(response.status, 204)
        }
        assert.is((await get('/')).headers.get('ratelimit-policy'), '"default";q=2;w=60')
      },
    )())

  test('answers by statusCode and message, or by handler', async () => {
    const refused = async (options: object) => {
      let found!: { status: number; type: string; body: string }
      await serving({ ...base(), limit: 1, ...options } as AnyOptions, async (get) => {
        await get('/')
        const response = await get('/')
        found = {
          status: response.status,
          type: response.headers.get('content-type')!.split(';')[0]!,
          body: await response.text(),
        }
        assert.is(response.headers.get('retry-after'), '61')
      })()
      return found
    }
    assert.equal(await refused({ statusCode: 420, message: 'slowly' }), {
      status: 420,
      type: 'text/plain',
      body: 'slowly',
    })
    assert.equal(await refused({ message: { error: 'slowly' } }), {
      status: 429,
      type: 'application/json',
      body: '{"error":"slowly"}',
    })
    const message = (_: unknown, { rule }: { rule: string }) => ({ rule })
    assert.is((await refused({ message })).body, '{"rule":"default"}')
    assert.equal(await refused(driver.teapot()), { status: 418, type: 'text/plain', body: 'default' })
  })

  test('answers in HTML or text if the client prefers it, and HEAD without a body', async () =>
    serving({ ...base(), limit: 1 }, async (get) => {
      await get('/')
      for (const [accept, type] of [
        ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html'],
        ['text/plain', 'text/plain'],
        ['application/json', 'application/problem+json'],
      ] as const) {
        const response = await get('/', { accept })
        assert.is(response.headers.get('content-type')!.split(';')[0], type)
      }
      const response = await get('/', {}, 'HEAD')
      assert.is(response.status, 429)
      assert.is(await response.text(), '')
    })())

  test('gives the charge back for responses that do not count', async () =>
    serving(
      { ...base(), limit: 1, countIf: (response: unknown) => driver.statusOf(response) >= 400 },
      async (get) => {
        for (let i = 0; i < 3; i++) assert.is((await get('/status/204')).status, 204)
        assert.is((await get('/status/404')).status, 404)
        assert.is((await get('/status/204')).status, 429)
      },
    )())

  test('keeps the charge of a request whose connection closes before its response', async () =>
    serving({ ...base(), countIf: () => false }, async (get, { url }) => {
      const close = client.open(`${url}/hang`, { 'x-key': 'nobody' })
      for (let left = 1; left > 0; ) {
        const decision = (await (await get('/decision')).json()) as { remaining: number }
        left = decision.remaining // the request above may come after this one
      }
      await close()
      // The server sees the close a little later than the client.
      for (let i = 0; i < 20; i++) assert.is((await (await get('/decision')).json()).remaining, 0)
    })())

  test('in shadow mode no request waits', async () =>
    serving({ ...base(), shadow: true, delay: { after: 0, ms: 1_000_000, max: 1_000_000 } }, async (get) => {
      for (let i = 0; i < 4; i++) assert.is((await get('/')).status, 200)
    })())

  test('bans a key that was refused too often', async () =>
    serving({ ...base(), limit: 1, ban: { after: 2, for: '1h' } }, async (get, { reset }) => {
      const statuses: number[] = []
      for (let i = 0; i < 5; i++) statuses.push((await get('/')).status)
      assert.equal(statuses, [200, 429, 429, 403, 403])
      assert.is((await get('/')).headers.get('retry-after'), '3600')
      assert.is((await get('/', { 'x-key': 'other' })).status, 200)
      await reset('nobody')
      assert.is((await get('/')).status, 200)
    })())

  test('slows down instead of refusing', async () =>
    serving({ ...base(), delay: { after: 1, ms: 1, max: 5 } }, async (get) => {
      for (let i = 0; i < 4; i++) {
        const response = await get('/')
        assert.is(response.status, 200)
        assert.is(await response.text(), 'hello')
      }
    })())

  test('with shadow it refuses nothing, sets no headers, and reports', async () => {
    const limited: string[] = []
    const onLimited = (_: unknown, { rule }: { rule: string }) => limited.push(rule)
    await serving({ ...base(), limit: 1, shadow: true, onLimited } as AnyOptions, async (get) => {
      for (let i = 0; i < 3; i++) {
        const response = await get('/')
        assert.is(response.status, 200)
        assert.is(response.headers.get('ratelimit'), null)
      }
      assert.is((await (await get('/decision')).json()).allowed, false)
    })()
    assert.equal(limited, ['default', 'default', 'default'])
  })

  testFailures(test, base, serving)

  test('charges a request once that meets one limiter several times, and writes one item', async () => {
    const told: unknown[] = []
    const counted: unknown[] = []
    const options = {
      ...base(),
      onLimited: (request: unknown) => told.push(request),
      countIf: (response: unknown) => counted.push(response) > 0,
    }
    const served = await driver.serveRepeatedly(options as unknown as AnyOptions)
    try {
      const get = getter(served.url, client)
      for (const left of [1, 0]) {
        const response = await get('/')
        assert.is(response.status, 200)
        assert.is(await response.text(), 'hello')
        assert.is(response.headers.get('ratelimit'), `"default";r=${left};t=61`)
        assert.is(response.headers.get('ratelimit-policy'), '"default";q=2;w=60')
      }
      assert.is((await get('/')).status, 429)
      assert.is(told.length, 1)
      assert.is(counted.length, 2)
    } finally {
      await served.close()
    }
  })

  test('two limiters of the same options both charge', async () => {
    const options = { ...base(), limit: 10 }
    await serving([options, options], async (get) => {
      const response = await get('/')
      assert.is(response.headers.get('ratelimit'), '"default";r=9;t=61, "default";r=9;t=61')
      const key = () => 'nobody'
      const limiter = createLimiter({ limit: 10, window: '1m', clock: manualClock(1e9) })
      await serving(
        [
          { limiter, key },
          { limiter, key },
        ],
        async (again) => {
          await again('/')
          assert.is(limiter.peek('nobody').remaining, 8)
        },
      )()
      await limiter.close()
    })()
  })

  testCounts(test, base, serving)
  testGroups(test, driver, serving)

  test('forgets a key on reset', async () =>
    serving({ ...base(), limit: 1 }, async (get, { reset }) => {
      assert.is((await get('/')).status, 200)
      assert.is((await get('/')).status, 429)
      await reset('nobody')
      assert.is((await get('/')).status, 200)
    })())

  test('decides by a limiter of the caller, also a pooled one, which stays open', async () => {
    const inline = createLimiter({ limit: 1, window: '1m' })
    const pooled = createLimiter({ limit: 1, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
    for (const limiter of [inline, pooled]) {
      await serving({ limiter, key: byHeader }, async (get) => {
        assert.is((await get('/')).status, 200)
        assert.is((await get('/')).status, 429)
      })()
      assert.is((await limiter.peek('nobody')).remaining, 0)
      await limiter.close()
    }
  })

  test('several rules, and several limiters in one chain, name all their items', async () => {
    const rules = [
      { name: 'burst', limit: 2, window: '1s' },
      { name: 'hourly', limit: 3, window: '1h' },
    ]
    const clock = manualClock(1e9)
    const chain = [
      { rules, clock, key: byHeader },
      { name: 'all', limit: 10, window: '1m', clock, key: () => 'everybody' },
    ]
    await serving(chain as AnyOptions[], async (get) => {
      await get('/')
      const { headers } = await get('/')
      const items = parseList(headers.get('ratelimit')!).map(([name, parameters]) => [name, ...parameters])
      assert.equal(items, [
        ['burst', ['r', 0], ['t', 2]],
        ['hourly', ['r', 1], ['t', 3620]],
        ['all', ['r', 8], ['t', 61]],
      ])
      assert.is(headers.get('ratelimit-policy'), '"burst";q=2;w=1, "hourly";q=3;w=3600, "all";q=10;w=60')
    })()
  })

  test('names its headers for pages of other origins', async () =>
    serving({ ...base(), exposeHeaders: true }, async (get) => {
      const exposed = (await get('/')).headers.get('access-control-expose-headers')!.toLowerCase()
      for (const name of ['ratelimit', 'ratelimit-policy', 'retry-after'])
        assert.ok(exposed.includes(name), name)
    })())

  test.run()
}

/** Serves by the options, and closes the server in any case. */
export type Serving = (
  chain: AnyOptions | readonly AnyOptions[],
  use: (get: Get, served: Served) => Promise<void>,
) => () => Promise<void>

export type Get = (path: string, headers?: Record<string, string>, method?: string) => Promise<Reply>
/** A response whose JSON has any fields. */
// biome-ignore lint/suspicious/noExplicitAny: what a test reads of a body
type Reply = Omit<Response, 'json'> & { json(): Promise<any> }

/** Sends requests as the key 'nobody' unless their headers say otherwise. */
const getter =
  (url: string, client: Client): Get =>
  (path, headers = {}, method = 'GET') =>
    client.fetch(url + path, { method, headers: { 'x-key': 'nobody', ...headers } })
