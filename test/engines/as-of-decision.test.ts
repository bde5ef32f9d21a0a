// run: full, also-long
// A decision's figures are as of the decision, however late they are read. They are exact if the key has not
// changed since; otherwise never more `remaining`, and never an earlier `retryAfterMs` or `resetMs`, than was
// true then. In both engines.

import { createLimiter, type Decision, type Duration, type LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { START_MS } from '../limiter/support.js'
import { decidedBy, type Either, ENGINES, type Engine } from './both.js'

const END_MS = 61_000 - (START_MS % 1_000)

interface Clock {
  advance(ms: number): void
}

/** An event between a decision on `'key'` and the reading of its figures. */
type Meanwhile = (limiter: Either, clock: Clock) => unknown

const ELSEWHERE: Record<string, Meanwhile> = {
  nothing: () => {},
  'time passing within the granule': (_, clock) => clock.advance(100),
  'half a window passing': (_, clock) => clock.advance(30_000),
  'more than a window passing': (_, clock) => clock.advance(62_000),
  'years passing': (_, clock) => clock.advance(1e11),
  'the clock stepping back': (_, clock) => clock.advance(-10_000),
  'decisions on other keys': async (limiter) => {
    for (let i = 0; i < 10; i++) await limiter.check(`other ${i}`)
  },
  'a refund to another key': async (limiter) => limiter.refund(await limiter.check('other')),
  'a peek and a usage of the key': async (limiter) => [
    await limiter.peek('key', 3),
    await limiter.usage('key'),
  ],
  'another limit': (limiter) => limiter.update('default', { limit: 9 }),
}

const ON_THE_KEY: Record<string, Meanwhile> = {
  'an admission': (limiter) => limiter.check('key', 1),
  'a refusal': (limiter) => limiter.check('key', 5),
  'a refund': (limiter) => limiter.refund('key', 1),
  'a refund of everything': (limiter) => limiter.refund('key', 9),
  'a clear': (limiter) => limiter.clear('key'),
  'a clear, and a charge': async (limiter) => [await limiter.clear('key'), await limiter.check('key', 2)],
  'a penalty': (limiter) => limiter.penalize('key', 9),
  'a block': (limiter) => limiter.block('key', '1h'),
  'a block and its end': async (limiter) => [await limiter.block('key', '1h'), await limiter.unblock('key')],
  'an admission a granule later': (limiter, clock) => [clock.advance(1_000), limiter.check('key', 1)],
  'an admission a window later': (limiter, clock) => [clock.advance(62_000), limiter.check('key', 5)],
  'an eviction': async (limiter) => {
    for (let i = 0; i < 200; i++) await limiter.check(`newcomer ${i}`, 5)
  },
}

/** Uses two units that expire, then two, and one ten seconds later. */
async function used(limiter: Either, clock: Clock): Promise<Decision> {
  await limiter.check('key', 2)
  clock.advance(70_000)
  await limiter.check('key', 2)
  clock.advance(10_000)
  return limiter.check('key', 1)
}

const AT_MS = START_MS + 70_000
const FIRST_GONE_MS = 61_000 - (AT_MS % 1_000)

/** A pool computes the figures together with the reply, so it needs only a few of the changes. */
const few = ['nothing', 'half a window passing', 'a clear', 'a penalty']
const of = (changes: Record<string, Meanwhile>, engine: Engine) =>
  Object.entries(changes).filter(([name]) => engine === 'inline' || few.includes(name))

for (const engine of ENGINES) {
  for (const [name, meanwhile] of of(ELSEWHERE, engine)) {
    test(`${engine}: figures are exact after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      const admitted = await used(limiter, clock)
      const refused = await limiter.check('key', 3)
      const again = await limiter.check('key', 5)
      const peeked = await limiter.peek('key', 4)
      await meanwhile(limiter, clock)
      assert.is(peeked.remaining, 2)
      assert.is(peeked.retryAfterMs, FIRST_GONE_MS - 10_000)
      assert.is(again.remaining, 2)
      assert.is(again.retryAfterMs, FIRST_GONE_MS, 'every unit must expire')
      assert.is(again.retryAfterSeconds, Math.ceil(FIRST_GONE_MS / 1_000))
      assert.is(again.resetMs, FIRST_GONE_MS)
      assert.ok(admitted.remaining <= 2 && admitted.remaining >= 0)
      assert.is(admitted.resetMs, FIRST_GONE_MS, 'its own charge expires last')
      assert.ok(refused.retryAfterMs >= FIRST_GONE_MS - 10_000)
    })

    test(`${engine}: figures of an admission are exact after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      const admitted = await used(limiter, clock)
      await meanwhile(limiter, clock)
      assert.is(admitted.remaining, 2)
      assert.is(admitted.resetMs, FIRST_GONE_MS)
      assert.equal([admitted.retryAfterMs, admitted.retryAfterSeconds], [0, 0])
    })
  }

  for (const [name, meanwhile] of of(ON_THE_KEY, engine)) {
    test(`${engine}: an admission promises no more than was true after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      const admitted = await used(limiter, clock)
      await meanwhile(limiter, clock)
      assert.ok(admitted.remaining <= 2 && admitted.remaining >= 0, `${admitted.remaining} of 2`)
      assert.is(admitted.resetMs, FIRST_GONE_MS)
      assert.is(admitted.retryAfterMs, 0)
      const { remaining } = admitted
      await limiter.clear('key')
      assert.is(admitted.remaining, remaining, 'a figure that was read does not change')
    })

    test(`${engine}: a refusal and a peek promise nothing earlier than was true after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      await used(limiter, clock)
      await limiter.check('key', 3) // sums
      for (const decide of ['check', 'peek'] as const) {
        await using twin = decidedBy(engine)
        await used(twin.limiter, twin.clock)
        const decision = await twin.limiter[decide]('key', 3)
        await meanwhile(twin.limiter, twin.clock)
        assert.not(decision.allowed)
        assert.ok(decision.remaining <= 2, `${decide}: ${decision.remaining} of 2`)
        const { retryAfterMs, resetMs } = decision
        assert.ok(retryAfterMs >= FIRST_GONE_MS - 10_000, `${decide}: ${retryAfterMs} ms`)
        assert.ok(retryAfterMs <= FIRST_GONE_MS + 10_000, `${decide}: ${retryAfterMs} ms`)
        assert.ok(resetMs >= FIRST_GONE_MS, `${decide}: ${resetMs} ms`)
        await twin.limiter.clear('key')
        assert.equal(
          [decision.retryAfterMs, decision.resetMs],
          [retryAfterMs, resetMs],
          'figures do not change',
        )
      }
    })

    test(`${engine}: a blocked key's refusal names the end of the block that refused it, after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      await limiter.block('key', '2h')
      const refused = await limiter.check('key')
      const free = await limiter.check('key', 0)
      const forEver = await limiter.check('key', 6)
      await meanwhile(limiter, clock)
      for (const decision of [refused, free]) {
        assert.not(decision.allowed)
        assert.is(decision.remaining, 0)
        assert.ok(decision.retryAfterMs >= 7_200_000, `${decision.retryAfterMs}`)
        assert.ok(decision.retryAfterMs < 7_200_063, `${decision.retryAfterMs}`)
        assert.ok(decision.resetMs >= 7_200_000 && decision.resetMs < 7_200_063, `${decision.resetMs}`)
      }
      assert.equal([forEver.retryAfterMs, forEver.remaining], [Number.POSITIVE_INFINITY, 0])
    })

    test(`${engine}: a batch's refusals promise nothing earlier than was true after ${name}`, async () => {
      await using made = decidedBy(engine)
      const { limiter, clock } = made
      await used(limiter, clock)
      await limiter.block('blocked', '2h')
      const batch = await limiter.checkMany(['key', 'key', 'blocked', 'new'], [1, 2, 1, 6], {
        remaining: true,
      })
      await meanwhile(limiter, clock)
      assert.equal([...batch.allowed], [1, 0, 0, 0])
      assert.equal([...batch.remaining!], [1, 1, 0, 5])
      assert.equal([batch.retryAfterMs(0), batch.retryAfterSeconds(0)], [0, 0])
      const first = batch.retryAfterMs(1)
      assert.ok(first >= FIRST_GONE_MS - 10_000 && first <= FIRST_GONE_MS, `${first}`)
      assert.is(batch.retryAfterSeconds(1), Math.ceil(first / 1_000))
      assert.ok(batch.retryAfterMs(2) >= 7_200_000 && batch.retryAfterMs(2) < 7_200_063)
      assert.equal([batch.retryAfterMs(3), batch.retryAfterSeconds(3)], [Infinity, 2_147_483])
      await limiter.clear('key')
      assert.is(batch.retryAfterMs(1), first, 'a figure that was read does not change')
    })
  }

  test(`${engine}: a refusal in a batch is exact if the key is unchanged`, async () => {
    await using made = decidedBy(engine)
    const { limiter, clock } = made
    await used(limiter, clock)
    const batch = await limiter.checkMany(['key', 'key', 'other'], [4, 3, 6])
    clock.advance(40_000)
    assert.equal(
      [0, 1].map((i) => batch.retryAfterMs(i)),
      [FIRST_GONE_MS - 10_000, FIRST_GONE_MS - 10_000],
    )
  })

  test(`${engine}: the figures of a key without a cell are those of its decision`, async () => {
    await using made = decidedBy(engine)
    const { limiter } = made
    const [free, above, peeked] = [
      await limiter.check('key', 0),
      await limiter.check('key', 6),
      await limiter.peek('key', 5),
    ]
    await limiter.check('key', 5)
    await limiter.block('key', '1h')
    assert.equal([free.remaining, free.retryAfterMs, free.resetMs], [5, 0, 0])
    assert.equal([above.remaining, above.retryAfterMs, above.resetMs], [5, Number.POSITIVE_INFINITY, 0])
    assert.equal([peeked.remaining, peeked.retryAfterMs, peeked.resetMs], [5, 0, 0])
  })

  test(`${engine}: the figures of a refusal for lack of room do not change afterwards`, async () => {
    await using made = decidedBy(engine, { onFull: 'deny', maxKeys: 1 })
    const { limiter, clock } = made
    for (let i = 0; i < 64; i++) await limiter.check(`key ${i}`)
    const refused = await limiter.check('one more')
    clock.advance(100_000)
    await limiter.check('one more')
    assert.not(refused.allowed)
    assert.equal(
      [refused.remaining, refused.retryAfterMs, refused.resetMs],
      [0, END_MS + 1_000, END_MS + 1_000],
    )
  })
}

interface Step {
  readonly key: number
  readonly act: string
  readonly cost: number
  readonly advance: number
}

const SHAPES: Record<string, Partial<LimiterOptions>> = {
  strict: {},
  smooth: { edge: 'smooth' },
  'granules of no whole milliseconds': { window: 1_000, granularity: 1_000 / 60 },
  'smooth, granules of no whole milliseconds': { window: 1_000, granularity: 1_000 / 7, edge: 'smooth' },
  'block sums': { window: '10m', granularity: '1s', rangeSum: 'blocks' },
  'a Fenwick tree': { window: '10m', granularity: '1s', rangeSum: 'fenwick' },
}
const ACTS = ['check', 'check', 'check', 'peek', 'many', 'refund', 'giveBack', 'penalize', 'block', 'unblock']
const step: fc.Arbitrary<Step> = fc.record({
  key: fc.integer({ min: 0, max: 2 }),
  act: fc.constantFrom(...ACTS),
  cost: fc.integer({ min: 0, max: 7 }),
  advance: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1.2, noNaN: true })),
})

for (const [name, options] of Object.entries(SHAPES)) {
  test(`${name}: figures read late equal those read at once, or promise less`, () => {
    let exact = 0
    let bounds = 0
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 15, maxLength: 60 }),
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        (steps, start) => {
          const clock = { ms: start, now: () => clock.ms }
          const make = () =>
            createLimiter({ limit: 6, window: '1m', granularity: '1s', maxKeys: 100, clock, ...options })
          const [soon, late] = [make(), make()]
          const { windowMs } = soon.rule
          const kept: { was: Read; read: () => Read; key: string; changes: number }[] = []
          const decisions: [Decision, Decision][] = []
          const changes: Record<string, number> = {}
          for (const { key: k, act, cost, advance } of steps) {
            clock.ms += advance ** 3 * windowMs
            const key = `key ${k}`
            const keep = (first: () => Read, read: () => Read) =>
              kept.push({ was: first(), read, key, changes: changes[key]! })
            if (act !== 'peek') changes[key] = (changes[key] ?? 0) + 1
            changes[key] ??= 0
            if (act === 'check' || act === 'peek') {
              const [one, other] = [soon[act](key, cost), late[act](key, cost)]
              keep(
                () => figures(one),
                () => figures(other),
              )
              decisions.push([one, other])
            } else if (act === 'many') {
              const [one, other] = [soon, late].map((limiter) =>
                limiter.checkMany([key], cost, { remaining: true }),
              )
              const ofBatch = (batch: typeof one) => ({
                remaining: batch!.remaining![0]!,
                retryAfterMs: batch!.retryAfterMs(0),
                resetMs: 0,
              })
              keep(
                () => ofBatch(one),
                () => ofBatch(other),
              )
            } else if (act === 'giveBack') {
              const pair = decisions[cost % (decisions.length || 1)]
              if (pair === undefined) continue
              for (const other of Object.keys(changes)) changes[other]!++ // the pair may be of any key
              assert.is(soon.refund(pair[0]), late.refund(pair[1]))
            } else if (act === 'block') {
              const ms = ((1 + cost) * windowMs) / 3
              for (const limiter of [soon, late]) limiter.block(key, ms as Duration)
            } else if (act === 'unblock') for (const limiter of [soon, late]) limiter.unblock(key)
            else if (act === 'refund') for (const limiter of [soon, late]) limiter.refund(key, cost)
            else for (const limiter of [soon, late]) limiter.penalize(key, cost)
          }
          for (const { was, read, key, changes: before } of kept) {
            const now = read()
            if (changes[key] === before) {
              exact++
              assert.equal(now, was, 'the key is unchanged')
            } else bounds++
            assert.ok(now.remaining <= was.remaining, `remaining ${now.remaining}, was ${was.remaining}`)
            assert.ok(
              now.retryAfterMs >= was.retryAfterMs,
              `retry in ${now.retryAfterMs}, was ${was.retryAfterMs}`,
            )
            assert.ok(now.resetMs >= was.resetMs, `reset in ${now.resetMs}, was ${was.resetMs}`)
            assert.equal(read(), now, 'a figure that was read does not change')
          }
        },
      ),
      { numRuns: 40 },
    )
    assert.ok(exact > 20 && bounds > 20, `${exact} exact, ${bounds} bounds`)
  })
}

type Read = Pick<Decision, 'remaining' | 'retryAfterMs' | 'resetMs'>

const figures = ({ remaining, retryAfterMs, resetMs }: Decision): Read => ({
  remaining,
  retryAfterMs,
  resetMs,
})

test.run()
