// run: typescript
// The limiter in memory of rate-limiter-flexible and ours, side by side. Sources: the wiki, the readme and the types
// of rate-limiter-flexible 11.
import fc from 'fast-check'
import { type FlexibleOptions, RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import {
  BurstyRateLimiter,
  RateLimiterMemory as OriginalLimiter,
  RateLimiterCompatibleAbstract,
  RateLimiterQueue,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterUnion,
  RLWrapperBlackAndWhite,
} from 'rate-limiter-flexible'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { START_MS, withFakeDate } from './fake-date.js'

/** What both have. */
type AnyLimiter = Pick<
  OriginalLimiter,
  'consume' | 'penalty' | 'reward' | 'get' | 'set' | 'block' | 'delete' | 'getKey' | 'parseKey'
> &
  Required<FlexibleOptions> & { readonly msDuration: number; readonly msBlockDuration: number }

interface Kind {
  readonly name: string
  readonly create: (options: FlexibleOptions) => AnyLimiter
}

const original: Kind = {
  name: 'the original',
  create: (options) => new OriginalLimiter(options) as unknown as AnyLimiter,
}
const fixed: Kind = {
  name: 'Millrace, fixed window',
  create: (options) => new RateLimiterMillrace({ ...options, algorithm: 'fixed-window' }) as AnyLimiter,
}
const sliding: Kind = {
  name: 'Millrace',
  create: (options) => new RateLimiterMillrace(options) as AnyLimiter,
}
/** [remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration], after 'refused' if it was rejected. */
type Shown = (string | number | boolean)[] | null

const shownOf = (res: RateLimiterRes | null): Shown => {
  if (res === null) return null
  assert.instance(res, RateLimiterRes)
  return [res.remainingPoints, res.msBeforeNext, res.consumedPoints, res.isFirstInDuration]
}

const settled = (answer: Promise<RateLimiterRes | null>): Promise<Shown> =>
  answer.then(shownOf, (res) => {
    if (!(res instanceof RateLimiterRes)) throw res
    return ['refused', ...shownOf(res)!]
  })

for (const kind of [original, fixed, sliding]) {
  const each = suite(`rate-limiter-flexible: ${kind.name}`)
  const limited = (more: Partial<FlexibleOptions> = {}) => kind.create({ points: 2, duration: 5, ...more })
  const dated = (name: string, body: Parameters<typeof withFakeDate>[0]) =>
    each(name, () => withFakeDate(body) as Promise<void>)

  dated('consume counts points up to the limit, and rejects beyond it', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), [0, 4000, 2, false])
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 3000, 3, false])
    assert.equal(await settled(limiter.consume('key', 2)), ['refused', 0, 3000, 5, false])
    assert.equal(await settled(limiter.get('key')), [0, 3000, 5, false])
    assert.equal(await settled(limiter.consume('other')), [1, 5000, 1, true])
  })

  dated('a key has all points again after the duration', async (date) => {
    const limiter = limited()
    await limiter.consume('key', 2)
    date.tick(5000)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
  })

  dated('a call for more than is left is rejected', async () => {
    const limiter = limited()
    assert.equal(await settled(limiter.consume('key', 3)), ['refused', 0, 5000, 3, true])
    // In a sliding window its points hold nothing off.
    const next = kind === sliding ? [1, 5000, 1, true] : ['refused', 0, 5000, 4, false]
    assert.equal(await settled(limiter.consume('key')), next)
  })

  dated('consume of 0 points makes a key known', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.consume('key', 0)), [2, 5000, 0, true])
    date.tick(1000)
    assert.equal(await settled(limiter.get('key')), [2, 4000, 0, false])
  })

  dated('penalty adds points, and reward takes them back', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.penalty('key')), [1, 5000, 1, true])
    assert.equal(await settled(limiter.penalty('key', 4)), [0, 5000, 5, false])
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 5000, 6, false])
    assert.equal(await settled(limiter.reward('key', 5)), [1, 5000, 1, false])
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), [0, 4000, 2, false])
  })

  dated('a reward of more than was consumed gives more points', async (date) => {
    const limiter = limited()
    await limiter.consume('key')
    date.tick(1000)
    assert.equal(await settled(limiter.reward('key', 3)), [4, 4000, -2, false])
    assert.equal(await settled(limiter.consume('key', 4)), [0, 4000, 2, false])
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 4000, 3, false])
    assert.equal(await settled(limiter.reward('new', 1)), [3, 5000, -1, true])
  })

  dated('get changes nothing, and knows no other keys', async () => {
    const limiter = limited()
    assert.is(await limiter.get('key'), null)
    await limiter.consume('key')
    for (let i = 0; i < 3; i++) assert.equal(await settled(limiter.get('key')), [1, 5000, 1, false])
  })

  dated('set sets points for a time of their own', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.set('key', 1, 10)), [0, 10_000, 1, false])
    date.tick(6000)
    assert.equal(await settled(limiter.consume('key')), [0, 4000, 2, false])
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 4000, 3, false])
    date.tick(4000)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
  })

  dated('set for 0 seconds, and a duration of 0, are for ever', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.set('key', 1, 0)), [0, -1, 1, false])
    date.tick(1e11)
    assert.equal(await settled(limiter.consume('key')), [0, -1, 2, false])
    const forEver = limited({ duration: 0 })
    assert.equal(await settled(forEver.consume('key')), [1, -1, 1, true])
    date.tick(1e11)
    assert.equal(await settled(forEver.consume('key', 2)), ['refused', 0, -1, 3, false])
    assert.equal(await settled(forEver.get('key')), [0, -1, 3, false])
  })

  dated('block refuses a key for a time', async (date) => {
    const limiter = limited()
    await limiter.consume('key')
    assert.equal(await settled(limiter.block('key', 20)), [0, 20_000, 3, false])
    date.tick(19_999)
    assert.equal(await settled(limiter.get('key')), [0, 1, 3, false])
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 1, 4, false])
    date.tick(1)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
    assert.equal(await settled(limiter.block('other', 0)), [0, -1, 3, false])
    date.tick(1e11)
    assert.equal(await settled(limiter.consume('other')), ['refused', 0, -1, 4, false])
  })

  dated('blockDuration begins with the first call beyond the limit, once', async (date) => {
    const limiter = limited({ blockDuration: 30 })
    await limiter.consume('key', 2)
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 30_000, 3, true])
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 29_000, 4, false])
    date.tick(28_999)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 1, 5, false])
    date.tick(1)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
  })

  dated('delete forgets a key, a block too', async () => {
    const limiter = limited()
    assert.is(await limiter.delete('key'), false)
    await limiter.consume('key', 2)
    assert.is(await limiter.delete('key'), true)
    assert.is(await limiter.get('key'), null)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
    await limiter.block('key', 100)
    assert.is(await limiter.delete('key'), true)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
  })

  dated('customDuration holds for a key without points', async (date) => {
    const limiter = limited()
    assert.equal(await settled(limiter.consume('key', 1, { customDuration: 60 })), [1, 60_000, 1, true])
    date.tick(30_000)
    assert.equal(await settled(limiter.consume('key')), [0, 30_000, 2, false])
    assert.equal(await settled(limiter.penalty('fined', 1, { customDuration: 1 })), [1, 1000, 1, true])
    assert.equal(await settled(limiter.reward('kept', 1, { customDuration: 0 })), [3, -1, -1, true])
    await limiter.consume('early')
    assert.equal(await settled(limiter.consume('early', 1, { customDuration: 60 })), [0, 5000, 2, false])
    assert.equal(await settled(limiter.consume('wrong', 1, { customDuration: -1 })), [1, 5000, 1, true])
  })

  dated('durations may have fractions', async (date) => {
    const limiter = limited({ duration: 0.5 })
    assert.equal(await settled(limiter.consume('key')), [1, 500, 1, true])
    date.tick(499)
    assert.equal(await settled(limiter.consume('key')), [0, 1, 2, false])
  })

  dated('a limit of 0 points or less admits nothing', async () => {
    for (const points of [0, -1]) {
      const limiter = limited({ points })
      assert.equal(await settled(limiter.consume('key')), ['refused', 0, 5000, 1, true])
    }
  })

  dated('the limit can change', async () => {
    const limiter = limited()
    await limiter.consume('key', 2)
    limiter.points = 3
    assert.equal(await settled(limiter.consume('key')), [0, 5000, 3, false])
    limiter.points = 1
    assert.equal(await settled(limiter.get('key')), [0, 5000, 3, false])
  })

  each('settings have defaults, and are checked', () => {
    const limiter = limited()
    assert.equal([limiter.keyPrefix, limiter.blockDuration, limiter.execEvenly], ['rlflx', 0, false])
    assert.equal([limiter.points, limiter.duration, limiter.msDuration], [2, 5, 5000])
    assert.is(limiter.execEvenlyMinDelayMs, 2500)
    limiter.blockDuration = 3
    assert.is(limiter.msBlockDuration, 3000)
    assert.throws(() => limited({ points: Number.NaN }), /points/)
    assert.throws(() => limited({ duration: -1 }), /duration/)
    assert.throws(() => limited({ keyPrefix: 7 as unknown as string }), /keyPrefix/)
    assert.throws(() => kind.create(undefined as unknown as FlexibleOptions), /points/)
  })

  each('the prefix begins each key', () => {
    const limiter = limited({ keyPrefix: 'login' })
    assert.is(limiter.getKey('a'), 'login:a')
    assert.is(limiter.getKey(7), 'login:7')
    assert.is(limiter.parseKey('login:a:b'), 'a:b')
    assert.is(limited({ keyPrefix: '' }).getKey('a'), 'a')
  })

  dated('keys may be numbers, empty, long and of any characters', async () => {
    const limiter = limited({ keyPrefix: '' })
    for (const key of [7, '', '__proto__', 'é\0', 'x'.repeat(70_000), '\ud800']) {
      assert.equal(await settled(limiter.consume(key)), [1, 5000, 1, true])
      assert.equal(await settled(limiter.consume(key)), [0, 5000, 2, false])
    }
  })

  dated('two limiters count apart', async () => {
    await limited().consume('key', 2)
    assert.equal(await settled(limited().consume('key')), [1, 5000, 1, true])
  })

  dated('a RateLimiterRes shows its fields', async () => {
    const res = await limited().consume('key')
    const fields = { remainingPoints: 1, msBeforeNext: 5000, consumedPoints: 1, isFirstInDuration: true }
    assert.equal(res.toJSON(), fields)
    assert.is(res.toString(), JSON.stringify(fields))
  })

  dated('a union takes it', async () => {
    const [minute, hour] = [limited({ keyPrefix: 'minute' }), limited({ keyPrefix: 'hour', points: 1 })]
    const union = new RateLimiterUnion(minute as never, hour as never)
    const first = await union.consume('key')
    assert.equal(shownOf(first.minute!), [1, 5000, 1, true])
    assert.equal(shownOf(first.hour!), [0, 5000, 1, true])
    const second = await union.consume('key').catch((refused: Record<string, RateLimiterRes>) => refused)
    assert.equal(Object.keys(second), ['hour'])
    assert.equal(shownOf(second.hour!), [0, 5000, 2, false])
  })

  dated('a bursty limiter takes it', async () => {
    const burst = limited({ keyPrefix: 'burst', points: 1, duration: 10 })
    const bursty = new BurstyRateLimiter(limited({ points: 1 }) as never, burst as never)
    assert.equal(await settled(bursty.consume('key')), [0, 5000, 1, true])
    assert.equal(await settled(bursty.consume('key')), [0, 5000, 2, false])
    assert.equal(await settled(bursty.consume('key')), ['refused', 0, 5000, 3, false])
    assert.equal(await settled((bursty as unknown as OriginalLimiter).get('key')), [0, 5000, 3, false])
  })

  dated('a wrapper of lists takes it', async () => {
    const lists = { blackList: ['bad'], whiteList: ['good'] }
    const wrapped = new RLWrapperBlackAndWhite({ limiter: limited() as never, ...lists })
    assert.is((await settled(wrapped.consume('bad')))![0], 'refused')
    for (let i = 0; i < 4; i++)
      assert.is((await settled(wrapped.consume('good')))![0], Number.MAX_SAFE_INTEGER)
    assert.equal(await settled(wrapped.consume('key')), [1, 5000, 1, true])
  })

  each('a queue takes it, and serves its calls in order', async () => {
    const queue = new RateLimiterQueue(limited({ duration: 0.05 }) as never, { maxQueueSize: 2 })
    const served: number[] = []
    const calls = [1, 2, 3, 4].map((n) => queue.removeTokens(1).then(() => served.push(n)))
    const refused = await queue.removeTokens(1).then(String, (error: Error) => error.message)
    assert.match(refused, /maximum 2/)
    await Promise.all(calls)
    assert.equal(served, [1, 2, 3, 4])
  })

  each('a store takes it as its insurance', async () => {
    const insurance = limited()
    const storeClient = {
      status: 'end',
      defineCommand() {},
      isReady: false,
      multi: () => assert.unreachable(),
    }
    const limiter = new RateLimiterRedis({
      storeClient,
      points: 2,
      duration: 5,
      blockDuration: 7,
      rejectIfRedisNotReady: true,
      insuranceLimiter: insurance as never,
    })
    assert.is(insurance.blockDuration, 7, 'the store sets it')
    assert.is((await limiter.consume('key')).remainingPoints, 1)
    assert.is((await insurance.get('key'))?.consumedPoints, 1)
  })

  each('execEvenly delays all but the first call', async () => {
    const limiter = limited({ execEvenly: true, execEvenlyMinDelayMs: 20, points: 3, duration: 0.06 })
    const started = Date.now()
    await limiter.consume('key')
    const second = limiter.consume('key')
    let isEarly = true
    const watching = second.then(() => (isEarly = false))
    await Promise.resolve()
    assert.ok(isEarly, 'the second is delayed')
    await watching
    const { msBeforeNext } = await second
    // 60 ms are left or less, for two more calls: 20 ms or the least delay for each.
    assert.ok(Date.now() - started >= 15, `${Date.now() - started} ms`)
    assert.ok(msBeforeNext <= 45, `${msBeforeNext} ms`)
  })

  each.run()
}

const own = suite('rate-limiter-flexible: only ours')

own(
  'it is one of the limiters that the package takes, and no hop through a queue of tasks is between',
  async () => {
    const limiter = new RateLimiterMillrace({ points: 1, duration: 1 })
    assert.instance(limiter, RateLimiterCompatibleAbstract)
    let isSettled = false
    limiter.consume('key').then(() => (isSettled = true))
    await Promise.resolve()
    assert.ok(isSettled)
  },
)

own('points that it cannot count are refused by name, and change nothing', async () => {
  const limiter = new RateLimiterMillrace({ points: 5, duration: 1 })
  for (const points of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 22, '1' as unknown as number]) {
    for (const call of [
      limiter.consume('k', points),
      limiter.penalty('k', points),
      limiter.set('k', points, 1),
    ]) {
      assert.is(await call.catch((error) => error.code), 'ERR_MILLRACE_INVALID_COST', String(points))
    }
  }
  assert.is(await limiter.get('k'), null)
  await limiter.set('k', 4_194_302, 9)
  assert.is(await limiter.penalty('k', 1).catch((error) => error.code), 'ERR_MILLRACE_INVALID_COST')
})

own('a key of another type is refused by name', async () => {
  const limiter = new RateLimiterMillrace({ points: 5, duration: 1, keyPrefix: '' })
  const code = await limiter.consume({} as string).catch((error) => error.code)
  assert.is(code, 'ERR_MILLRACE_INVALID_KEY')
})

own('one length more than maxWindows is an error by name', async () => {
  const limiter = new RateLimiterMillrace({ points: 5, duration: 1, maxWindows: 2 })
  for (const seconds of [1, 2]) await limiter.set('key', 1, seconds)
  assert.is(await limiter.set('key', 1, 3).catch((error) => error.code), 'ERR_MILLRACE_INVALID_OPTION')
})

own('in a sliding window a key has at most its limit in any duration', () =>
  withFakeDate(async (date) => {
    const limiter = new RateLimiterMillrace({ points: 2, duration: 10 })
    await limiter.consume('key')
    date.tick(9000)
    await limiter.consume('key')
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), [0, 10_000, 2, false], 'the first has left')
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 8000, 3, false], 'two in 10 seconds')
  }),
)

own(
  'a limit above maxLogLimit is counted in buckets: a point returns up to a sixtieth of the duration later',
  () =>
    withFakeDate(async (date) => {
      const limiter = new RateLimiterMillrace({ points: 2, duration: 60, maxLogLimit: 0 })
      await limiter.consume('key', 2)
      const res = await limiter.consume('key').catch((refused: RateLimiterRes) => refused)
      assert.ok(res.msBeforeNext >= 60_000 && res.msBeforeNext <= 61_000, `${res.msBeforeNext} ms`)
      date.tick(res.msBeforeNext - 1)
      assert.is((await settled(limiter.consume('key')))![0], 'refused')
      date.tick(1)
      assert.equal((await settled(limiter.consume('key')))![2], 1)
    }),
)

own('memory is released, and the limiter goes on empty', async () => {
  const limiter = new RateLimiterMillrace({ points: 2, duration: 10 })
  await limiter.consume('key', 2)
  await limiter.close()
  assert.is(await limiter.get('key'), null)
})

/** A call, or time that passes. */
type Step =
  | {
      readonly do: 'consume' | 'penalty' | 'reward'
      readonly points: number
      readonly customDuration?: number
    }
  | { readonly do: 'set'; readonly points: number; readonly seconds: number }
  | { readonly do: 'block'; readonly seconds: number }
  | { readonly do: 'get' | 'delete' }
  | { readonly do: 'tick'; readonly ms: number }

async function answerTo(limiter: AnyLimiter, step: Step): Promise<unknown> {
  if (step.do === 'consume' || step.do === 'penalty' || step.do === 'reward') {
    const options = step.customDuration === undefined ? {} : { customDuration: step.customDuration }
    return settled(limiter[step.do]('key', step.points, options))
  }
  if (step.do === 'set') return settled(limiter.set('key', step.points, step.seconds))
  if (step.do === 'block') return settled(limiter.block('key', step.seconds))
  if (step.do === 'get') return settled(limiter.get('key'))
  return limiter.delete('key')
}

/** The original deletes a key by a timer of the real time: what has expired by `Date.now` is deleted here. */
async function deleteExpired(limiter: AnyLimiter): Promise<void> {
  const res = await limiter.get('key')
  if (res && res.msBeforeNext !== -1 && res.msBeforeNext <= 0) await limiter.delete('key')
}

const seconds = fc.constantFrom(0, 1, 2.5, 5, 60)
const amount = fc.integer({ min: 0, max: 4 })
const anyCall: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom('consume' as const, 'penalty' as const, 'reward' as const),
    points: amount,
    customDuration: fc.option(seconds, { nil: undefined }),
  }) as fc.Arbitrary<Step>,
  fc.record({ do: fc.constant('consume' as const), points: amount }),
  fc.record({ do: fc.constant('set' as const), points: fc.integer({ min: -3, max: 6 }), seconds }),
  fc.record({ do: fc.constant('block' as const), seconds }),
  fc.record({ do: fc.constantFrom('get' as const, 'get' as const, 'delete' as const) }),
)

function sideBySide(kind: Kind, steps: fc.Arbitrary<Step[]>): Promise<void> {
  const options = fc.record({
    points: fc.integer({ min: 0, max: 6 }),
    duration: fc.constantFrom(0, 1, 2.5, 5),
    blockDuration: fc.constantFrom(0, 0, 3, 30),
  })
  return fc.assert(
    fc.asyncProperty(options, steps, (given, played) =>
      withFakeDate(async (date) => {
        const pair = [original.create(given), kind.create(given)] as const
        for (const [i, step] of played.entries()) {
          if (step.do === 'tick') {
            date.tick(step.ms)
            continue
          }
          await deleteExpired(pair[0])
          const [expected, actual] = [await answerTo(pair[0], step), await answerTo(pair[1], step)]
          assert.equal(actual, expected, `step ${i} of ${JSON.stringify(played)}`)
        }
      }, START_MS),
    ),
    { numRuns: 400, seed: 7 },
  )
}

own('random calls in a fixed window: equal answers', () => {
  const tick = fc.record({
    do: fc.constant('tick' as const),
    ms: fc.constantFrom(1, 400, 999, 1000, 2500, 61_000),
  })
  return sideBySide(fixed, fc.array(fc.oneof({ weight: 4, arbitrary: anyCall }, tick), { maxLength: 25 }))
})

own('random calls within one duration in a sliding window: equal answers', () => {
  // A reward takes the oldest points. A refused call for more than one point may leave room.
  const calls = anyCall.filter((step) => step.do !== 'reward' && !(step.do === 'consume' && step.points > 1))
  return sideBySide(sliding, fc.array(calls, { maxLength: 25 }))
})

own.run()
