// run: typescript, full
// Admissions, penalties and refunds that another thread interrupts at any step.

import type { Decision, LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { BUCKETS, refundsOf, SUNK } from '#millrace/memory/layout.js'
import { limiterWith } from '../limiter/support.js'
import { diesAt } from './interrupted.js'
import { everywhere, FULLEST, type Setup } from './interrupted-plays.js'

/** Uses one unit a second for a number of seconds. */
const usedFor =
  (seconds: number) =>
  ({ clock, limiter }: Setup) => {
    for (let i = 0; i < seconds; i++) {
      limiter.check('key')
      clock.advance(1_000)
    }
  }

test('a refund whose key is displaced halfway returns the units that it took', () => {
  const returned = new Set<number>()
  everywhere({
    options: { onFull: 'evict' },
    before: usedFor(3),
    act: (limiter) => limiter.refund('key', 5),
    between: ({ other }) => other.check('rival'),
    judge: ({ limiter }, refunded, at) => {
      returned.add(refunded)
      assert.is(limiter.usage('rival'), 3 - refunded + 1, `${at}: the rival inherits the units not refunded`)
    },
  })
  assert.equal([...returned].sort(), [0, 1, 2, 3])
})

test('in a bucket that refunds by several threads have sunk, every unit can still be refunded, and no other', () => {
  let sunk = 0
  let admission: Decision
  everywhere({
    options: { limit: 10 },
    before: ({ limiter }) => {
      admission = limiter.check('key')
      limiter.check('key', 9)
      for (let i = 0; i < 2; i++) limiter.refund('key', 1)
    },
    act: (limiter) => limiter.refund('key', 1),
    between: ({ other }) => {
      for (let i = 0; i < 2; i++) other.refund('key', 1)
    },
    judge: ({ limiter, other }, refunded, at) => {
      const { words, shape } = attachArena(limiter.share().buffer)
      const buckets = words.subarray(shape.waysAt + BUCKETS, shape.waysAt + shape.wayWords)
      if (buckets.some((bucket) => refundsOf(bucket) === SUNK)) sunk++
      assert.is(refunded, 1, at)
      assert.is(limiter.usage('key'), 5, at)
      assert.is(limiter.refund('key', 2), 2, at)
      assert.is(limiter.refund(admission), 0, at)
      assert.is(limiter.usage('key'), 3, at)
      assert.ok(other.check('key', 7).allowed, at)
      assert.not(limiter.check('key').allowed, at)
      assert.is(other.refund('key', 11), 10, at)
    },
  })
  assert.ok(sunk > 0, 'no bucket was sunk')
})

test('a penalty above the largest count fills its granule exactly, despite concurrent charges', () => {
  everywhere({
    options: { limit: FULLEST - 1 },
    before: ({ limiter }) => limiter.penalize('key', FULLEST - 10),
    act: (limiter) => limiter.penalize('key', 100),
    between: ({ other }) => other.penalize('key', 3),
    judge: ({ clock, limiter }, isDone, at) => {
      assert.ok(isDone)
      assert.is(limiter.usage('key'), FULLEST, at)
      clock.advance(1_000)
      assert.not(limiter.check('key').allowed, `${at}: it still counts in the next granule`)
    },
  })
})

test('an admission concurrent with a refund of as many units, and a sum, leaves the room that remains', () => {
  everywhere({
    before: ({ limiter }) => limiter.check('key', 3),
    act: (limiter) => limiter.check('key').allowed,
    between: ({ other }) => {
      assert.is(other.refund('key', 1), 1)
      assert.not(other.check('key', 5).allowed)
    },
    judge: ({ limiter }, isAdmitted, at) => {
      assert.ok(isAdmitted)
      assert.is(limiter.usage('key'), 3, at)
      assert.ok(limiter.check('key', 2).allowed, at)
    },
  })
})

test('an admission is counted even if other admissions interrupt it twice', () => {
  everywhere(
    {
      options: { limit: 4 },
      before: ({ limiter }) => limiter.check('key'),
      act: (limiter) => limiter.check('key').allowed,
      between: ({ other }) => other.check('key'),
      judge: ({ limiter }, isAdmitted, at) => {
        assert.ok(isAdmitted, at)
        while (limiter.check('key').allowed);
        assert.is(limiter.usage('key'), 4, at)
      },
    },
    2,
  )
})

test('two concurrent checks of the largest cost: exactly the admitted ones are counted', () => {
  const limit = FULLEST - 1
  let others = 0
  everywhere({
    options: { limit },
    before: ({ limiter }) => {
      limiter.refund(limiter.check('key'))
      others = 0
    },
    act: (limiter) => limiter.check('key', limit).allowed,
    between: ({ other }) => {
      if (other.check('key', limit).allowed) others++
    },
    judge: ({ limiter }, isAdmitted, at) => {
      const admitted = others + (isAdmitted ? 1 : 0)
      assert.ok(admitted <= 1, at)
      assert.is(limiter.usage('key'), admitted * limit, at)
    },
  })
})

test('a thread that dies during a give-back delays the room until the end of the granule, and no longer', () => {
  const refusedAt = new Set<number>()
  for (let point = 0, hasDied = true; hasDied; point++) {
    const { clock, limiter } = limiterWith({ limit: 5, maxKeys: 1 })
    const decision = limiter.check('key', 5)
    assert.not(limiter.check('key').allowed, 'the full cell is noted')
    hasDied = diesAt(point, () => limiter.refund(decision))
    if (limiter.usage('key') > 0) continue
    if (!limiter.check('key').allowed) refusedAt.add(point)
    clock.advance(1_000)
    assert.ok(limiter.check('key').allowed, `dies at ${point}`)
  }
  assert.ok(refusedAt.size > 0, 'the note outlives the thread')
})

/** Another thread charges and gives back meanwhile, which moves a window that has not begun. */
const COUNTED: readonly Partial<LimiterOptions>[] = [
  {},
  { edge: 'smooth' },
  { algorithm: 'sliding-counter' },
  { algorithm: 'sliding-log' },
  { algorithm: 'fixed-window' },
  { algorithm: 'fixed-window', align: 'first' },
]
for (const options of COUNTED) {
  const { algorithm = 'sliding-window', align = options.edge ?? '' } = options
  test(`a first charge among those of others is given back: ${algorithm} ${align}`, () => {
    for (const isKnown of [false, true]) {
      everywhere<Decision>({
        options,
        before: ({ limiter }) => {
          if (isKnown) limiter.refund(limiter.check('key'))
        },
        act: (limiter) => limiter.check('key', 2),
        between: ({ clock, other }) => {
          clock.advance(40)
          other.refund(other.check('key', 3))
        },
        judge: ({ limiter }, charged, at) => {
          assert.is(limiter.refund(charged), 2, at)
          assert.is(limiter.usage('key'), 0, at)
        },
      })
    }
  })
}

test.run()
