// run: also-long
// The storage in memory of @nestjs/throttler and ours, side by side. Sources: the readme and the types of
// @nestjs/throttler 6.
import { ThrottlerStorageService as OriginalStorage, type ThrottlerStorage } from '@nestjs/throttler'
import {
  MillraceThrottlerStorage,
  type ThrottlerStorageRecord,
  ThrottlerStorageService,
} from 'millrace/compat/nestjs-throttler'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { START_MS, withFakeDate } from './fake-date.js'

const TTL_MS = 10_000

interface AnyStorage extends ThrottlerStorage {
  onApplicationShutdown(): void | Promise<void>
}

interface Kind {
  readonly name: string
  readonly create: () => AnyStorage
}

const original: Kind = { name: 'the original', create: () => new OriginalStorage() }
const ours: Kind = { name: 'Millrace', create: () => new ThrottlerStorageService() }
const buckets: Kind = {
  name: 'Millrace, in buckets',
  create: () => new MillraceThrottlerStorage({ maxLogLimit: 0 }),
}

/** The record, with 0 for a time to the end of a block that is none: the original tells how long ago it was. */
const shown = ({
  timeToBlockExpire,
  isBlocked,
  ...others
}: ThrottlerStorageRecord): ThrottlerStorageRecord => ({
  ...others,
  isBlocked,
  timeToBlockExpire: isBlocked ? timeToBlockExpire : 0,
})

for (const kind of [original, ours, buckets]) {
  const each = suite(`@nestjs/throttler: ${kind.name}`)

  const storages: AnyStorage[] = []
  const create = (): AnyStorage => {
    const storage = kind.create()
    storages.push(storage)
    return storage
  }
  each.after.each(async () => {
    await Promise.all(storages.splice(0).map((storage) => storage.onApplicationShutdown()))
  })

  /** Hits a key, and returns [totalHits, timeToExpire, isBlocked, timeToBlockExpire]. */
  const hit = async (
    storage: AnyStorage,
    { key = 'key', ttl = TTL_MS, limit = 2, block = TTL_MS, name = 'default' } = {},
  ): Promise<[number, number, boolean, number]> => {
    const record = shown(await storage.increment(key, ttl, limit, block, name))
    return [record.totalHits, record.timeToExpire, record.isBlocked, record.timeToBlockExpire]
  }

  each('hits count up to the limit, and one more blocks', () =>
    withFakeDate(async (date) => {
      const storage = create()
      assert.equal(await hit(storage), [1, 10, false, 0])
      date.tick(2500)
      assert.equal(await hit(storage), [2, 8, false, 0])
      assert.equal(await hit(storage), [3, 8, true, 10])
      date.tick(1)
      assert.equal(await hit(storage), [3, 8, true, 10])
      date.tick(7000)
      assert.equal(await hit(storage), [3, 1, true, 3])
    }),
  )

  each('a block is over after blockDuration, and the key begins anew', () =>
    withFakeDate(async (date) => {
      for (const block of [3000, TTL_MS, 25_000]) {
        const storage = create()
        for (let i = 0; i < 3; i++) await hit(storage, { block })
        date.tick(block - 1)
        assert.equal((await hit(storage, { block })).slice(2), [true, 1])
        date.tick(1)
        assert.equal((await hit(storage, { block }))[0], 1)
        assert.equal((await hit(storage, { block }))[0], 2)
        assert.equal((await hit(storage, { block })).slice(2), [true, block / 1000])
      }
    }),
  )

  // In buckets, a hit counts for up to a sixtieth of ttl longer.
  if (kind !== buckets)
    each('each hit counts for ttl', () =>
      withFakeDate(async (date) => {
        for (const limit of [5, 100]) {
          const storage = create()
          assert.is((await hit(storage, { limit }))[0], 1)
          date.tick(TTL_MS - 1)
          assert.is((await hit(storage, { limit }))[0], 2)
          date.tick(1)
          assert.is((await hit(storage, { limit }))[0], 2)
          date.tick(TTL_MS)
          assert.is((await hit(storage, { limit }))[0], 1)
        }
      }),
    )

  if (kind !== buckets)
    each('without a block, a key is refused until its oldest hit leaves', () =>
      withFakeDate(async (date) => {
        for (const block of [0, -1]) {
          const storage = create()
          assert.equal(await hit(storage, { block }), [1, 10, false, 0])
          date.tick(4000)
          assert.equal(await hit(storage, { block }), [2, 6, false, 0])
          assert.equal(await hit(storage, { block }), [3, 6, true, 6])
          assert.equal((await hit(storage, { block }))[0], 3)
          date.tick(6000)
          assert.equal(await hit(storage, { block }), [2, 10, false, 0])
        }
      }),
    )

  each('names of throttlers count apart, and share a block', () =>
    withFakeDate(async () => {
      const storage = create()
      assert.is((await hit(storage, { name: 'short' }))[0], 1)
      assert.is((await hit(storage, { name: 'long' }))[0], 1)
      for (let i = 0; i < 2; i++) await hit(storage, { name: 'short' })
      assert.equal(await hit(storage, { name: 'long' }), [1, 10, true, 10])
    }),
  )

  each('a name and a key do not make those of another', async () => {
    const storage = create()
    for (const [name, key] of [
      ['a', 'bc'],
      ['ab', 'c'],
      ['', 'abc'],
      ['abc', ''],
    ]) {
      assert.is((await hit(storage, { name: name!, key: key! }))[0], 1)
    }
  })

  each('keys count apart, whatever they are', async () => {
    const storage = create()
    for (const key of ['', 'a', 'A', '__proto__', '\0', '7 default', 'x'.repeat(70_000)]) {
      assert.is((await hit(storage, { key }))[0], 1)
      assert.is((await hit(storage, { key }))[0], 2)
    }
  })

  each('the limit may differ from call to call', async () => {
    const storage = create()
    for (const [i, limit] of [5, 50, 500, 5000, 5].entries()) {
      assert.is((await hit(storage, { limit }))[0], i + 1)
    }
    assert.is((await hit(storage, { limit: 5 }))[2], true)
  })

  each('a limit of 0 refuses all', async () => {
    for (const block of [0, TTL_MS]) {
      const storage = create()
      assert.is((await hit(storage, { limit: 0, block }))[2], true)
      assert.is((await hit(storage, { limit: 0, block }))[2], true)
    }
  })

  each(
    'with a ttl of 0 or less every hit is the first, and with a part of a millisecond it is a millisecond',
    () =>
      withFakeDate(async (date) => {
        for (const ttl of [0, -1000, -5000]) {
          const storage = create()
          const seconds = ttl / 1000
          for (let i = 0; i < 5; i++) {
            assert.equal(await hit(storage, { ttl }), [1, seconds, false, 0])
            assert.equal(await hit(storage, { ttl, block: ttl }), [1, seconds, false, 0])
          }
          assert.equal(await hit(storage, { ttl, limit: 0, block: 0 }), [1, seconds, true, seconds])
          assert.equal(await hit(storage, { ttl, limit: 0 }), [1, seconds, true, 10])
          date.tick(1500)
          const [totalHits, , ...blocked] = await hit(storage, { ttl })
          assert.equal([totalHits, ...blocked], [0, true, 9])
        }
        const storage = create()
        assert.equal((await hit(storage, { ttl: 0.5 }))[0], 1)
        assert.equal((await hit(storage, { ttl: 0.5 }))[0], 2)
        date.tick(1)
        assert.equal((await hit(storage, { ttl: 0.5 }))[0], 1)
      }),
  )

  each('two storages are independent', async () => {
    const [one, two] = [create(), create()]
    await hit(one)
    assert.is((await hit(two))[0], 1)
  })

  each('a shutdown forgets all keys, may come twice, and the storage can be used after it', async () => {
    const storage = create()
    for (let i = 0; i < 3; i++) await hit(storage)
    await storage.onApplicationShutdown()
    await storage.onApplicationShutdown()
    assert.equal(await hit(storage), [1, 10, false, 0])
  })

  each('answers are promises that need no macrotask', async () => {
    const storage = create()
    const order: string[] = []
    setImmediate(() => order.push('macrotask'))
    const answer = storage.increment('key', TTL_MS, 2, TTL_MS, 'default')
    assert.instance(answer, Promise)
    await answer
    order.push('answer')
    assert.equal(order, ['answer'])
  })

  each.run()
}

const sideBySide = suite('@nestjs/throttler: the original and ours')

const step = fc.record({
  afterMs: fc.oneof(fc.constantFrom(0, 1, TTL_MS - 1, TTL_MS), fc.nat(4000)),
  key: fc.constantFrom('one', 'two'),
  name: fc.constantFrom('short', 'long'),
  limit: fc.constantFrom(1, 3, 3, 3),
})

for (const block of [0, 3000, TTL_MS, 15_000]) {
  sideBySide(`answer alike, whatever happens, with a block of ${block} ms`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) =>
        withFakeDate(async (date) => {
          const [one, two] = [original.create(), new MillraceThrottlerStorage({ maxKeys: 16 })]
          for (const { afterMs, key, name, limit } of steps) {
            date.tick(afterMs)
            const expected = await one.increment(key, TTL_MS, limit, block, name)
            assert.equal(await two.increment(key, TTL_MS, limit, block, name), shown(expected))
          }
          await Promise.all([one.onApplicationShutdown(), two.onApplicationShutdown()])
        }),
      ),
      { numRuns: 100 },
    )
  })
}

sideBySide.run()

const errors = suite('@nestjs/throttler: errors of ours')

const codeOf = (promise: Promise<unknown>): Promise<string | undefined> =>
  promise.then(
    () => undefined,
    (error: { code: string }) => error.code,
  )

errors('a limit that is no number refuses nothing, as in the original', async () => {
  for (const storage of [new OriginalStorage(), new MillraceThrottlerStorage()]) {
    for (let i = 0; i < 5; i++) {
      const { isBlocked } = await storage.increment('key', TTL_MS, Number.NaN, TTL_MS, 'a')
      assert.is(isBlocked, false)
    }
    storage.onApplicationShutdown()
  }
})

errors('a ttl that is no number rejects', async () => {
  const storage = new MillraceThrottlerStorage()
  for (const ttl of [Number.NaN, '60' as unknown as number]) {
    assert.is(await codeOf(storage.increment('key', ttl, 1, 1000, 'a')), 'ERR_MILLRACE_INVALID_DURATION')
  }
})

errors('one ttl or blockDuration more than maxWindows rejects', async () => {
  const storage = new MillraceThrottlerStorage({ maxWindows: 1 })
  const refuse = (key: string, ttl: number, block: number): Promise<string | undefined> =>
    codeOf(storage.increment(key, ttl, 0, block, 'a'))
  assert.is(await refuse('one', 1000, 2000), undefined)
  assert.is(await refuse('two', 1001, 2000), 'ERR_MILLRACE_INVALID_OPTION')
  assert.is(await refuse('two', 1000, 2001), 'ERR_MILLRACE_INVALID_OPTION')
  assert.is(await refuse('three', 1000, 2000), undefined)
})

errors('unknown options are refused by name, and so is algorithm', () => {
  for (const options of [{ algorithm: 'fixed-window' }, { limit: 1 }]) {
    assert.throws(
      () => new MillraceThrottlerStorage(options as object),
      (error: { code?: string }) => error.code === 'ERR_MILLRACE_INVALID_OPTION',
    )
  }
})

errors('a block for ever lasts', () =>
  withFakeDate(async (date) => {
    const storage = new MillraceThrottlerStorage({ maxKeys: 16 })
    const hit = (): Promise<ThrottlerStorageRecord> =>
      storage.increment('key', TTL_MS, 1, Number.POSITIVE_INFINITY, 'a')
    await hit()
    assert.is((await hit()).isBlocked, true)
    date.set(START_MS + 1000 * 365 * 86_400_000)
    assert.is((await hit()).isBlocked, true)
  }),
)

errors.run()
