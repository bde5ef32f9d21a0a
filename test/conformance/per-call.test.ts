// run: once, also-full, also-long
// Limits of one call, `checkOrThrow`, and reservations.
import { type AsyncReservation, MillraceError, MillraceLimited, type Reservation } from 'millrace'
import * as assert from 'uvu/assert'
import { resolved } from '../limiter/support.js'
import { type Claims, codeOf, conform, FIVE, type Subject, thrownBy } from './suite.js'

/** A limit of a call changes the part of the bucket that a unit takes. */
async function decidesInParts({ limiter, clock, times }: Subject): Promise<void> {
  const twice = { limit: 10 }
  assert.is((await limiter.check('key', 4, twice)).remaining, 6)
  assert.is((await limiter.peek('key', 1)).remaining, 3, 'two of five')
  assert.is((await limiter.check('key', 3)).remaining, 0)
  for (const options of [{}, twice]) assert.not((await limiter.check('key', 1, options)).allowed)
  assert.equal(
    [await limiter.usage('key'), (await limiter.peek('key', 11, twice)).retryAfterMs],
    [5, Infinity],
  )
  const charges = [
    [0, 4, 10],
    [0, 3, 5],
  ] as const
  const { retryAfterMs } = await limiter.check(limiter.handle('key'), 2, twice)
  assert.is(retryAfterMs, times({ ...limiter.rule, limit: 10 }).untilFits(2, ...charges))
  clock.advance(retryAfterMs)
  assert.ok((await limiter.check('key', 2, twice)).allowed)
  const given = await limiter.check('other', 5, twice)
  assert.equal([await limiter.refund(given), await limiter.usage('other')], [5, 0])
  assert.equal([(await limiter.peek('new', 9, twice)).remaining, limiter.rule.limit], [10, 5])
}

const CLAIMS: Claims = {
  'decides by the limit of a call, and keeps one count': async (subject) => {
    const { limiter, times } = subject
    if (subject.algorithm.countsInParts) return decidesInParts(subject)
    assert.ok((await limiter.check('key', 7, { limit: 10 })).allowed)
    const { allowed, limit, remaining } = await limiter.check('key')
    assert.equal([allowed, limit, remaining], [false, 5, 0], 'by the limit of the rule')
    for (const left of [2, 1, 0]) {
      const admitted = await limiter.check('key', 1, { limit: 10 })
      assert.equal([admitted.allowed, admitted.limit, admitted.remaining], [true, 10, left])
    }
    const refused = await limiter.check(limiter.handle('key'), 1, { limit: 10 })
    const retryAfterMs = times({ ...limiter.rule, limit: 10 }).untilFits(1, [0, 10])
    assert.equal([refused.allowed, refused.limit, refused.retryAfterMs], [false, 10, retryAfterMs])
    assert.is(await limiter.usage('key'), 10)
    assert.ok((await limiter.check('key', 1, { limit: 11 })).allowed)
    assert.is((await limiter.check('key', 4, { limit: 3 })).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.is(limiter.rule.limit, 5)
    await limiter.check('other', 1, {})
    assert.is((await limiter.check('other')).limit, 5)
  },
  'a limit of 0 refuses, and Infinity passes uncounted': async ({ limiter, clock }) => {
    const [none, all] = [{ limit: 0 }, { limit: Number.POSITIVE_INFINITY }] as const
    const text = { limit: 'unlimited' } as const
    for (const key of ['new', 'used', limiter.handle('held')]) {
      if (key === 'used') await limiter.check(key, 2)
      const used = key === 'used' ? 2 : 0
      for (const method of ['check', 'peek'] as const) {
        for (const options of [all, text]) {
          const { allowed, limit, remaining, retryAfterMs, resetMs, rules } = await limiter[method](
            key,
            7,
            options,
          )
          assert.equal([allowed, limit, remaining], [true, Infinity, Infinity])
          assert.equal([retryAfterMs, resetMs, rules[0]!.limit], [0, 0, Infinity])
        }
        const { allowed, limit, remaining, retryAfterMs, resetMs } = await limiter[method](key, 1, none)
        assert.equal([allowed, limit, remaining, retryAfterMs, resetMs], [false, 0, 0, Infinity, 0])
        assert.ok((await limiter[method](key, 0, none)).allowed, 'nothing is within a limit of 0')
      }
      assert.is(await limiter.usage(key), used)
      assert.is((await limiter.check(key, 0)).remaining, 5 - used)
    }
    assert.is(await limiter.refund(await limiter.check('used', 3, all)), 0)
    const json = JSON.parse(JSON.stringify(await limiter.check('used', 3, all)))
    assert.equal([json.limit, json.remaining], [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])
    const reserved = await limiter.reserve('used', 2, all)
    await reserved.commit(4)
    assert.is((await limiter.wait('used', { cost: 9, ...all })).limit, Infinity)
    assert.is(await codeOf(() => limiter.wait('used', none)), 'ERR_MILLRACE_NEVER_ADMITTED')
    assert.is(await limiter.usage('used'), 2)
    await limiter.block('used', 5_000)
    for (const options of [all, none]) {
      const { allowed, remaining, retryAfterMs } = await limiter.check('used', 0, options)
      assert.equal([allowed, remaining, retryAfterMs], [false, 0, 5_000], 'blocked is refused')
    }
    clock.advance(5_000)
    assert.ok((await limiter.check('used', 1, all)).allowed)
  },
  'peeks by the limit of a call': async ({ limiter, algorithm }) => {
    if (algorithm.countsInParts) return
    await limiter.check('key', 5)
    for (const [cost, limit, allowed] of [
      [1, undefined, false],
      [1, 6, true],
      [2, 6, false],
      [3, 2, false],
    ] as const) {
      const decision = await limiter.peek('key', cost, limit === undefined ? {} : { limit })
      assert.equal([decision.allowed, decision.limit], [allowed, limit ?? 5])
    }
    assert.equal([await limiter.usage('key'), (await limiter.peek('new', 1, { limit: 9 })).remaining], [5, 9])
  },
  'waits by the limit of a call': async ({ limiter, clock, times, algorithm }) => {
    await limiter.check('key', 5)
    if (algorithm.countsInParts) clock.advance(18_000) // two of seven parts come back
    assert.is((await limiter.wait('key', { cost: 2, limit: 7 })).remaining, 0)
    let isServed = false
    const waiting = limiter.wait('key', { limit: 7 }).then(() => (isServed = true))
    await limiter.peek('key')
    assert.not(isServed)
    clock.advance(times().untilEmpty([0, 7]))
    await resolved(waiting)
    const never = codeOf(() => limiter.wait('key', { cost: 3, limit: 2 }))
    assert.is(await never, 'ERR_MILLRACE_NEVER_ADMITTED')
  },
  'checkOrThrow throws an error that has the decision': async ({ limiter, times, algorithm }) => {
    assert.is((await limiter.checkOrThrow('key', 5)).remaining, 0)
    // In parts of the limit, nothing is left for another one either.
    const more = algorithm.countsInParts ? 0 : 1
    assert.is((await limiter.checkOrThrow('key', more, { limit: 6 })).limit, 6)
    const error = await thrownBy(async () => limiter.checkOrThrow('key'))
    assert.ok(error instanceof MillraceLimited && !(error instanceof MillraceError))
    const { code, name, decision } = error
    const seconds = Math.ceil(times().untilFits(1, [0, 5 + more]) / 1_000)
    assert.equal([code, name], ['ERR_MILLRACE_LIMITED', 'MillraceLimited'])
    assert.equal([decision.allowed, decision.retryAfterSeconds], [false, seconds])
    assert.is(error.message, `refused by rule "default" of 5: retry after ${seconds} s`)
    assert.is(await limiter.refund(decision), 0)
    assert.is(await codeOf(async () => limiter.checkOrThrow('')), 'ERR_MILLRACE_INVALID_KEY')
  },
  'settles a reservation with a smaller cost, a larger one, or 0': async ({ limiter }) => {
    const less = await limiter.reserve('less', 4)
    assert.equal([less.decision.allowed, less.decision.remaining], [true, 1])
    assert.is(await less.commit(1), -3)
    assert.is(await limiter.usage('less'), 1)
    const same = await limiter.reserve('same', 4)
    assert.is(await same.commit(), 0)
    assert.is(await limiter.usage('same'), 4)
    const more = await limiter.reserve('more', 4)
    assert.is(await more.commit(9), 5)
    assert.equal([await limiter.usage('more'), (await limiter.check('more')).allowed], [9, false])
    const none = await limiter.reserve('none', 4)
    assert.is(await none.cancel(), 4)
    assert.is(await limiter.usage('none'), 0)
    const unknown = await limiter.reserve('unknown', 0)
    assert.is(await unknown.commit(3), 3)
    assert.is(await limiter.usage('unknown'), 3)
  },
  'settles a reservation once, and no refused reservation': async ({ limiter }) => {
    for (const settle of ['commit', 'cancel'] as const) {
      const reservation = await limiter.reserve('key', 2)
      await reservation[settle]()
      for (const again of ['commit', 'cancel'] as const)
        assert.is(
          await codeOf(async () => reservation[again]()),
          'ERR_MILLRACE_SETTLED',
          `${settle} ${again}`,
        )
    }
    const twice = await limiter.reserve('key', 1)
    const both = [codeOf(async () => twice.commit()), codeOf(async () => twice.cancel())]
    assert.equal(await Promise.all(both), ['nothing was thrown', 'ERR_MILLRACE_SETTLED'])
    const refunded = await limiter.reserve('key', 2)
    assert.is(await limiter.refund(refunded.decision), 2)
    assert.is(await codeOf(async () => refunded.commit(1)), 'ERR_MILLRACE_SETTLED')
    const refused = await limiter.reserve('key', 9)
    assert.not(refused.decision.allowed)
    for (const settle of ['commit', 'cancel'] as const)
      assert.is(await codeOf(async () => refused[settle]()), 'ERR_MILLRACE_NOT_RESERVED')
    assert.is(await limiter.usage('key'), 3)
  },
  'gives back only what a commit has left, and nothing by a refund of the decision afterwards': async ({
    limiter,
  }) => {
    const reservation = await limiter.reserve('key', 3)
    await limiter.check('key', 2)
    assert.is(await reservation.commit(1), -2)
    assert.is(await limiter.refund(reservation.decision), 0)
    assert.is(await limiter.usage('key'), 3)
  },
  'gives back nothing of a reservation that has left the window or was refunded by key': async ({
    limiter,
    clock,
    times,
  }) => {
    const taken = await limiter.reserve('key', 3)
    await limiter.refund('key', 1)
    assert.is(await taken.commit(1), 0)
    assert.is(await limiter.usage('key'), 2)
    const expired = await limiter.reserve('other', 3)
    clock.advance(times().untilEmpty([0, 3]))
    await limiter.check('other', 2)
    assert.is(await expired.cancel(), 0)
    assert.is(await limiter.usage('other'), 2)
  },
  'leaves a reservation unsettled after a bad cost': async ({ limiter }) => {
    const reservation = await limiter.reserve('key', 3, { limit: 3 })
    for (const cost of [-1, 0.5, Number.NaN, '1', null, 1n, 3 + 4_194_304]) {
      const code = await codeOf(async () => reservation.commit(cost as never))
      assert.is(code, 'ERR_MILLRACE_INVALID_COST', `${cost}`)
    }
    assert.is(await reservation.commit(3 + 4_194_303), 4_194_303)
    for (const cost of [undefined, -1, 0.5, '1'])
      assert.is(await codeOf(async () => limiter.reserve('key', cost as never)), 'ERR_MILLRACE_INVALID_COST')
  },
  'wakes a pending call for the key of a reservation that gives units back': async ({ limiter }) => {
    for (const settle of [
      (reservation: Reservation | AsyncReservation) => reservation.commit(2),
      (reservation: Reservation | AsyncReservation) => reservation.cancel(),
    ]) {
      const reservation = await limiter.reserve('key', 5)
      const waiting = limiter.wait('key', { cost: 3 })
      await limiter.peek('key')
      await settle(reservation)
      assert.ok((await resolved(waiting)).allowed)
      await limiter.clear('key')
    }
  },
  'settles no reservation after close': async ({ limiter }) => {
    const reservation = await limiter.reserve('key', 3)
    await limiter.close()
    assert.is(await codeOf(async () => reservation.commit(1)), 'ERR_MILLRACE_CLOSED')
    assert.is(await codeOf(async () => reservation.cancel()), 'ERR_MILLRACE_CLOSED')
  },
}

conform([[CLAIMS, FIVE]], /^$/, /or was refunded by key/)
