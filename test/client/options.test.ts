// The options of the client: what is refused, and by which name.
import { MillraceError } from 'millrace'
import { type ClientOptions, createClient } from 'millrace/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const url = 'http://127.0.0.1:1'
const BAD: readonly (readonly [option: string, options: object])[] = [
  ['url', {}],
  ['url', { url, urls: [url] }],
  ['url', { url: 'localhost:8080' }],
  ['url', { url: 'ftp://127.0.0.1' }],
  ['url', { url: 'http://user:secret@127.0.0.1' }],
  ['url', { url: 'http://127.0.0.1/?a=b' }],
  ['url', { url: 'http://127.0.0.1/#a' }],
  ['url', { url: 8080 }],
  ['urls', { urls: [] }],
  ['urls', { urls: url }],
  ['urls[0]', { urls: ['nowhere'] }],
  ['urls[1]', { urls: [url, url] }],
  ['urls[0].name', { urls: [{ name: '', url }] }],
  ['urls[0].url', { urls: [{ name: 'a' }] }],
  ['urls[0]', { urls: [{ name: 'a', url, port: 1 }] }],
  ['limiter', { url, limiter: '' }],
  ['token', { url, token: '' }],
  ['token', { url, token: 'a b' }],
  ['token', { url, token: 5 }],
  ['tls', { url, tls: { ca: 'x' } }],
  ['tls', { url: 'https://127.0.0.1', tls: { cacert: 'x' } }],
  ['tls.key', { url: 'https://127.0.0.1', tls: { cert: 'x' } }],
  ['tls.cert', { url: 'https://127.0.0.1', tls: { key: 'x' } }],
  ['retryCharges', { url, retryCharges: 1 }],
  ['deadline', { url, deadline: 0 }],
  ['onOutage', { url, onOutage: 'never' }],
  ['nodes', { url, onOutage: 'local' }],
  ['nodes', { url, onOutage: 'local', nodes: 6, rules: [{ limit: 5, window: '1m' }] }],
  ['rules', { url, rules: [] }],
  ['rules[0].limit', { url, rules: [{ limit: 0, window: '1m' }] }],
  ['options', { url, prefix: 'api' }],
  ['options', { url, limit: 5, window: '1m' }],
  ['options', { url, timeoutMs: 5 }],
]

test('an option that is not possible is an error by its name', () => {
  for (const [option, options] of BAD) {
    try {
      void createClient(options as ClientOptions).close()
      assert.unreachable(JSON.stringify(options))
    } catch (error) {
      assert.instance(error, MillraceError)
      assert.is((error as MillraceError).option, option, JSON.stringify(options))
    }
  }
})

test('a name that others have is met by the right one', () => {
  for (const [name, meant] of [
    ['timeoutMs', 'deadline'],
    ['baseUrl', 'url'],
    ['endpoints', 'urls'],
    ['apiKey', 'token'],
  ] as const) {
    assert.throws(
      () => createClient({ url, [name]: 'x' } as ClientOptions),
      new RegExp(`did you mean ${meant}`),
    )
  }
})

test('a token is in no error', () => {
  assert.throws(
    () => createClient({ url, token: 'se cret' }),
    (error: Error) => !error.message.includes('cret'),
  )
})

test('the rules that are expected are those of the limiter until the service shows its own', async () => {
  const limiter = createClient({ url, limiter: 'api', rules: [{ limit: 7, window: '1m' }] })
  assert.is(limiter.rule.limit, 7)
  assert.is(limiter.rule.windowMs, 60_000)
  await limiter.close()
})

test.run()
