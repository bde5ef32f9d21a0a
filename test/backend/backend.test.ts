// Limiters on a backend of one's own: the example in an LMDB file, by several processes and clocks.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AsyncLimiter } from 'millrace'
import {
  type BackendLimiterOptions,
  createBackendLimiter,
  MillraceError,
  type Values,
} from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText } from '../package/root.js'
import { lmdbValues, type OpenValues, temporaryFolder } from './conformance-place.js'

const folder = temporaryFolder()
const path = join(folder, 'counts')
let values: OpenValues
let prefixes = 0
test.before(async () => {
  values = await lmdbValues(path)
})
test.after(async () => {
  for (const limiter of all) await limiter.close()
  await values.close()
})

const all: AsyncLimiter[] = []
const kept = <T extends AsyncLimiter>(limiter: T): T => {
  all.push(limiter)
  return limiter
}
const limiterOf = (options: Partial<BackendLimiterOptions> = {}) =>
  kept(
    createBackendLimiter({
      values,
      source: 'lmdb',
      prefix: `test ${++prefixes}`,
      limit: 100,
      window: '1h',
      deadline: '1m',
      ...options,
    } as BackendLimiterOptions),
  )

test('the page shows the example as it is', () => {
  const [, shown] = /^```js\n([\s\S]*?)^```/m.exec(readText('docs/how-to/backends.md')) ?? []
  assert.is(shown, readText('examples/lmdb-values.mjs'))
})

test('an answer of another form is an error by name, also of a store that throws', async () => {
  const sound: Values = { read: async (keys) => keys.map(() => undefined), swap: async () => true }
  const answers: Record<string, readonly object[]> = {
    'values.read': [
      { read: async () => undefined },
      { read: async () => [] },
      { read: async () => ['value'] },
      { read: () => [1] },
    ],
    'values.swap': [
      { swap: async () => ({ rowCount: 0 }) },
      { swap: async () => undefined },
      { swap: () => 1 },
    ],
    'values.now': [Number.NaN, undefined, 'x', 0, Number.POSITIVE_INFINITY].map((now) => ({
      now: async () => now,
    })),
  }
  for (const [option, wrong] of Object.entries(answers))
    for (const answer of wrong)
      for (const onOutage of ['open', 'closed'] as const) {
        const limiter = limiterOf({ values: { ...sound, ...answer } as Values, onOutage })
        const error = await limiter.check('key').catch((reason: unknown) => reason)
        assert.ok(
          error instanceof MillraceError && error.message.startsWith(`${option}: expected`),
          `${error}`,
        )
      }
  const read: Values['read'] = async (keys) => keys.map(() => null as never)
  const none = limiterOf({
    values: { ...sound, read },
  })
  assert.ok((await none.check('key')).allowed, 'null: there is no value')
  const thrower = () => {
    throw new Error('not now')
  }
  const thrown = limiterOf({
    values: { read: thrower, swap: thrower, now: () => Promise.reject(new Error('nor this')) },
    onOutage: 'closed',
  })
  const { allowed, source } = await thrown.check('key')
  assert.equal([allowed, source], [false, 'outage'])
})

test('a full window before leaves room for the charges of a sliding counter', async () => {
  let nowMs = 60_000_000
  const limiter = limiterOf({
    values: { ...values, now: async () => nowMs },
    algorithm: 'sliding-counter',
    limit: 4_000_000,
    window: '1m',
  })
  for (let i = 0; i < 5; i++) await limiter.penalize('key', 4_000_000)
  nowMs += 110_000
  let admitted = 0
  for (let i = 0; i < 20; i++) if ((await limiter.check('key', 500_000)).allowed) admitted++
  assert.ok(admitted <= 8, `${admitted} of 8 at most`)
})

test('four processes at once never admit more than the limit', async () => {
  const member = fileURLToPath(new URL('member.js', import.meta.url))
  const children = Array.from({ length: 4 }, () => fork(member, [path]))
  await Promise.all(children.map((child) => once(child, 'message'))) // each is ready
  const answers = children.map((child) => once(child, 'message') as Promise<[number]>)
  for (const child of children) child.send('begin')
  const admitted = (await Promise.all(answers)).reduce((sum, [own]) => sum + own, 0)
  assert.is(admitted, 100, 'of 400')
})

test('a store that never answers is an outage at the deadline, and its late swap counts once', async () => {
  let release: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const swaps: Promise<boolean>[] = []
  const slow: Values = {
    read: (keys) => values.read(keys),
    swap: (...args) => {
      const swap = held.then(() => values.swap(...args))
      swaps.push(swap)
      return swap
    },
  }
  const own = { prefix: 'late', deadline: '20ms' } as const
  const limiter = limiterOf({ ...own, values: slow })
  const { allowed, source } = await limiter.check('key')
  assert.equal([allowed, source], [false, 'outage'])
  const penalty = await limiter.penalize('key', 1).catch((reason: unknown) => reason)
  assert.ok((penalty as MillraceError).mayBeCharged)
  release()
  assert.equal(await Promise.all(swaps), [true, false], 'both had read the same value')
  assert.is(await limiterOf({ ...own, deadline: '1m' }).usage('key'), 1)
})

test('an error of the store is the reason of the outage, and one of Millrace goes to the caller', async () => {
  const broken = (error: Error): Values => ({ ...values, read: () => Promise.reject(error) })
  const limiter = limiterOf({ values: broken(new Error('the disk is full')) })
  assert.is((await limiter.check('key')).source, 'outage')
  assert.is((await limiter.stats()).lastFailure, 'the disk is full')
  // A code and a source of a backend's own need no cast.
  const own = new MillraceError('ERR_MY_STORE', 'key', 'key', 'a key of this tenant')
  const error = await limiterOf({ values: broken(own) })
    .check('key')
    .catch((reason: unknown) => reason)
  assert.is(error, own)
})

test('a value that is no count is an error by name', async () => {
  const limiter = limiterOf({ prefix: 'foreign' })
  await values.swap('mr:1:foreign:{key}:', undefined, Buffer.from('hello'), 1_000)
  const error = await limiter.check('key').catch((reason: unknown) => reason)
  assert.is((error as MillraceError).code, 'ERR_MILLRACE_STORED_VALUE')
})

test('a store with a clock decides by it, and no clock of a process', async () => {
  let nowMs = 1_800_000_000_000
  const timed: Values = { ...values, now: async () => nowMs }
  const limiter = limiterOf({ values: timed, limit: 1, window: '1s', algorithm: 'sliding-log' })
  assert.ok((await limiter.check('key')).allowed)
  nowMs += 999
  assert.is((await limiter.check('key')).retryAfterMs, 1)
  nowMs += 1
  assert.ok((await limiter.check('key')).allowed)
})

test('the store is asked to keep a value until its charges have left, and clocks that differ', async () => {
  const kept: number[] = []
  const noting: Values = {
    ...values,
    swap: (key, before, after, ttlMs) => {
      kept.push(ttlMs)
      return values.swap(key, before, after, ttlMs)
    },
  }
  const testTime = () => 1_800_000_000_000
  const limiter = limiterOf({ values: noting, window: '1m', algorithm: 'sliding-log', testTime })
  await limiter.check('key')
  await limiter.block('key', Number.POSITIVE_INFINITY)
  await limiter.unblock('key')
  // A window, the difference of the clocks twice (it counts longer, and another's clock may be ahead), and a millisecond.
  assert.equal(kept, [60_201, Number.POSITIVE_INFINITY, 180_101])
})

test('rules of different algorithms are charged all or none', async () => {
  const limiter = kept(
    createBackendLimiter({
      values,
      source: 'lmdb',
      prefix: 'several',
      deadline: '1m',
      rules: [
        { name: 'log', limit: 5, window: '1m', algorithm: 'sliding-log' },
        { name: 'bucket', limit: 3, window: '1h', algorithm: 'token-bucket' },
      ],
    }),
  )
  assert.equal(
    await Promise.all([1, 1, 2, 1].map(async (cost) => (await limiter.check('key', cost)).allowed)),
    [true, true, false, true],
  )
  assert.is(await limiter.usage('key', undefined, { rule: 'log' }), 3)
})

test('a configuration store gives keys their rules', async () => {
  const config = memoryConfig()
  await config.put('big', { limit: 9, window: '1m' })
  const limiter = createBackendLimiter({
    values,
    source: 'lmdb',
    prefix: 'config',
    deadline: '1m',
    config,
    default: { limit: 2, window: '1m' },
  })
  assert.equal([(await limiter.check('big')).limit, (await limiter.check('small')).limit], [9, 2])
  await limiter.close()
})

test('wrong options are refused by name', () => {
  for (const [options, option] of [
    [{ values: {} }, 'values'],
    [{ values: { read() {}, swap() {}, now: 1 } }, 'values'],
    [{ source: 'redis' }, 'source'],
    [{ source: 'My Store' }, 'source'],
    [{ prefix: '' }, 'prefix'],
    [{ clockSkew: '2m' }, 'clockSkew'],
    [{ edge: 'smooth' }, 'edge'],
    [{ client: {} }, 'options'],
  ] as const) {
    try {
      limiterOf(options as object)
      assert.unreachable(option)
    } catch (error) {
      assert.is((error as MillraceError).option, option)
    }
  }
})

test.run()
