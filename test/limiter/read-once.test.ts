// run: once
// Input is read once, and the value read is the one used. Getters, proxies or other threads may return other
// values later.
import { createLimiter, type Decision, type LimiterOptions, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decidedBy, type Either, ENGINES } from '../engines/both.js'
import { assertRaises, assertRejects, limiterWith, resolved, START_MS } from './support.js'

const BAD = 'ERR_MILLRACE_INVALID_COST'

/** An array whose entries are `first` at the first read, and `later` at every further one. */
function changing<T>(first: readonly T[], later: readonly T[]): T[] {
  const array: T[] = []
  for (const [i, value] of first.entries()) {
    let reads = 0
    Object.defineProperty(array, i, { enumerable: true, get: () => (reads++ === 0 ? value : later[i]) })
  }
  return array
}

/** An object that counts the reads of each of its fields. */
function counted<T extends object>(fields: T): { object: T; reads: Record<string, number> } {
  const reads: Record<string, number> = {}
  const object = {} as T
  for (const [name, value] of Object.entries(fields)) {
    reads[name] = 0
    const get = () => {
      reads[name]!++
      return value
    }
    Object.defineProperty(object, name, { enumerable: true, get })
  }
  return { object, reads }
}

for (const engine of ENGINES) {
  const testBoth = (name: string, act: (limiter: Either) => Promise<void>) =>
    test(`${engine}: ${name}`, async () => {
      await using made = decidedBy(engine)
      await act(made.limiter)
    })

  testBoth('a cost that is 1 when it is checked is 1 when it is charged', async (limiter) => {
    for (const later of [-4, 0.5, 1e9, Number.NaN, 'x']) {
      await limiter.clear('key')
      const batch = await limiter.checkMany(
        ['key', 'key'],
        changing<unknown>([1, 2], [later, later]) as number[],
      )
      assert.equal([[...batch.allowed], await limiter.usage('key')], [[1, 1], 3])
    }
  })

  testBoth('a cost that is bad at its first read is refused', async (limiter) => {
    for (const first of [-4, 0.5, '1', null, [1], 1n]) {
      const act = async () => limiter.checkMany(['key'], changing<unknown>([first], [1]) as number[])
      await assertRejects(act, BAD, 'costs[0]')
    }
    assert.is(await limiter.usage('key'), 0)
  })

  testBoth(
    'costs may be in any typed array but one of big integers, also in shared memory',
    async (limiter) => {
      const shared = new Int32Array(new SharedArrayBuffer(8))
      shared.set([1, 2])
      for (const costs of [shared, new Uint8Array([1, 2]), new Float32Array([1, 2]), Object.freeze([1, 2])]) {
        await limiter.clear('key')
        await limiter.checkMany(['key', 'key'], costs)
        assert.is(await limiter.usage('key'), 3)
      }
      const act = async () => limiter.checkMany(['key', 'key'], new BigInt64Array([1n, 2n]) as never)
      await assertRejects(act, BAD, 'costs[0]')
    },
  )

  testBoth('an array of keys whose length changes has its first length', async (limiter) => {
    for (const later of [0, 1, 3, 1e9]) {
      await limiter.clear('a')
      let reads = 0
      const keys = new Proxy(['a', 'a'], {
        get: (array, name, self) =>
          name === 'length' && reads++ > 0 ? later : Reflect.get(array, name, self),
      })
      const { length } = await limiter.checkMany(keys)
      assert.equal([length, await limiter.usage('a'), (await limiter.stats()).keys], [2, 2, 1])
    }
  })

  testBoth('an array of keys with an invalid length is refused by name', async (limiter) => {
    for (const length of [-1, 0.5, Number.NaN, 2 ** 53, '2', undefined]) {
      const keys = new Proxy(['a'], {
        get: (array, name) => (name === 'length' ? length : array[name as never]),
      })
      await assertRejects(async () => limiter.checkMany(keys), 'ERR_MILLRACE_INVALID_KEY', 'keys')
    }
  })

  testBoth('keys are hashed as they were first read', async (limiter) => {
    const { allowed } = await limiter.checkMany(changing(['a', 'b'], ['c', '']))
    assert.equal([[...allowed], await limiter.usage('a'), await limiter.usage('b')], [[1, 1], 1, 1])
    assert.is((await limiter.stats()).keys, 2)
  })

  testBoth('each option is read once', async (limiter) => {
    const { signal } = new AbortController()
    const batch = counted(engine === 'pool' ? { remaining: true, signal } : { remaining: true })
    await limiter.checkMany(['key'], 1, batch.object)
    const wait = counted({ cost: 2, limit: 6, signal })
    await limiter.wait('key', wait.object)
    const change = counted({ limit: 7 })
    await limiter.update('default', change.object)
    const own = counted({ limit: 8 })
    assert.is((await limiter.check('key', 1, own.object)).limit, 8)
    for (const { reads } of [batch, wait, change, own]) {
      assert.equal(new Set(Object.values(reads)), new Set([1]), Object.keys(reads).join())
    }
  })

  testBoth('a limiter that is closed by a getter makes no change', async (limiter) => {
    const closing = {
      get limit() {
        void limiter.close()
        return 7
      },
    }
    await assertRejects(async () => limiter.update('default', closing), 'ERR_MILLRACE_CLOSED', 'limiter')
  })

  testBoth('a limiter that is closed by the getter of a limit decides no more', async (limiter) => {
    const closing = {
      get limit() {
        void limiter.close()
        return 7
      },
    }
    await assertRejects(async () => limiter.check('key', 1, closing), 'ERR_MILLRACE_CLOSED', 'limiter')
  })

  testBoth('a limiter that is closed by the getter of a cost decides no more', async (limiter) => {
    const costs = Object.defineProperty([1], 0, {
      get: () => {
        void limiter.close()
        return 1
      },
    })
    await assertRejects(async () => limiter.checkMany(['key'], costs), 'ERR_MILLRACE_CLOSED', 'limiter')
  })

  testBoth('an object with the prototype of a signal is refused as a signal', async (limiter) => {
    const signal = Object.create(AbortSignal.prototype) as AbortSignal
    await assertRejects(() => limiter.wait('key', { signal }), 'ERR_MILLRACE_INVALID_OPTION', 'signal')
    assert.is(await limiter.usage('key'), 0)
  })

  testBoth('a handle may be frozen', async (limiter) => {
    const handle = limiter.handle('key')
    Object.freeze(handle)
    for (let i = 0; i < 2; i++) assert.ok((await limiter.check(handle)).allowed)
    assert.is(await limiter.usage('key'), 2)
  })

  testBoth('proxies and copies of handles and of packed keys are refused', async (limiter) => {
    const [handle, packed] = [limiter.handle('key'), limiter.pack(['key'])]
    for (const key of [new Proxy(handle, {}), Object.create(handle), { ...handle }]) {
      await assertRejects(async () => limiter.check(key as never), 'ERR_MILLRACE_INVALID_KEY', 'key')
      await assertRejects(async () => limiter.pack([key as never]), 'ERR_MILLRACE_INVALID_KEY', 'keys[0]')
    }
    for (const keys of [new Proxy(packed, {}), Object.create(packed), { ...packed }]) {
      await assertRejects(async () => limiter.checkMany(keys as never), 'ERR_MILLRACE_INVALID_KEY', 'keys')
    }
    assert.throws(() => Object.assign(packed, { length: 9 }))
  })
}

test('pool: the signal of a check is read once', async () => {
  await using made = decidedBy('pool')
  const { object, reads } = counted({ signal: new AbortController().signal })
  await (made.limiter.check as (...args: unknown[]) => Promise<Decision>)('key', 1, object)
  assert.equal(reads, { signal: 1 })
})

test('each option of createLimiter is read once', async () => {
  const options = {
    limit: 5,
    window: '1m',
    granularity: '1s',
    name: 'mine',
    edge: 'strict',
    algorithm: 'sliding-window',
  }
  const more = { maxKeys: 20, onFull: 'evict', engine: 'pool', clock: manualClock(START_MS) }
  const limits = counted({ maxOldGenerationSizeMb: 64 })
  const pool = counted({ minThreads: 1, maxThreads: 1, maxPending: 100, resourceLimits: limits.object })
  const all = counted({ ...options, ...more, pool: pool.object, rangeSum: undefined, shared: undefined })
  const limiter = createLimiter(all.object as unknown as LimiterOptions)
  await limiter.check('key')
  await limiter.close()
  for (const { reads } of [limits, pool, all]) {
    for (const [name, count] of Object.entries(reads)) assert.is(count, 1, name)
  }
})

test('each option of attachLimiter, and each field of a share, is read once', async () => {
  const { limiter } = limiterWith()
  const { attachLimiter } = await import('millrace')
  const { object, reads } = counted({ ...limiter.share(), file: undefined as never })
  await attachLimiter(object).close()
  assert.equal(reads, { buffer: 1, rule: 1, clock: 1, file: 1 })
})

test('every reading of a clock is checked, not only the first', () => {
  for (const later of [Number.NaN, Number.POSITIVE_INFINITY, '5']) {
    let reads = 0
    const clock = { now: () => (reads++ === 0 ? START_MS : later) as number }
    const act = () => createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock })
    assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  }
})

test('a pending `wait` call keeps the cost that it was called with', async () => {
  const { limiter } = limiterWith()
  let reads = 0
  const decision = await resolved(
    limiter.wait('key', {
      get cost() {
        return reads++ === 0 ? 2 : -4
      },
    }),
  )
  assert.equal([decision.remaining, limiter.usage('key')], [3, 2])
})

test.run()
