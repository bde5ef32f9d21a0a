// run: full
// Epochs have eight bits: after 256 changes a cell may have the same admission word again that a decision
// left. A decision that is read then promises no more than one that was read at once.

import type { AsyncLimiter, Decision, Limiter, LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { InlineEngine } from '#millrace/engines/inline/inline.js'
import { createArena } from '#millrace/memory/arena.js'
import { START_MS } from '../limiter/support.js'
import { decidedBy, type Either, ENGINES, type Engine } from './both.js'

const LIMIT = 2_000
const USED = 1_800
const EPOCHS = 256
const TIMES = [EPOCHS - 1, EPOCHS, EPOCHS + 1, 2 * EPOCHS]
const ABOUT = Array.from({ length: 9 }, (_, i) => EPOCHS - 8 + i)
/** A cost above `LIMIT`: a check of it sums, and charges nothing. */
const TOO_MUCH = LIMIT - USED + 1

type Figures = Pick<Decision, 'remaining' | 'retryAfterMs' | 'resetMs'>

/**
 * Changes that give the key `each` new epochs (1 by default) and keep its total. `mine` are decisions of one
 * unit.
 */
interface Change {
  readonly each: number
  readonly once: (limiter: Either, mine: Decision[]) => unknown
}

const CHANGES: Readonly<Record<string, Change>> = {
  'refunds by key': { each: 1, once: (limiter) => limiter.refund('key', 1) },
  'refunds of decisions': {
    each: 1,
    once: (limiter, mine) => (limiter as Limiter & AsyncLimiter).refund(mine.pop()!),
  },
  'penalties with refunds': {
    each: 3,
    once: async (limiter) => [
      await limiter.penalize('key', 1),
      await limiter.refund('key', 1),
      await limiter.check('key', TOO_MUCH),
    ],
  },
  'refunds with refusals and admissions': {
    each: 2,
    once: async (limiter) => [
      await limiter.refund('key', 1),
      await limiter.check('key', TOO_MUCH + 1),
      await limiter.check('key', 1),
    ],
  },
  'clears with penalties and blocks': {
    each: 4,
    once: async (limiter) => [
      await limiter.clear('key'),
      await limiter.penalize('key', USED),
      await limiter.block('key', '1h'),
      await limiter.unblock('key'),
    ],
  },
}

/**
 * Changes that give the key `each` new epochs, and the call that restores its total after `times` of them.
 */
interface Raise extends Change {
  readonly back: (limiter: Either, times: number) => unknown
}

const RAISES: Readonly<Record<string, Raise>> = {
  penalties: {
    each: 1,
    once: (limiter) => limiter.penalize('key', 1),
    back: async (limiter, times) => [
      await limiter.refund('key', times),
      await limiter.check('key', TOO_MUCH),
    ],
  },
  'blocks and their ends': {
    each: 2,
    once: async (limiter) => [await limiter.block('key', '1h'), await limiter.unblock('key')],
    back: () => {},
  },
}

const SHAPES: Readonly<Record<string, Partial<LimiterOptions>>> = {
  'strict edge': {},
  'smooth edge': { edge: 'smooth' },
  'block sums': { window: '10m', rangeSum: 'blocks' },
  'a Fenwick tree': { window: '10m', rangeSum: 'fenwick' },
}

/** Decisions of each kind on a key that has used `USED` units, some of which expire before the others. */
async function decisions(limiter: Either, clock: { advance(ms: number): void }) {
  const mine: Decision[] = []
  await limiter.check('key', USED - 2 * EPOCHS)
  clock.advance(20_000)
  for (let i = 1; i < 2 * EPOCHS; i++) mine.push(await limiter.check('key'))
  const admitted = await limiter.check('key')
  const tooMuch = await limiter.check('key', TOO_MUCH) // sums
  const refused = await limiter.check('key', TOO_MUCH)
  const peeked = await limiter.peek('key', TOO_MUCH)
  const batch = await limiter.checkMany(['key', 'other'], [TOO_MUCH, 1])
  const readers: Record<string, () => Figures> = {}
  for (const [name, made] of Object.entries({ admitted, tooMuch, refused, peeked }))
    readers[name] = () => figures(made)
  readers.entry = () => ({ remaining: 0, retryAfterMs: batch.retryAfterMs(0), resetMs: 0 })
  return { mine: [admitted, ...mine], readers }
}

const figures = ({ remaining, retryAfterMs, resetMs }: Decision): Figures => ({
  remaining,
  retryAfterMs,
  resetMs,
})

/** The figures of each of them, read at once. */
async function readAtOnce(options: Partial<LimiterOptions>): Promise<Record<string, Figures>> {
  await using made = decidedBy('inline', { limit: LIMIT, ...options })
  const { readers } = await decisions(made.limiter, made.clock)
  return Object.fromEntries(Object.entries(readers).map(([name, read]) => [name, read()]))
}

function assertNoMore(now: Figures, was: Figures, what: string): void {
  assert.ok(now.remaining <= was.remaining, `${what}: remaining ${now.remaining}, was ${was.remaining}`)
  assert.ok(
    now.retryAfterMs >= was.retryAfterMs,
    `${what}: retry in ${now.retryAfterMs}, was ${was.retryAfterMs}`,
  )
  assert.ok(now.resetMs >= was.resetMs, `${what}: reset in ${now.resetMs}, was ${was.resetMs}`)
}

/** A pool computes the figures together with the reply, so it needs only a few of the changes. */
const few = (engine: Engine, epochs: number[]) => (engine === 'inline' ? epochs : [EPOCHS])

for (const engine of ENGINES) {
  for (const [shape, options] of Object.entries(SHAPES).slice(0, engine === 'pool' ? 1 : undefined)) {
    for (const [changes, { each, once }] of Object.entries(CHANGES)) {
      test(`${engine}, ${shape}: a decision read after 256 ${changes} promises no more than at once`, async () => {
        const was = await readAtOnce(options)
        assert.ok(was.refused!.retryAfterMs > 1_000 && was.refused!.remaining === LIMIT - USED)
        for (const epochs of few(engine, TIMES)) {
          await using made = decidedBy(engine, { limit: LIMIT, ...options })
          const { mine, readers } = await decisions(made.limiter, made.clock)
          for (let i = 0; i < Math.ceil(epochs / each); i++) await once(made.limiter, mine)
          for (const [name, read] of Object.entries(readers)) {
            const now = read()
            assertNoMore(now, was[name]!, `${name}, ${epochs} epochs`)
            assert.equal(read(), now, 'a figure that was read does not change')
          }
        }
      })
    }
  }

  for (const [raises, { each, once, back }] of Object.entries(RAISES)) {
    test(`${engine}: a decision read after refunds and about 256 ${raises} promises no more than at once`, async () => {
      const was = await readAtOnce({})
      for (const epochs of few(engine, ABOUT)) {
        await using made = decidedBy(engine, { limit: LIMIT })
        const { limiter } = made
        const { mine, readers } = await decisions(limiter, made.clock)
        const times = Math.floor(epochs / each)
        for (let i = 0; i < times; i++) await once(limiter, mine)
        await back(limiter, times)
        for (let i = 0; i <= epochs % each; i++) await limiter.refund('key', 50)
        for (const [name, read] of Object.entries(readers)) {
          assertNoMore(read(), was[name]!, `${name}, ${epochs} epochs`)
        }
      }
    })
  }

  test(`${engine}: a decision is exact after any number of refunds of another key`, async () => {
    const was = await readAtOnce({})
    await using made = decidedBy(engine, { limit: LIMIT })
    const { readers } = await decisions(made.limiter, made.clock)
    await made.limiter.check('one more', 2 * EPOCHS)
    for (let i = 0; i < 2 * EPOCHS; i++) assert.is(await made.limiter.refund('one more', 1), 1)
    for (const [name, read] of Object.entries(readers)) {
      if (name === 'admitted') assertNoMore(read(), was[name]!, name)
      else assert.equal(read(), was[name], name)
    }
  })

  test(`${engine}: a decision from before a reset of the epoch counters can be given back once, to its limiter`, async () => {
    await using made = decidedBy(engine, { limit: LIMIT })
    await using other = decidedBy(engine, { limit: LIMIT })
    const limiter = made.limiter as Limiter & AsyncLimiter
    const early = await limiter.check('early', 3)
    await limiter.check('key', EPOCHS)
    for (let i = 0; i < EPOCHS; i++) await limiter.refund('key', 1)
    try {
      await (other.limiter as Limiter & AsyncLimiter).refund(early)
      assert.unreachable('another limiter took the decision')
    } catch (error) {
      assert.is((error as { code?: string }).code, 'ERR_MILLRACE_FOREIGN_DECISION')
    }
    assert.is(await limiter.refund(early), 3)
    assert.is(await limiter.refund(early), 0)
  })
}

test('a way whose key has changed 256 times is not taken for one that its key has kept', () => {
  const rule = checkRule({ limit: LIMIT, window: '1m', granularity: '1s' })
  const arena = createArena(rule, 1, 'evict', START_MS)
  const engine = new InlineEngine(arena, 'default', { now: () => START_MS })
  const { era } = engine
  const places = Array.from({ length: arena.shape.ways }, (_, way) => way)
  for (let i = 1; i <= 30 * places.length; i++) engine.checkNow(i, i, 1)
  assert.ok(places.some((way) => era.canTrustEpoch(way)))
  for (let i = 1; i <= EPOCHS * places.length; i++) engine.checkNow(-i, -i, 1)
  assert.not(places.some((way) => era.canTrustEpoch(way)))
  assert.ok(places.every((way) => engine.era.canTrustEpoch(way)))
})

test.run()
