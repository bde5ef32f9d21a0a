// run: once, also-full, also-long
// Rules that charge their refusals (`countRefused`), and rules that never refuse (`shadow`).
import * as assert from 'uvu/assert'
import { resolved } from '../limiter/support.js'
import { type Claims, codeOf, conform, FIVE, isServer } from './suite.js'

const COUNTING: Claims = {
  'charges a refusal, and computes exactly when the same request fits': async ({ limiter, clock, times }) => {
    for (let i = 0; i < 5; i++) assert.ok((await limiter.check('key')).allowed)
    clock.advance(10_000)
    const refused = await limiter.check('key')
    const six = times().untilFits(1, [0, 5], [10_000, 1])
    assert.equal([refused.allowed, refused.remaining, refused.retryAfterMs], [false, 0, six])
    assert.is(await limiter.usage('key'), 6)
    const large = await limiter.check('key', 5)
    const eleven = times().untilFits(5, [0, 5], [10_000, 6])
    assert.is(large.retryAfterMs, eleven, 'until the refusals themselves have left the window')
    assert.is(await limiter.usage('key'), 11)
    clock.advance(eleven - 1)
    assert.not((await limiter.peek('key', 5)).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key', 5)).allowed)
  },
  'never admits a client that does not pause, and admits one that pauses': async (subject) => {
    const { limiter, clock, times, algorithm } = subject
    for (let i = 0; i < 5; i++) await limiter.check('key')
    // A fixed window forgets at its end also those that do not pause.
    const [stepMs, steps] = algorithm.hasBoundaries ? [1, 10] : [10_000, 100]
    for (let i = 0; i < steps; i++) {
      clock.advance(stepMs)
      assert.not((await limiter.check('key')).allowed)
    }
    clock.advance(times().untilEmpty([steps * stepMs, 5 + steps]))
    assert.ok((await limiter.check('key')).allowed)
    const { allowed, denied } = await limiter.stats()
    assert.equal([allowed, denied], [6, steps])
  },
  'charges refusals of batches, in order': async ({ limiter, times, algorithm }) => {
    const batch = await limiter.checkMany(['a', 'a', 'b', 'a'], [4, 2, 1, 1], { remaining: true })
    assert.equal([...batch.allowed], [1, 0, 1, 0], 'the refused 2 leave no room for the last 1')
    assert.equal([...batch.remaining!], [1, 0, 4, 0])
    assert.is(batch.retryAfterMs(3), times().untilFits(1, [0, 7]))
    assert.equal([await limiter.usage('a'), await limiter.usage('b')], [7, 1])
    const many = Array.from({ length: 100 }, () => 'c')
    assert.is((await limiter.checkMany(many)).allowed.filter(Boolean).length, 5)
    assert.is(await limiter.usage('c'), Math.min(100, algorithm.mostUsed?.(5) ?? 100))
  },
  'charges refusals of handles, of reservations and of limits of a call': async ({ limiter, algorithm }) => {
    const handle = limiter.handle('key')
    for (let i = 0; i < 7; i++) await limiter.check(handle)
    assert.not((await limiter.reserve('key', 3)).decision.allowed)
    assert.not((await limiter.check('key', 1, { limit: 2 })).allowed)
    assert.is(await codeOfLimited(() => limiter.checkOrThrow('key')), 'ERR_MILLRACE_LIMITED')
    // A unit of a bucket by the limit 2 is two and a half by the limit 5.
    assert.is(await limiter.usage('key'), algorithm.countsInParts ? 14 : 12)
  },
  'charges no peek, no cost above the limit, no attempt of wait, and no key without a place': async ({
    limiter,
  }) => {
    await limiter.check('key', 5)
    await limiter.peek('key', 5)
    assert.is((await limiter.check('key', 6)).retryAfterMs, Number.POSITIVE_INFINITY)
    const waiting = limiter.wait('key')
    for (let i = 0; i < 3; i++) {
      await limiter.peek('key')
      await limiter.refund('other', 1)
      await limiter.block('key', '1s')
      await limiter.unblock('key')
    }
    assert.is(await limiter.usage('key'), 5)
    await limiter.clear('key')
    assert.ok((await resolved(waiting)).allowed)
    assert.is(await limiter.usage('key'), 1)
  },
  'charges no cost above the limit to a key whose window was summed just now': async ({ limiter }) => {
    await limiter.check('key', 5)
    await limiter.refund('key', 1)
    assert.ok((await limiter.check('key')).allowed, 'by a sum, which is noted')
    for (const cost of [6, 9]) {
      assert.is((await limiter.check('key', cost)).retryAfterMs, Number.POSITIVE_INFINITY)
      assert.is(await limiter.usage('key'), 5)
    }
  },
  'charges refusals of a block, and refunds none of them': async ({ limiter, clock, times }) => {
    await limiter.block('key', '20s')
    const refused = await limiter.check('key', 5)
    assert.is(await limiter.refund(refused), 0)
    assert.is(await limiter.usage('key'), 5)
    clock.advance(21_000)
    const isRefused = times().used([0, 5]) > 0
    const retryAfterMs = isRefused ? times().untilFits(5, [0, 5], [21_000, 5]) : 0
    assert.is((await limiter.check('key', 5)).retryAfterMs, retryAfterMs)
  },
  'charges refusals of another limiter on the same counts': async ({ limiter, second }) => {
    const attached = second()
    for (let i = 0; i < 8; i++) await attached.check('key')
    await attached.checkMany(['key', 'key'])
    assert.is(await limiter.usage('key'), 10)
  },
}

const SHADOWED: Claims = {
  'allows everything, counts, and has the refusal in `shadow`': async ({ limiter, clock, times }) => {
    for (let left = 4; left >= 0; left--) {
      const { allowed, remaining, shadow } = await limiter.check('key')
      assert.equal([allowed, remaining, shadow], [true, left, { allowed: true, retryAfterMs: 0 }])
    }
    const decision = await limiter.check('key', 2)
    const { allowed, remaining, retryAfterMs, retryAfterSeconds, shadow } = decision
    assert.equal([allowed, remaining, retryAfterMs, retryAfterSeconds], [true, 0, 0, 0])
    assert.equal(shadow, { allowed: false, retryAfterMs: times().untilFits(2, [0, 5]) })
    assert.equal(decision.toJSON().shadow, shadow)
    assert.is(await limiter.usage('key'), 5, 'the request would not have run')
    assert.is(await limiter.refund(decision), 0)
    clock.advance(times().untilEmpty([0, 5]))
    assert.ok((await limiter.check('key', 2)).shadow!.allowed)
    const stats = await limiter.stats()
    assert.equal([stats.allowed, stats.denied, stats.shadowDenied], [7, 0, 1])
  },
  'allows a cost above the limit and a blocked key': async ({ limiter }) => {
    const above = await limiter.check('key', 6)
    assert.equal([above.allowed, above.shadow], [true, { allowed: false, retryAfterMs: Infinity }])
    assert.is(above.toJSON().shadow!.retryAfterMs, Number.MAX_SAFE_INTEGER)
    await limiter.block('key', Number.POSITIVE_INFINITY)
    for (const cost of [0, 1]) {
      const blocked = await limiter.check('key', cost)
      assert.equal([blocked.allowed, blocked.shadow], [true, { allowed: false, retryAfterMs: Infinity }])
    }
    assert.is((await limiter.stats()).shadowDenied, 3)
  },
  'allows batches': async ({ limiter }) => {
    const keys = Array.from({ length: 20 }, (_, i) => (i < 12 ? 'a' : 'b'))
    const batch = await limiter.checkMany(keys, 1, { remaining: true })
    assert.equal(
      [...batch.allowed],
      keys.map(() => 1),
    )
    assert.equal([batch.retryAfterMs(11), [...batch.remaining!].slice(10, 13)], [0, [0, 0, 4]])
    assert.equal([await limiter.usage('a'), await limiter.usage('b')], [5, 5])
    const { allowed, denied, shadowDenied } = await limiter.stats()
    assert.equal([allowed, denied, shadowDenied], [20, 0, 10])
  },
  'never waits, and never throws a refusal': async ({ limiter, times }) => {
    await limiter.check('key', 5)
    const waited = await resolved(limiter.wait('key', { cost: 5 }))
    const retryAfterMs = times().untilFits(5, [0, 5])
    assert.equal([waited.allowed, waited.shadow], [true, { allowed: false, retryAfterMs }])
    assert.ok((await resolved(limiter.wait('key', { cost: 9 }))).allowed)
    assert.ok((await limiter.checkOrThrow('key', 3, { limit: 7 })).allowed)
  },
  'peeks, and reserves': async ({ limiter, times }) => {
    await limiter.check('key', 4)
    assert.equal((await limiter.peek('key')).shadow, { allowed: true, retryAfterMs: 0 })
    const retryAfterMs = times().untilFits(2, [0, 4])
    assert.equal((await limiter.peek('key', 2)).shadow, { allowed: false, retryAfterMs })
    assert.is((await limiter.stats()).shadowDenied, 0)
    const reserved = await limiter.reserve('key', 2)
    assert.ok(reserved.decision.allowed)
    assert.is(await reserved.commit(9), 0, 'the request would not have run')
    assert.is(await codeOf(async () => reserved.cancel()), 'ERR_MILLRACE_SETTLED')
    const other = await limiter.reserve('other', 2)
    assert.is(await other.commit(3), 1)
    assert.equal([await limiter.usage('key'), await limiter.usage('other')], [4, 3])
  },
  'allows in another limiter on the same counts': async ({ place, limiter, second, times }) => {
    const attached = second()
    for (let i = 0; i < 8; i++) assert.ok((await attached.check('key')).allowed)
    const retryAfterMs = times().untilFits(1, [0, 5])
    assert.equal((await attached.peek('key')).shadow, { allowed: false, retryAfterMs })
    const own = await attached.stats() // counts its decisions in the shared statistics
    assert.is((isServer(place) ? own : await limiter.stats()).shadowDenied, 3)
  },
}

const BOTH: Claims = {
  'a rule with both options charges and allows the requests that it would have refused': async ({
    limiter,
    times,
  }) => {
    for (let i = 0; i < 8; i++) assert.ok((await limiter.check('key')).allowed)
    assert.is(await limiter.usage('key'), 8)
    const retryAfterMs = times().untilFits(1, [0, 9])
    assert.equal((await limiter.check('key')).shadow, { allowed: false, retryAfterMs })
  },
}

const WITHOUT_ROOM: Claims = {
  'a new key without a place is allowed in shadow mode, and counted as shadowDenied': async ({ limiter }) => {
    const keys = Array.from({ length: 200 }, (_, i) => `key ${i}`)
    assert.equal(
      [...(await limiter.checkMany(keys)).allowed],
      keys.map(() => 1),
    )
    const { noRoom, shadowDenied } = await limiter.stats()
    assert.ok(noRoom > 0 && shadowDenied === noRoom, `${noRoom}, ${shadowDenied}`)
    const none = await limiter.check('one more')
    assert.equal([none.allowed, none.shadow!.allowed, none.shadow!.retryAfterMs > 0], [true, false, true])
  },
}

const PLAIN: Claims = {
  'a rule without these options has no field `shadow`, and charges no refusal': async ({ limiter }) => {
    for (let i = 0; i < 7; i++) assert.is((await limiter.check('key')).shadow, undefined)
    assert.not('shadow' in (await limiter.check('key')).toJSON())
    assert.equal([await limiter.usage('key'), (await limiter.stats()).shadowDenied], [5, 0])
  },
}

async function codeOfLimited(act: () => unknown): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return (error as { code: unknown }).code
  }
  return undefined
}

conform(
  [
    [COUNTING, { ...FIVE, countRefused: true }],
    [SHADOWED, { ...FIVE, shadow: true }],
    [BOTH, { ...FIVE, countRefused: true, shadow: true }],
    [WITHOUT_ROOM, { ...FIVE, shadow: true, onFull: 'deny' }],
    [PLAIN, { ...FIVE, countRefused: false, shadow: false }],
  ],
  /a new key without a place/,
)
