// run: typescript
// The limiter in memory of rate-limiter-flexible and ours, side by side. Sources: the wiki, the readme and the types
// of rate-limiter-flexible 11.

import type { FlexibleOptions } from 'millrace/compat/rate-limiter-flexible'
import {
  BurstyRateLimiter,
  type RateLimiterMemory as OriginalLimiter,
  RateLimiterQueue,
  RateLimiterRedis,
  type RateLimiterRes,
  RateLimiterUnion,
  RLWrapperBlackAndWhite,
} from 'rate-limiter-flexible'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { withFakeDate } from './fake-date.js'
import { fixed, original, settled, shownOf, sliding } from './flexible.js'

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
    assert.equal(await settled(limiter.consume('key')), [1, 4000, 1, false])
  })

  dated('a key whose points were all taken back is known until its duration ends', async (date) => {
    const limiter = limited()
    await limiter.consume('key')
    date.tick(1000)
    assert.equal(await settled(limiter.reward('key')), [2, 4000, 0, false])
    assert.equal(await settled(limiter.get('key')), [2, 4000, 0, false])
    assert.equal(await settled(limiter.reward('key')), [3, 4000, -1, false])
    date.tick(4000)
    assert.equal(await settled(limiter.consume('key')), [1, 5000, 1, true])
    date.tick(1000)
    assert.equal(await settled(limiter.reward('key')), [2, 4000, 0, false])
    date.tick(3999)
    assert.equal(await settled(limiter.get('key')), [2, 1, 0, false])
  })

  dated('a penalty counts with refused points, and like other points', async (date) => {
    const limiter = limited()
    await limiter.penalty('key', 2)
    date.tick(1000)
    assert.equal(await settled(limiter.consume('key')), ['refused', 0, 4000, 3, false])
    assert.equal(await settled(limiter.penalty('key')), [0, 4000, 4, false])
    date.tick(1)
    assert.equal(await settled(limiter.get('key')), [0, 3999, 4, false])
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
