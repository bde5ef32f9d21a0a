// What our store for express-rate-limit does unlike the original, and with the options of the middleware.
import { mock } from 'node:test'
import { type Options, MemoryStore as OriginalStore } from 'express-rate-limit'
import { MillraceStore } from 'millrace/compat/express-rate-limit'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type FullStore, shown, WINDOW_MS } from './express-stores.js'
import { withFakeDate } from './fake-date.js'

test('a sliding window admits at most the limit in any window', () =>
  withFakeDate(async (date) => {
    const admittedBy = async (store: FullStore): Promise<number> => {
      store.init({ windowMs: WINDOW_MS, limit: 10 } as Options)
      let admitted = 0
      for (const afterMs of [0, WINDOW_MS - 10, 20]) {
        date.tick(afterMs)
        const hits = afterMs === 0 ? 1 : 9
        for (let i = 0; i < hits; i++) if ((await store.increment('key')).totalHits <= 10) admitted++
      }
      await store.shutdown()
      return admitted
    }
    // 9 hits before the turn of the window and 9 after it, in 20 ms
    assert.is(await admittedBy(new OriginalStore()), 19)
    assert.is(await admittedBy(new MillraceStore({ algorithm: 'fixed-window' })), 19)
    assert.is(await admittedBy(new MillraceStore()), 11)
  }))

test('with skipSuccessfulRequests, a decrement takes an admitted hit first', () =>
  withFakeDate(async (date) => {
    const store = new MillraceStore()
    store.init({ windowMs: WINDOW_MS, limit: 2, skipSuccessfulRequests: true })
    await store.increment('key')
    date.tick(1000)
    for (let i = 0; i < 3; i++) await store.increment('key') // one is admitted
    date.tick(WINDOW_MS - 1000)
    assert.is((await store.increment('key')).totalHits, 2)
    await store.decrement('key')
    assert.is((await store.increment('key')).totalHits, 2)
  }))

test('a window may be longer than a timer', () =>
  withFakeDate(async (date) => {
    for (const days of [25, 365, 36_500]) {
      const store = new MillraceStore({ maxKeys: 16 })
      store.init({ windowMs: days * 86_400_000, limit: 3 })
      assert.is((await store.increment('key')).totalHits, 1)
      date.tick(days * 86_399_000)
      assert.is((await store.increment('key')).totalHits, 2)
      date.tick(days * 1000 + days * 86_400) // a log of a long window has coarser dates, by a ten-thousandth at most
      assert.is((await store.increment('key')).totalHits, 2)
      await store.shutdown()
    }
  }))

test('with skipFailedRequests, a decrement takes a refused hit first', async () => {
  for (const skipSuccessfulRequests of [false, true]) {
    const store = new MillraceStore()
    store.init({ windowMs: WINDOW_MS, limit: 2, skipFailedRequests: true, skipSuccessfulRequests })
    for (let i = 0; i < 3; i++) await store.increment('key')
    await store.decrement('key')
    assert.is((await store.get('key'))?.totalHits, 2)
    assert.is((await store.increment('key')).totalHits, 3)
    await store.shutdown()
  }
})

test('fake timers of node:test work, also after the store was made', async () => {
  for (const store of [new MillraceStore(), new MillraceStore({ algorithm: 'fixed-window' })]) {
    store.init({ windowMs: WINDOW_MS, limit: 2 })
    mock.timers.enable({ apis: ['Date'] }) // begins at 1970
    try {
      for (const hits of [1, 2, 3]) assert.equal(await shown(store.increment('key')), [hits, WINDOW_MS])
      mock.timers.tick(WINDOW_MS)
      for (const hits of [1, 2, 3]) assert.equal(await shown(store.increment('key')), [hits, WINDOW_MS])
    } finally {
      mock.timers.reset()
    }
    assert.is((await store.increment('key')).totalHits, 1) // in 2026 or later, more than a window after 1970
    await store.shutdown()
  }
})

test('without a number as limit, all hits of the last window count, refused or not', () =>
  withFakeDate(async (date) => {
    const store = new MillraceStore()
    store.init({ windowMs: WINDOW_MS, limit: () => 10 })
    let most = 0
    for (let second = 0; second < 200; second++) {
      date.tick(1000)
      most = Math.max(most, (await store.increment('key')).totalHits)
    }
    assert.is(most, 61) // a minute, and the bucket that lies partly in it
    assert.is((await store.increment('key')).totalHits, 62)
    await store.shutdown()
  }))

test('with a number as limit, refused hits do not hold off the next admission', () =>
  withFakeDate(async (date) => {
    const store = new MillraceStore()
    store.init({ windowMs: WINDOW_MS, limit: 10 })
    let admitted = 0
    for (let second = 0; second < 600; second++) {
      if ((await store.increment('key')).totalHits <= 10) admitted++
      date.tick(1000)
    }
    assert.is(admitted, 100)
    await store.shutdown()
  }))

test('the reset time of a refusal is that of the next admission', () =>
  withFakeDate(async (date) => {
    const store = new MillraceStore()
    store.init({ windowMs: WINDOW_MS, limit: 2 })
    for (const afterMs of [0, 20_000, 45_000]) {
      date.tick(afterMs)
      await store.increment('key') // at 0, 20 and 65 s: the first has left by then
    }
    assert.equal(await shown(store.increment('key')), [3, 15_000])
    assert.equal(await shown(store.get('key')), [3, 15_000])
    date.tick(15_000)
    assert.is((await store.increment('key')).totalHits, 2)
    await store.shutdown()
  }))

test('init with another window counts anew', async () => {
  const store = new MillraceStore()
  store.init({ windowMs: WINDOW_MS, limit: 2 })
  await store.increment('key')
  store.init({ windowMs: 2 * WINDOW_MS, limit: 2 })
  assert.is(store.windowMs, 2 * WINDOW_MS)
  assert.is((await store.increment('key')).totalHits, 1)
  await store.shutdown()
})

test('a windowMs that is no number is an error', () => {
  for (const windowMs of [Number.NaN, '60000', undefined]) {
    assert.throws(
      () => new MillraceStore().init({ windowMs } as never),
      (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_DURATION',
    )
  }
})

test('after an init that throws, the store limits by the limit and the order that it was given', () =>
  withFakeDate(async (date) => {
    const failures = [
      { options: undefined, windowMs: Number.NaN, code: 'ERR_MILLRACE_INVALID_DURATION' },
      { options: undefined, windowMs: '60000', code: 'ERR_MILLRACE_INVALID_DURATION' },
      { options: { maxWindows: 1 }, windowMs: 2 * WINDOW_MS, code: 'ERR_MILLRACE_INVALID_OPTION' },
    ]
    for (const { options, windowMs, code } of failures) {
      const store = new MillraceStore(options)
      if (options !== undefined) store.init({ windowMs: WINDOW_MS, limit: 50 })
      assert.throws(
        () => store.init({ windowMs, limit: 2, skipSuccessfulRequests: true } as never),
        (error: { code?: string }) => error.code === code,
      )
      assert.is(store.windowMs, WINDOW_MS)
      await store.increment('key')
      date.tick(WINDOW_MS / 2)
      // Two are admitted. The others are refused by a limit of 2, and held against the key by any other.
      for (let hits = 2; hits <= 5; hits++) assert.is((await store.increment('key')).totalHits, hits)
      date.tick(WINDOW_MS / 2)
      assert.is((await store.increment('key')).totalHits, 2)
      await store.increment('key')
      await store.decrement('key') // takes an admitted hit: the order that init was given
      assert.is((await store.increment('key')).totalHits, 2)
      await store.shutdown()
    }
  }))

test('a key that is an object rejects', async () => {
  const rejected = await new MillraceStore().increment({} as string).then(
    () => undefined,
    (error: { code: string }) => error.code,
  )
  assert.is(rejected, 'ERR_MILLRACE_INVALID_KEY')
})

test.run()
