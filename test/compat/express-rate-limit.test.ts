// The store of express-rate-limit and ours, side by side. Sources: the types of express-rate-limit 8 and
// https://express-rate-limit.mintlify.app/reference/stores.

import { mock } from 'node:test'
import { type Options, MemoryStore as OriginalStore, type Store } from 'express-rate-limit'
import fc from 'fast-check'
import { MemoryStore, MillraceStore } from 'millrace/compat/express-rate-limit'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { withFakeDate } from './fake-date.js'

const WINDOW_MS = 60_000

/** A store with all methods that the one of express-rate-limit has. */
type FullStore = Required<Omit<Store, 'prefix'>>

interface Kind {
  readonly name: string
  readonly create: () => FullStore
  /** The limit that `init` gets, if it gets one. */
  readonly limit?: number
}

const original: Kind = { name: 'the original', create: () => new OriginalStore() }
const fixed: Kind = {
  name: 'Millrace, fixed window',
  create: () => new MillraceStore({ algorithm: 'fixed-window' }),
}
const likeOriginal = [original, fixed]
const all: Kind[] = [
  ...likeOriginal,
  { name: 'Millrace, without a limit', create: () => new MemoryStore() },
  { name: 'Millrace, limit 3', create: () => new MillraceStore(), limit: 3 },
  { name: 'Millrace, limit 3 in buckets', create: () => new MillraceStore({ maxLogLimit: 0 }), limit: 3 },
  { name: 'Millrace, limit 0', create: () => new MillraceStore(), limit: 0 },
]

const optionsOf = ({ limit }: Kind, windowMs = WINDOW_MS): Options => ({ windowMs, limit }) as Options

/** What `get` and `increment` answer, with the time until the reset in place of its date. */
async function shown(answer: ReturnType<FullStore['get']>): Promise<[number, number] | undefined> {
  const info = await answer
  return info && [info.totalHits, info.resetTime!.getTime() - Date.now()]
}

for (const kind of all) {
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

for (const kind of all) {
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

const ours = suite('express-rate-limit: ours')

ours('a sliding window admits at most the limit in any window', () =>
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
  }),
)

ours('with skipSuccessfulRequests, a decrement takes an admitted hit first', () =>
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
  }),
)

ours('a window may be longer than a timer', () =>
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
  }),
)

ours('with skipFailedRequests, a decrement takes a refused hit first', async () => {
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

ours('fake timers of node:test work, also after the store was made', async () => {
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

ours('without a number as limit, all hits of the last window count, refused or not', () =>
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
  }),
)

ours('with a number as limit, refused hits do not hold off the next admission', () =>
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
  }),
)

ours('the reset time of a refusal is that of the next admission', () =>
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
  }),
)

ours('init with another window counts anew', async () => {
  const store = new MillraceStore()
  store.init({ windowMs: WINDOW_MS, limit: 2 })
  await store.increment('key')
  store.init({ windowMs: 2 * WINDOW_MS, limit: 2 })
  assert.is(store.windowMs, 2 * WINDOW_MS)
  assert.is((await store.increment('key')).totalHits, 1)
  await store.shutdown()
})

ours('a windowMs that is no number above 0 is an error', () => {
  for (const windowMs of [0, -1, Number.NaN, '60000', undefined]) {
    assert.throws(
      () => new MillraceStore().init({ windowMs } as { windowMs: number }),
      (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_DURATION',
    )
  }
})

ours('a key that is an object rejects', async () => {
  const rejected = await new MillraceStore().increment({} as string).then(
    () => undefined,
    (error: { code: string }) => error.code,
  )
  assert.is(rejected, 'ERR_MILLRACE_INVALID_KEY')
})

ours.run()
