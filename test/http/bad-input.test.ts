// run: also-full, also-long
/** Whatever a request holds, its client gets an answer, and nothing of the request is in its headers. */

import { manualClock } from 'millrace'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { type AnyOptions, type FrameworkDriver, http1Client, type Served } from './driver.js'
import { allDrivers } from './drivers.js'
import { type RawResponse, sendRaw } from './raw.js'

const RUNS = sized({ quick: 40, full: 2_000 })
/** HTTP/2 of Node.js accepts no more than 65,536 characters with the name. */
const HEADER_CHARACTERS = 65_000

/** Values of X-Forwarded-For that name no client behind one proxy: the proxy's own address is the key. */
const NAMELESS = [
  'x'.repeat(HEADER_CHARACTERS),
  '1'.repeat(HEADER_CHARACTERS),
  `192.0.2.1, ${'['.repeat(60_000)}`,
  `192.0.2.1,${' '.repeat(1_000)}"`,
  `192.0.2.1, ${':'.repeat(45)}`,
  '192.0.2.1, 256.0.0.1',
  '192.0.2.1, unknown',
  '192.0.2.1, ::1%',
  '192.0.2.1, 1.2.3.4:99999999',
  '\xff\xfe',
]
/** Values whose last entry is 192.0.2.7. */
const NAMING = [
  `${'192.0.2.1, '.repeat(5_000)}192.0.2.7`,
  `${','.repeat(HEADER_CHARACTERS)}192.0.2.7`,
  `${'"\\'.repeat(10_000)}, 192.0.2.7`,
  'unknown, [::ffff:192.0.2.7]:80',
]

const ACCEPTS = [
  ',;=",'.repeat(200),
  `${'text/html;q=0.5,'.repeat(60)}*/*`,
  'text/html;q=NaN, text/plain;q=1e999, */*;q=-1',
  '"'.repeat(1_000),
  '*'.repeat(HEADER_CHARACTERS),
  'text/html;q=1;q=2;q=\xff',
  '',
]

const METHODS = ['PROPFIND', 'PURGE', 'M-SEARCH', 'OPTIONS', 'TRACE', 'DELETE', 'SUBSCRIBE', 'QUERY', 'get']
const TARGETS = [
  '*',
  '//',
  '///',
  '/..',
  '/../../etc/passwd',
  '/%2e%2e/%2f/',
  '/%00',
  '/%',
  '/%ff%fe',
  '/;a=b;c',
  '/\xe2\x82\xac',
  `/?${'%'.repeat(1_000)}`,
  `/${'a/'.repeat(20_000)}`,
  `/${'%61'.repeat(20_000)}`,
  'http://other/',
  'http://[::1',
  'http://a:b/',
  'HTTP://user:password@other/?x',
  'other:80',
]

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const key = () => 'all'
  const base = (): AnyOptions => ({ limit: 2, window: '1m', clock: manualClock(1e9), key })
  const errors: unknown[] = []
  const onError = (error: unknown) => {
    errors.push(error)
    return 'fail' as const
  }

  const serving = async (options: AnyOptions, use: (served: Served) => Promise<void>) => {
    const served = await driver.serve({ onError, ...options })
    try {
      await use(served)
    } finally {
      await served.close()
    }
    assert.equal(errors, [])
  }
  const get = (url: string, headers: Record<string, string> = {}) =>
    client.fetch(url, { method: 'GET', headers })

  // Nest makes its server itself, which accepts no such headers.
  const isServerOurs = driver.isBehindRouter === undefined

  if (driver.hasNoSocket === undefined && isServerOurs) {
    test('long and garbled X-Forwarded-For: the key is the last address, or the proxy', async () => {
      for (const trustProxy of [1, ['loopback'], (_: string, hop: number) => hop === 0]) {
        const options = { limit: 1, window: '1m', clock: manualClock(1e9), trustProxy } as AnyOptions
        const statusOf = async (url: string, forwarded: string) =>
          (await get(url, { 'x-forwarded-for': forwarded })).status
        await serving(options, async ({ url }) => {
          for (const [i, value] of NAMELESS.entries()) {
            assert.is(await statusOf(url, value), i === 0 ? 200 : 429, value.slice(0, 40))
          }
          for (const [i, value] of NAMING.entries()) {
            assert.is(await statusOf(url, value), i === 0 ? 200 : 429, value.slice(0, 40))
          }
        })
      }
    })
  }

  test('headers of 64 KB and garbage in Accept: the refusal is complete', async () =>
    serving({ ...base(), limit: 1, ignoreUserAgents: [/^none$/] }, async ({ url }) => {
      await get(`${url}/`)
      for (const accept of isServerOurs ? ACCEPTS : ACCEPTS.map((value) => value.slice(0, 1_000))) {
        const response = await get(`${url}/`, { accept, 'user-agent': accept })
        assert.is(response.status, 429)
        assert.match(
          response.headers.get('content-type')!,
          /^(application\/problem\+json|text\/(html|plain))/,
        )
        assert.is(response.headers.get('retry-after'), '61')
        assert.ok((await response.text()).length > 0)
      }
    }))

  test('a request to upgrade the connection is limited', async () => {
    if (driver.client !== undefined) return // HTTP/2 has no such header
    await serving({ ...base(), limit: 1 }, async ({ url }) => {
      const upgrade = () =>
        sendRaw(url, ['GET / HTTP/1.1', 'Host: host', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'])
      assert.is((await upgrade()).status, 200)
      assert.is((await upgrade()).status, 429)
    })
  })

  test('a key of any length is limited: one that is too long, by the address', async () => {
    let own = ''
    const byOwn = () => own
    await serving(
      { ...base(), limit: 1, key: byOwn, ban: { after: 5, for: '1h' } },
      async ({ url, reset }) => {
        for (const [length, status] of [
          [65_536, 200],
          [65_537, 200],
          [1_000_000, 429],
          [65_535, 200],
        ] as const) {
          own = 'k'.repeat(length)
          assert.is((await get(`${url}/`)).status, status, `${length} characters`)
        }
        own = 'k'.repeat(100_000)
        await reset(own) // no request has this key
        assert.is((await get(`${url}/`)).status, 429)
        own = '\ud83d\ude00'.repeat(50_000)
        assert.is((await get(`${url}/`)).status, 429)
      },
    )
  })

  if (driver.client === undefined) {
    test('odd methods and targets are answered', async () =>
      serving({ ...base(), routes: { 'POST /login': { limit: 1, window: '1m' } } }, async ({ url }) => {
        for (const method of METHODS) assertWhole(await sendRaw(url, [`${method} / HTTP/1.1`, 'Host: host']))
        for (const target of TARGETS) {
          assertWhole(await sendRaw(url, [`GET ${target} HTTP/1.1`, 'Host: host']), target)
          assertWhole(await sendRaw(url, [`GET ${target} HTTP/1.0`]), target)
        }
        errors.length = 0 // a target that the framework can't read either
      }))

    test('nothing of a request is in the headers of its refusal', async () =>
      serving(refusing(driver), async ({ url }) => {
        const text = fc.string({
          unit: fc.constantFrom(...'aZ09 \t",;=:%<>\\/\r\n\x00\x7f\xe9\xff'),
          maxLength: 30,
        })
        const property = fc.asyncProperty(text, text, text, async (target, name, value) => {
          const response = await sendRaw(url, [
            `GET /CANARY${target} HTTP/1.1`,
            'Host: host',
            `X-CANARY${name}: ${value}`,
            ...['X-Forwarded-For', 'Accept', 'Origin', 'User-Agent', 'X-Key'].map(
              (each) => `${each}: CANARY${value}`,
            ),
          ])
          assertWhole(response)
          for (const [header, held] of response.headers) {
            assert.not.match(`${header}: ${held}`, /canary/i)
            assert.match(held, FORMS[header] ?? /^[ -~]*$/, header)
          }
        })
        await fc.assert(property, { numRuns: RUNS })
      }))
  }
  test.run()
}

/** Refuses with all headers, by keys that the request chooses. */
const refusing = (driver: FrameworkDriver): AnyOptions => ({
  rules: [
    { name: 'burst', limit: 1, window: '1s' },
    { name: 'hourly', limit: 1, window: '1h' },
  ],
  key: (request: unknown) => `key ${driver.header(request, 'x-key') ?? ''}`,
  cost: () => 2,
  exposeHeaders: true,
})

const FORMS: Readonly<Record<string, RegExp>> = {
  ratelimit: /^("\w+";r=\d+(;t=\d+)?(, )?){2}$/,
  'ratelimit-policy': /^("\w+";q=1;w=\d+(, )?){2}$/,
  'retry-after': /^\d+$/,
  'access-control-expose-headers': /^RateLimit, RateLimit-Policy, Retry-After$/,
}

/** A server may close the connection of what is no HTTP, but not leave it without an answer. */
function assertWhole({ status, headers }: RawResponse, of = ''): void {
  assert.ok(status >= 200 && status < 600, `${status} for ${of.slice(0, 40)}`)
  assert.ok(headers.length > 0, of)
}
