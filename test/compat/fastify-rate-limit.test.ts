// run: also-long
// The store in memory of @fastify/rate-limit and ours, side by side. Sources: the readme and the types of
// @fastify/rate-limit 11; the readme leaves out what its store does at the edges, so the store itself is asked.
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { MillraceStore, type StoreCallback, type StoreOptions } from 'millrace/compat/fastify-rate-limit'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { withFakeDate } from './fake-date.js'

const WINDOW_MS = 1000

/** What both stores have. The types of the plugin leave `read` and numbers as keys out. */
interface AnyStore {
  incr(key: string | number, callback: StoreCallback, timeWindow: number, max: number): void
  read(key: string | number, callback: StoreCallback, timeWindow: number, max?: number): void
  child(options: StoreOptions): AnyStore
}

interface Kind {
  readonly name: string
  readonly create: (options?: StoreOptions) => AnyStore
}

const original: Kind = {
  name: 'the original',
  create: ({ continueExceeding = false, exponentialBackoff = false, cache }: StoreOptions = {}) =>
    new LocalStore(continueExceeding, exponentialBackoff, cache) as unknown as AnyStore,
}
const Fixed = MillraceStore.with({ algorithm: 'fixed-window' })
const fixed: Kind = { name: 'Millrace, fixed window', create: (options) => new Fixed(options) }
const sliding: Kind = { name: 'Millrace', create: (options) => new MillraceStore(options) }
const Buckets = MillraceStore.with({ maxLogLimit: 0 })
const buckets: Kind = { name: 'Millrace, in buckets', create: (options) => new Buckets(options) }

type Shown = [current: number, ttl: number]

/** Calls a method, whose callback must come before it returns. */
function call(
  store: AnyStore,
  method: 'incr' | 'read',
  key: string | number,
  max?: number,
  windowMs = WINDOW_MS,
): Shown {
  let shown: Shown | undefined
  const callback: StoreCallback = (error, result) => {
    assert.is(error, null)
    shown = [result!.current, result!.ttl]
  }
  store[method](key, callback, windowMs, max as number)
  if (shown === undefined) throw new Error('the callback was not called')
  return shown
}

const hits = (store: AnyStore, count: number, max: number, key: string | number = 'key'): Shown[] =>
  Array.from({ length: count }, () => call(store, 'incr', key, max))

for (const kind of [original, fixed, sliding, buckets]) {
  const each = suite(`@fastify/rate-limit: ${kind.name}`)

  each('hits count from 1 and go on above max, with the time that is left', () =>
    withFakeDate((date) => {
      const store = kind.create()
      assert.equal(hits(store, 4, 2), [
        [1, 1000],
        [2, 1000],
        [3, 1000],
        [4, 1000],
      ])
      date.tick(400)
      const [current, ttl] = call(store, 'incr', 'key', 2)
      assert.is(current, 5)
      assert.ok(ttl >= 600 && ttl <= (kind === buckets ? 617 : 600), `${ttl} ms`)
    }),
  )

  each('the window is over after timeWindow, and not before', () =>
    withFakeDate((date) => {
      const store = kind.create()
      hits(store, 3, 2)
      date.tick(999)
      assert.is(call(store, 'incr', 'key', 2)[0], 4)
      date.tick(1)
      assert.equal(hits(store, 3, 2), [
        [1, 1000],
        [2, 1000],
        [3, 1000],
      ])
    }),
  )

  each('read changes nothing', () =>
    withFakeDate((date) => {
      const store = kind.create()
      assert.equal(call(store, 'read', 'unknown', 2), [0, 0])
      hits(store, 3, 2)
      for (let i = 0; i < 3; i++) assert.equal(call(store, 'read', 'key', 2), [3, 1000])
      assert.equal(call(store, 'read', 'key'), [3, 1000])
      assert.equal(call(store, 'incr', 'key', 2), [4, 1000])
      date.tick(1000)
      assert.equal(call(store, 'read', 'key', 2), [0, 0])
    }),
  )

  each('a number, a string and other strings are keys of their own', () => {
    const store = kind.create()
    for (const key of [1, '1', 0, '0', '', '__proto__', 'x'.repeat(70_000), -0.5, Number.NaN]) {
      assert.is(call(store, 'incr', key, 5)[0], 1, String(key))
      assert.is(call(store, 'incr', key, 5)[0], 2, String(key))
    }
  })

  each('a missing header as the key counts all who have none', () => {
    const store = kind.create()
    for (const key of [undefined, null]) {
      assert.is(call(store, 'incr', key as unknown as string, 5)[0], 1)
      assert.is(call(store, 'incr', key as unknown as string, 5)[0], 2)
    }
  })

  each('max may differ from call to call', () =>
    withFakeDate(() => {
      const store = kind.create()
      for (const [i, max] of [3, 100, 1000, 5, 5].entries()) {
        assert.equal(call(store, 'incr', 'key', max), [i + 1, 1000])
      }
    }),
  )

  each('max 0 refuses all, and a large max none', () =>
    withFakeDate(() => {
      const store = kind.create()
      assert.equal(
        hits(store, 2, 0, 'none').map(([current]) => current),
        [1, 2],
      )
      assert.equal(
        hits(store, 2, Number.MAX_SAFE_INTEGER, 'all').map(([current]) => current),
        [1, 2],
      )
      assert.equal(
        hits(store, 2, Number.POSITIVE_INFINITY, 'all').map(([current]) => current),
        [3, 4],
      )
    }),
  )

  each(
    'with a timeWindow below 0 every hit is the first, and with a part of a millisecond it is a millisecond',
    () =>
      withFakeDate((date) => {
        const store = kind.create({ continueExceeding: true })
        for (let i = 0; i < 5; i++) {
          assert.equal(call(store, 'incr', 'key', 2, -1000), [1, -1000])
          assert.equal(call(store, 'read', 'key', 2, -1000), [0, 0])
        }
        for (let hit = 1; hit <= 5; hit++) assert.is(call(store, 'incr', 'other', 9, 0.5)[0], hit)
        date.tick(1)
        assert.is(call(store, 'incr', 'other', 9, 0.5)[0], 1)
      }),
  )

  each('with a timeWindow of 0 every hit is the first', () => {
    const store = kind.create()
    assert.equal(call(store, 'incr', 'key', 1, 0), [1, 0])
    assert.equal(call(store, 'incr', 'key', 1, 0), [1, 0])
    assert.equal(call(store, 'read', 'key', 1, 0), [0, 0])
  })

  each('continueExceeding begins the window anew with each hit above max', () =>
    withFakeDate((date) => {
      const store = kind.create({ continueExceeding: true })
      hits(store, 2, 2)
      for (const current of [3, 4, 5]) {
        date.tick(700)
        assert.equal(call(store, 'incr', 'key', 2), [current, 1000])
      }
      date.tick(999)
      const [current, ttl] = call(store, 'read', 'key', 2)
      assert.is(current, 5)
      assert.ok(ttl >= 1 && ttl <= (kind === buckets ? 18 : 1), `${ttl} ms`)
      date.tick(1)
      assert.equal(call(store, 'incr', 'key', 2), [1, 1000])
    }),
  )

  each('exponentialBackoff tells twice as long with each hit above max', () =>
    withFakeDate((date) => {
      const store = kind.create({ exponentialBackoff: true })
      hits(store, 2, 2)
      for (const [current, ttl] of [
        [3, 1000],
        [4, 2000],
        [5, 4000],
      ]) {
        date.tick(100)
        assert.equal(call(store, 'incr', 'key', 2), [current, ttl])
      }
      hits(store, 60, 2)
      assert.is(call(store, 'incr', 'key', 2)[1], Number.MAX_SAFE_INTEGER)
      date.tick(1000)
      assert.equal(call(store, 'incr', 'key', 2), [1, 1000])
    }),
  )

  each('continueExceeding keeps all hits when max is lower than it was', () =>
    withFakeDate(() => {
      const store = kind.create({ continueExceeding: true })
      hits(store, 30, 40)
      assert.equal(hits(store, 2, 5), [
        [31, 1000],
        [32, 1000],
      ])
    }),
  )

  each('exponentialBackoff does not hold for the first hit', () =>
    withFakeDate(() => {
      const store = kind.create({ exponentialBackoff: true })
      assert.equal(hits(store, 3, -1), [
        [1, 1000],
        [2, 4000],
        [3, 8000],
      ])
    }),
  )

  each('continueExceeding goes before exponentialBackoff', () =>
    withFakeDate(() => {
      const store = kind.create({ continueExceeding: true, exponentialBackoff: true })
      assert.equal(hits(store, 5, 1).at(-1), [5, 1000])
    }),
  )

  each('a child counts apart, by its own options', () =>
    withFakeDate((date) => {
      const store = kind.create({ continueExceeding: true })
      const child = store.child({})
      const sibling = store.child({ continueExceeding: true })
      hits(store, 3, 2)
      assert.equal(hits(child, 3, 2).at(-1), [3, 1000])
      assert.is(hits(sibling, 3, 2).at(-1)?.[0], 3)
      date.tick(500)
      assert.is(call(sibling, 'incr', 'key', 2)[1], 1000)
      assert.ok(call(child, 'incr', 'key', 2)[1] < 600)
    }),
  )

  each('a child of a child counts apart', () => {
    const child = kind.create().child({})
    hits(child, 2, 5)
    assert.is(hits(child.child({}), 1, 5)[0]?.[0], 1)
  })

  each('one window may be changed for another', () =>
    withFakeDate(() => {
      const store = kind.create()
      assert.equal(call(store, 'incr', 'one', 5, 500), [1, 500])
      assert.equal(call(store, 'incr', 'two', 5, 2000), [1, 2000])
      assert.equal(call(store, 'incr', 'one', 5, 500), [2, 500])
    }),
  )

  each('an error of the callback is thrown to the caller', () => {
    const failing = (): never => {
      throw new Error('of the callback')
    }
    assert.throws(() => kind.create().incr('key', failing, WINDOW_MS, 1), 'of the callback')
  })

  each.run()
}

const sideBySide = suite('@fastify/rate-limit: the original and a fixed window')

const step = fc.record({
  afterMs: fc.oneof(fc.constantFrom(0, 1, WINDOW_MS - 1, WINDOW_MS), fc.nat(400)),
  key: fc.constantFrom<(string | number)[]>('one', 1),
  method: fc.constantFrom('incr' as const, 'incr' as const, 'read' as const),
  max: fc.constantFrom(0, 3, 3, 3, 100),
})

const options = fc.record({ continueExceeding: fc.boolean(), exponentialBackoff: fc.boolean() })

sideBySide('answer alike, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), options, (steps, given) =>
      withFakeDate((date) => {
        const [one, two] = [original.create(given), fixed.create({ ...given, cache: 16 })]
        for (const { afterMs, key, method, max } of steps) {
          date.tick(afterMs)
          assert.equal(call(two, method, key, max), call(one, method, key, max))
        }
      }),
    ),
    { numRuns: 150 },
  )
})

sideBySide.run()

const ours = suite('@fastify/rate-limit: ours')

function errorOf(
  store: AnyStore,
  method: 'incr' | 'read',
  key: unknown,
  windowMs: unknown,
): string | undefined {
  let code: string | undefined
  store[method](
    key as string,
    (error) => {
      code = (error as { code?: string } | null)?.code
    },
    windowMs as number,
    1,
  )
  return code
}

ours('bad windows and keys are errors by name', () => {
  for (const method of ['incr', 'read'] as const) {
    for (const windowMs of [Number.NaN, '1 minute', undefined]) {
      assert.is(errorOf(sliding.create(), method, 'key', windowMs), 'ERR_MILLRACE_INVALID_DURATION')
    }
    assert.is(errorOf(sliding.create(), method, ['a', 'b'], 1000), 'ERR_MILLRACE_INVALID_KEY')
    assert.is(errorOf(sliding.create(), method, 'key', 1000), undefined)
  }
})

ours('one window more than maxWindows is an error by name', () => {
  const Few = MillraceStore.with({ maxWindows: 2 })
  const store = new Few()
  assert.is(errorOf(store, 'incr', 'key', 1000), undefined)
  assert.is(errorOf(store, 'incr', 'key', 2000), undefined)
  assert.is(errorOf(store, 'incr', 'key', 3000), 'ERR_MILLRACE_INVALID_OPTION')
  assert.is(errorOf(store, 'incr', 'key', 1000), undefined)
})

ours('a child keeps the options of its class', () =>
  withFakeDate((date) => {
    const turned = (store: AnyStore): number => {
      call(store, 'incr', 'key', 1)
      date.tick(600)
      call(store, 'incr', 'key', 2)
      date.tick(600)
      return call(store, 'read', 'key', 2)[0]
    }
    assert.is(turned(fixed.create().child({})), 0)
    assert.is(turned(sliding.create().child({})), 1)
  }),
)

ours('with() checks its options', () => {
  assert.throws(
    () => MillraceStore.with({ maxKeys: 0 }),
    (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_OPTION',
  )
})

ours('a sliding window admits at most max in any timeWindow', () =>
  withFakeDate((date) => {
    const admittedBy = (store: AnyStore): number => {
      let admitted = 0
      for (const [afterMs, count] of [
        [0, 1],
        [990, 9],
        [20, 9],
      ] as const) {
        date.tick(afterMs)
        admitted += hits(store, count, 10).filter(([current]) => current <= 10).length
      }
      return admitted
    }
    assert.is(admittedBy(original.create()), 19)
    assert.is(admittedBy(fixed.create()), 19)
    assert.is(admittedBy(sliding.create()), 11)
  }),
)

ours.run()
