// run: also-long
// The store of express-rate-limit and ours, side by side. What only ours does is in express-rate-limit-own.test.ts.

import type { Store } from 'express-rate-limit'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import {
  type FullStore,
  KINDS,
  likeOriginal,
  optionsOf,
  original,
  shown,
  WINDOW_MS,
} from './express-stores.js'
import { withFakeDate } from './fake-date.js'

for (const kind of KINDS) {
  const each = suite(`express-rate-limit: ${kind.name}`)

  const initialized = (): FullStore => {
    const store = kind.create()
    store.init(optionsOf(kind))
    return store
  }

  const stores: FullStore[] = []
  const create = (): FullStore => {
    const store = initialized()
    stores.push(store)
    return store
  }
  each.after.each(async () => {
    await Promise.all(stores.splice(0).map((store) => store.shutdown()))
  })

  each('an unknown key is undefined', async () => {
    assert.is(await create().get('unknown'), undefined)
  })

  each('the first hit is 1, and later ones go on rising above the limit', () =>
    withFakeDate(async (date) => {
      const store = create()
      date.tick(WINDOW_MS / 100)
      for (let hits = 1; hits <= 10; hits++) {
        assert.equal(await shown(store.increment('key')), [hits, WINDOW_MS])
        assert.equal(await shown(store.get('key')), [hits, WINDOW_MS])
      }
    }),
  )

  each('the reset time is a Date, and stays in the window', () =>
    withFakeDate(async (date) => {
      const store = create()
      const first = await store.increment('key')
      assert.instance(first.resetTime, Date)
      date.tick(WINDOW_MS / 4)
      const second = await store.increment('key')
      assert.is(second.totalHits, 2)
      assert.is(second.resetTime!.getTime(), first.resetTime!.getTime())
    }),
  )

  each('hits count until the window has passed, and no longer', () =>
    withFakeDate(async (date) => {
      const store = create()
      for (let i = 0; i < 5; i++) await store.increment('key')
      date.tick(WINDOW_MS - 1)
      assert.is((await store.get('key'))?.totalHits, 5)
      date.tick(1)
      assert.is(await store.get('key'), undefined)
      assert.equal(await shown(store.increment('key')), [1, WINDOW_MS])
      assert.equal(await shown(store.increment('key')), [2, WINDOW_MS])
    }),
  )

  // Without a limit a hit counts like any other of the last window.
  if (!kind.name.includes('without a limit'))
    each('hits that were refused in the window before do not count in the next', () =>
      withFakeDate(async (date) => {
        const store = create()
        for (let i = 0; i < 3; i++) await store.increment('key')
        date.tick(WINDOW_MS / 2)
        assert.is((await store.increment('key')).totalHits, 4)
        date.tick(WINDOW_MS / 2)
        for (const hits of [1, 2, 3, 4, 5]) assert.is((await store.increment('key')).totalHits, hits)
      }),
    )

  each('a decrement takes one hit back, above the limit too', async () => {
    const store = create()
    for (let i = 0; i < 6; i++) await store.increment('key')
    for (let hits = 5; hits >= 0; hits--) {
      await store.decrement('key')
      assert.is((await store.get('key'))?.totalHits, hits)
    }
  })

  each('a decrement never goes below 0', async () => {
    const store = create()
    await store.increment('key')
    for (let i = 0; i < 3; i++) await store.decrement('key')
    assert.is((await store.get('key'))?.totalHits, 0)
    assert.is((await store.increment('key')).totalHits, 1)
  })

  each('a decrement of an unknown key makes it known, without hits', () =>
    withFakeDate(async () => {
      const store = create()
      await store.decrement('unknown')
      assert.equal(await shown(store.get('unknown')), [0, WINDOW_MS])
      assert.is((await store.increment('unknown')).totalHits, 1)
    }),
  )

  each('a decrement does not change when the window of a key ends, and begins that of an unknown one', () =>
    withFakeDate(async (date) => {
      const store = create()
      await store.increment('key')
      for (const key of ['key', 'unknown']) {
        await store.decrement(key)
        date.tick(1000)
      }
      assert.equal(await shown(store.get('key')), [0, WINDOW_MS - 2000])
      assert.equal(await shown(store.increment('key')), [1, WINDOW_MS - 2000])
      assert.equal(await shown(store.increment('unknown')), [1, WINDOW_MS - 1000])
      await store.decrement('unknown')
      date.tick(WINDOW_MS - 1000)
      assert.is(await store.get('unknown'), undefined)
      assert.equal(await shown(store.increment('unknown')), [1, WINDOW_MS])
    }),
  )

  each('resetKey forgets one key', async () => {
    const store = create()
    for (const key of ['one', 'one', 'two']) await store.increment(key)
    await store.resetKey('one')
    await store.resetKey('unknown')
    assert.is(await store.get('one'), undefined)
    assert.is((await store.get('two'))?.totalHits, 1)
    assert.is((await store.increment('one')).totalHits, 1)
  })

  each('resetAll forgets all keys', async () => {
    const store = create()
    await store.resetAll()
    for (const key of ['one', 'two', 'two', 'two', 'two']) await store.increment(key)
    await store.resetAll()
    assert.is(await store.get('one'), undefined)
    assert.is(await store.get('two'), undefined)
    for (const key of ['one', 'two']) assert.is((await store.increment(key)).totalHits, 1)
  })

  each('shutdown forgets all keys, may come twice, and the store can be used after it', async () => {
    const store = create()
    await store.increment('key')
    await store.shutdown()
    await store.shutdown()
    assert.is(await store.get('key'), undefined)
    assert.is((await store.increment('key')).totalHits, 1)
  })

  each('a shutdown before init is no error', async () => {
    await kind.create().shutdown()
  })

  each('two stores are independent, and say so', async () => {
    const [one, two] = [create(), create()]
    await one.increment('key')
    await one.increment('key')
    assert.is((await two.increment('key')).totalHits, 1)
    assert.is(one.localKeys, true)
    assert.is((one as Store).prefix, undefined)
  })

  each('init with the same window keeps the hits', async () => {
    const store = create()
    await store.increment('key')
    store.init(optionsOf(kind))
    assert.is((await store.increment('key')).totalHits, 2)
  })

  each('windowMs is that of init', () => {
    assert.is((create() as FullStore & { windowMs: number }).windowMs, WINDOW_MS)
  })

  each('with a windowMs below 1 every hit is the first', () =>
    withFakeDate(async () => {
      for (const windowMs of [0.5, 0, -1, -1000]) {
        const store = create()
        store.init(optionsOf(kind, windowMs))
        for (let i = 0; i < 5; i++) {
          assert.equal(await shown(store.increment('key')), [1, Math.trunc(windowMs)])
          assert.is(await store.get('key'), undefined)
          await store.decrement('key')
        }
        await store.resetKey('key')
      }
    }),
  )

  each('hits count before init', async () => {
    const store = kind.create()
    if (kind.limit === undefined) assert.is((await store.increment('key')).totalHits, 1)
    assert.is((await store.increment('other')).totalHits, 1)
  })

  each('any string is a key of its own', async () => {
    const store = create()
    const long = 'x'.repeat(100_000)
    const keys = [
      '',
      ' ',
      '\0',
      '__proto__',
      'constructor',
      'é',
      'e\u0301',
      '\ud83d\ude00',
      '::1',
      long,
      `${long}x`,
    ]
    for (const key of keys) assert.is((await store.increment(key)).totalHits, 1, key.slice(0, 20))
    for (const key of keys) assert.is((await store.increment(key)).totalHits, 2, key.slice(0, 20))
  })

  each('the methods work without their object', async () => {
    const store = create()
    const { resetKey, get, increment } = store
    await increment.call(store, 'key')
    await resetKey.bind(store)('key')
    assert.is(await get.bind(store)('key'), undefined)
  })

  each('answers are promises that need no macrotask', async () => {
    const store = create()
    const order: string[] = []
    setImmediate(() => order.push('macrotask'))
    for (const answer of [store.increment('key'), store.get('key'), store.decrement('key')]) {
      assert.instance(answer, Promise)
      await answer
      order.push('answer')
    }
    assert.equal(order, ['answer', 'answer', 'answer'])
  })

  each('a change of an answer does not change the store', async () => {
    if (kind === original) return // its answers are its own records
    const store = create()
    const answer = await store.increment('key')
    answer.totalHits = 99
    assert.is((await store.get('key'))?.totalHits, 1)
  })

  each.run()
}

for (const kind of KINDS) {
  const each = suite(`express-rate-limit, windows: ${kind.name}`)

  for (const windowMs of [1, 50, 999, 24 * 86_400_000]) {
    each(`a window of ${windowMs} ms`, () =>
      withFakeDate(async (date) => {
        const store = kind.create()
        store.init(optionsOf(kind, windowMs))
        try {
          assert.equal(await shown(store.increment('key')), [1, windowMs])
          assert.equal(await shown(store.increment('key')), [2, windowMs])
          date.tick(windowMs)
          assert.is(await store.get('key'), undefined)
          assert.equal(await shown(store.increment('key')), [1, windowMs])
        } finally {
          await store.shutdown()
        }
      }),
    )
  }

  each.run()
}

const sideBySide = suite('express-rate-limit: the original and a fixed window')

const step = fc.record({
  afterMs: fc.oneof(fc.constantFrom(0, 1, WINDOW_MS - 1, WINDOW_MS), fc.nat(20_000)),
  key: fc.constantFrom('one', 'two'),
  action: fc.oneof(
    { weight: 20, arbitrary: fc.constant('increment' as const) },
    { weight: 9, arbitrary: fc.constantFrom('decrement' as const, 'resetKey' as const, 'get' as const) },
    { weight: 1, arbitrary: fc.constant('resetAll' as const) },
  ),
})

sideBySide('answer alike, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 50 }), (steps) =>
      withFakeDate(async (date) => {
        const [one, two] = likeOriginal.map(({ create }) => create()) as [FullStore, FullStore]
        for (const store of [one, two]) store.init(optionsOf(original))
        const seen = new Set<string>()
        for (const { afterMs, key, action } of steps) {
          date.tick(afterMs)
          assert.equal(await two.get(key), plain(await one.get(key)))
          // The original keeps keys whose window is over for up to two windows.
          const isOver = seen.has(key) && (await one.get(key)) === undefined
          if (action === 'resetAll') {
            await Promise.all([one.resetAll(), two.resetAll()])
            seen.clear()
          } else if (!(action === 'decrement' && isOver)) {
            const [answer, other] = [await one[action](key), await two[action](key)]
            assert.equal(other, plain(answer))
            if (action === 'resetKey') seen.delete(key)
            else if (action !== 'get') seen.add(key)
          }
        }
        await Promise.all([one.shutdown(), two.shutdown()])
      }),
    ),
    { numRuns: 100 },
  )
})

const plain = <T>(value: T): T => (typeof value === 'object' ? { ...value } : value)

sideBySide.run()
