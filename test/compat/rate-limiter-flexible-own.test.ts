// run: typescript, full, also-long
// What the limiter in place of rate-limiter-flexible has of its own, and random calls of it and of the original.

import { RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import { RateLimiterCompatibleAbstract, type RateLimiterRes } from 'rate-limiter-flexible'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { START_MS, withFakeDate } from './fake-date.js'
import { type AnyLimiter, fixed, type Kind, original, settled, sliding } from './flexible.js'

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

const isForNothing = (step: Step): boolean => step.do === 'penalty' && step.points === 0

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

own('random calls in a sliding window from which nothing leaves: equal answers', () => {
  // After a call for 0 points, the oldest point is younger than the record of the original.
  const calls = anyCall.filter(
    (step) => step.do !== 'reward' && !(step.do === 'consume' && step.points !== 1) && !isForNothing(step),
  )
  const tick = fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 39 }) })
  return sideBySide(sliding, fc.array(fc.oneof({ weight: 3, arbitrary: calls }, tick), { maxLength: 25 }))
})

own.run()
