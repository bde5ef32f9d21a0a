// run: own, typescript, also-full
// `top`: the keys that are refused most, by bounded memory, with the bound of each error.
import { createHmac } from 'node:crypto'
import { createLimiter, group, manualClock, setEventOptions, type TopKey } from 'millrace'
import { createBackendLimiter, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { rateLimit } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { withServer } from '../fetch/support.js'
import { assertRaises } from '../limiter/support.js'
import { sized } from '../size.js'

const KEYS = sized({ quick: 200_000, full: 1_000_000 })
const MINUTE = { limit: 1, window: '1m', name: 'minute' } as const
const limiterOf = (options: object = {}) =>
  createLimiter({ ...MINUTE, clock: manualClock(1e6), maxKeys: 5_000, ...options })
/** Refuses a key, by a cost above the limit. */
const ABOVE = 2
const countsOf = (rows: readonly TopKey[]) => rows.map(({ key, count, error }) => [key, count, error])

test('the true count of each row is at most its count, and at least that without its error', () => {
  // More keys than counters, some of them far more often than others.
  const stream = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2_000, maxLength: 4_000 })
  const skews = fc.integer({ min: 1, max: 6 })
  fc.assert(
    fc.property(stream, skews, (numbers, skew) => {
      const limiter = limiterOf({ limit: 1, onFull: 'allow' })
      for (let i = 0; i < 3_000; i++) limiter.check(`${i}`)
      limiter.top({ by: 'refused' })
      const times = new Map<string, number>()
      for (const number of numbers) {
        const key = `${Math.floor(number ** skew * 3_000)}`
        if (!limiter.check(key).allowed) times.set(key, (times.get(key) ?? 0) + 1)
      }
      const rows = limiter.top({ by: 'refused', n: 1_024 })
      for (const { key, count, error } of rows) {
        const truly = times.get(key) ?? 0
        assert.ok(
          count - error <= truly && truly <= count,
          `${key}: ${count - error} <= ${truly} <= ${count}`,
        )
      }
      const least = rows.length < 1_024 ? 0 : rows.at(-1)!.count
      const shown = new Set(rows.map(({ key }) => key))
      for (const [key, truly] of times) assert.ok(shown.has(key) || truly <= least, `${key} is missing`)
      assert.equal(
        rows.map(({ count }) => count),
        rows.map(({ count }) => count).toSorted((a, b) => b - a),
      )
    }),
    { numRuns: 20 },
  )
})

test(`${KEYS} keys take no more memory than a thousand, and the one that comes often is found`, () => {
  const limiter = limiterOf()
  limiter.top({ by: 'refused' })
  for (let i = 0; i < KEYS; i++) {
    limiter.check(`other ${i}`, ABOVE)
    if (i % 100 === 0) limiter.check('often', ABOVE)
  }
  const rows = limiter.top({ by: 'refused', n: 1_024 })
  assert.is(rows.length, 1_024)
  const often = rows[0]!
  assert.is(often.key, 'often')
  assert.ok(often.count - often.error <= KEYS / 100 && KEYS / 100 <= often.count, JSON.stringify(often))
  assert.ok(often.error <= (1.01 * KEYS) / 1_024)
})

test('keys of 64 KB are counted each for itself, and shown cut', () => {
  const limiter = limiterOf()
  limiter.top({ by: 'refused' })
  const long = 'x'.repeat(65_535)
  for (const key of [`${long}a`, `${long}b`, `${long}a`]) limiter.check(key, ABOVE)
  const cut = `${'x'.repeat(256)}…(65536)`
  assert.equal(countsOf(limiter.top({ by: 'refused' })), [
    [cut, 2, 0],
    [cut, 1, 0],
  ])
})

test('nothing is counted before the first call, nor after the limiter has closed', async () => {
  const limiter = limiterOf()
  limiter.check('before', ABOVE)
  assert.equal(limiter.top({ by: 'refused' }), [])
  limiter.check('key', ABOVE)
  limiter.check(limiter.handle('handle'), ABOVE)
  limiter.peek('peeked', ABOVE)
  assert.equal(countsOf(limiter.top({ by: 'refused' })), [['key', 1, 0]])
  await limiter.close()
  assert.throws(() => limiter.top({ by: 'refused' }))
})

const values: Values = { read: async (keys) => keys.map(() => undefined), swap: async () => true }
const rules = {
  rules: [MINUTE, { ...MINUTE, name: 'hour' }],
  limit: undefined,
  window: undefined,
  name: undefined,
}
const PLACES = {
  'a limiter': () => limiterOf(),
  'a limiter with units': () => limiterOf({ unit: 1 }),
  'a limiter of several rules': () => createLimiter({ rules: rules.rules, maxKeys: 100 }),
  'a limiter with a configuration store': () =>
    createLimiter({ config: memoryConfig(), default: MINUTE, maxKeys: 100 }),
  'a pool': () => createLimiter({ ...MINUTE, engine: 'pool', pool: { maxThreads: 1 } }),
  'a pool with a configuration store': () =>
    createLimiter({ config: memoryConfig(), default: MINUTE, engine: 'pool', pool: { maxThreads: 1 } }),
  'a backend': () => createBackendLimiter({ ...MINUTE, values, source: 'own', prefix: 'top' }),
} as const

for (const [name, make] of Object.entries(PLACES)) {
  test(`${name} names the keys that it refuses most`, async () => {
    const limiter = make()
    await limiter.ready()
    await limiter.top({ by: 'refused' })
    for (const key of ['a', 'b', 'a']) await limiter.check(key, ABOVE)
    await limiter.checkMany(['a', 'b'], ABOVE)
    assert.equal(countsOf(await limiter.top({ by: 'refused' })), [
      ['a', 3, 0],
      ['b', 2, 0],
    ])
    assert.equal(countsOf(await limiter.top({ by: 'refused', n: 1 })), [['a', 3, 0]])
    await limiter.close()
  })
}

test('a group counts the keys of the member that refuses', async () => {
  const members = () => ({ account: limiterOf(), address: limiterOf({ limit: 5 }) })
  const pool = () => createLimiter({ ...MINUTE, engine: 'pool', pool: { maxThreads: 1 } })
  const pools = { account: pool(), address: pool() }
  for (const logins of [group(members()), group(pools)]) {
    await logins.top({ by: 'refused' })
    for (let i = 0; i < 3; i++) await logins.check({ account: 'alice', address: '::1' })
    assert.equal((await logins.top({ by: 'refused' }))[0]!.key, 'alice')
  }
  await Promise.all([pools.account.close(), pools.address.close()])
})

test('a middleware counts the keys of what it answers by 429 and 403, and not what it lets pass', async () => {
  const made = { refusing: {}, denying: { deny: ['127.0.0.0/8'] }, shadow: { shadow: true } }
  for (const [name, options] of Object.entries(made)) {
    const limited = rateLimit({ ...MINUTE, ...options })
    await limited.top({ by: 'refused' })
    await withServer(
      (request, response) => limited(request, response, () => response.end()),
      async (url) => {
        for (let i = 0; i < 3; i++) await (await fetch(url)).text()
      },
    )
    const expected = { refusing: [['127.0.0.1', 2, 0]], denying: [['127.0.0.1', 3, 0]], shadow: [] }[name]
    assert.equal(countsOf(await limited.top({ by: 'refused' })), expected, name)
    await limited.close()
  }
})

test('rows show keys as events do', () => {
  const secret = 'a secret of the caller'
  const limiter = limiterOf()
  limiter.top({ by: 'refused' })
  limiter.check('\u001b[31m\u202e', ABOVE)
  setEventOptions({ keyInEvents: 'hash', secret })
  limiter.check('key', ABOVE)
  setEventOptions({})
  assert.equal(
    limiter.top({ by: 'refused' }).map(({ key }) => key),
    ['\\u{1b}[31m\\u{202e}', createHmac('sha256', secret).update('key').digest('base64url')],
  )
})

test('wrong options are refused', () => {
  const limiter = limiterOf()
  const wrong = [
    [undefined, 'options'],
    [{}, 'by'],
    [{ by: 'admitted' }, 'by'],
    [{ by: 'refused', n: 0 }, 'n'],
    [{ by: 'refused', n: 1_025 }, 'n'],
    [{ by: 'refused', top: 3 }, 'options'],
  ] as const
  for (const [options, option] of wrong)
    assertRaises(() => limiter.top(options as never), 'ERR_MILLRACE_INVALID_OPTION', option)
})

test.run()
