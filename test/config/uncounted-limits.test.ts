// Policies with a limit of 0, or without a limit: of each algorithm, inline and on a pool, by objects and by texts.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, manualClock, type Policy } from 'millrace'
import { fileConfig } from 'millrace/config/file'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const ALGORITHMS = [
  {},
  { algorithm: 'sliding-log' },
  { algorithm: 'sliding-counter' },
  { algorithm: 'fixed-window' },
  { algorithm: 'token-bucket' },
  { algorithm: 'token-bucket', burst: 7 },
  { unit: '1KB' },
] as const
const window = '1m'
const DEFAULT = { limit: 3, window } as const

for (const own of ALGORITHMS) {
  for (const engine of ['inline', 'pool'] as const) {
    test(`${engine}, ${JSON.stringify(own)}: 0 refuses, Infinity passes, and a count goes on after them`, async () => {
      const store = memoryConfig({})
      const options = {
        config: store,
        default: DEFAULT,
        maxKeys: 20,
        clock: manualClock(1e6),
        engine,
      } as const
      const limiter = createLimiter<'inline' | 'pool'>(options)
      const limit = 'unit' in own ? ('3KB' as const) : 3
      const cost = 'unit' in own ? 1_000 : 1
      const decide = (units: number) =>
        'checkAsync' in limiter ? limiter.checkAsync('a', units) : limiter.check('a', units)
      const admitted = async () => {
        let count = 0
        for (let i = 0; i < 9; i++) if ((await decide(cost)).allowed) count++
        return count
      }
      const put = async (policy: object) => store.put('a', policy as Policy)
      const counted = { ...own, limit, window }
      await put(counted)
      assert.is(await admitted(), 'burst' in own ? 7 : 3)
      for (const [other, most] of [
        ['unlimited', 9],
        [0, 0],
        [Number.POSITIVE_INFINITY, 9],
      ] as const) {
        await put({ ...own, limit: other, window })
        assert.is(await admitted(), most)
        const { limit: shown } = await decide(cost)
        assert.is(shown, other === 0 ? 0 : Number.POSITIVE_INFINITY)
      }
      if (!('burst' in own)) await put(counted)
      if (!('burst' in own)) assert.is(await admitted(), 0)
      await limiter.close()
    })
  }
}

test('of several rules, one without a limit is not counted, and one with a limit of 0 refuses', async () => {
  const store = memoryConfig({})
  const limiter = createLimiter({ config: store, default: DEFAULT, maxKeys: 20, clock: manualClock(1e6) })
  const put = async (burst: 0 | 'unlimited', hour: number) =>
    store.put('a', {
      rules: [
        { name: 'burst', limit: burst, window: '1s' },
        { name: 'hour', limit: hour, window: '1h' },
      ],
    })
  await put('unlimited', 4)
  assert.equal(
    [1, 1, 1, 1, 1].map((cost) => limiter.check('a', cost).allowed),
    [true, true, true, true, false],
  )
  await put(0, 100)
  assert.equal([limiter.check('a').rule, limiter.usage('a', undefined, { rule: 'hour' })], ['burst', 4])
})

test('a file of JSON or YAML may have such limits', () => {
  const place = mkdtempSync(join(tmpdir(), 'millrace-'))
  const texts = {
    'a.json': '{ "all": { "limit": "unlimited", "window": "1m" }, "none": { "limit": 0, "window": "1m" } }',
    'a.yaml': 'all: { limit: unlimited, window: 1m }\nnone: { limit: 0, window: 1m }\n',
  }
  for (const [name, text] of Object.entries(texts)) {
    writeFileSync(join(place, name), text)
    const store = fileConfig({ path: join(place, name) })
    const limiter = createLimiter({ config: store, default: DEFAULT, maxKeys: 20, clock: manualClock(1e6) })
    for (const [key, allowed] of Object.entries({ all: true, none: false }))
      assert.equal(
        [1, 2, 3, 4].map(() => limiter.check(key).allowed),
        Array(4).fill(allowed),
      )
    limiter.close()
    store.close()
  }
  rmSync(place, { recursive: true })
})

test('a default has a limit that counts', () => {
  for (const limit of [0, Number.POSITIVE_INFINITY, 'unlimited'] as const) {
    const make = () => createLimiter({ config: memoryConfig({}), default: { limit, window } })
    assert.throws(make, /default\.limit: expected an integer from 1/)
  }
})

test.run()
