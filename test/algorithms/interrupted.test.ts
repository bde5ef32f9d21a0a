// run: typescript, full
// Interrupts an operation of one thread at each of its operations on shared memory in turn, and runs
// operations of another thread there. `test/explore` covers more interleavings, but judges only the promises
// about decisions. These tests judge what the callers get.
import { attachLimiter, type Decision, type Limiter, type LimiterOptions, type ManualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { ADM, BUCKETS, CLAIMED, refundsOf, SUNK } from '#millrace/memory/layout.js'
import { limiterWith } from '../limiter/support.js'
import { diesAt, interrupted } from './interrupted.js'

const PLACES = 32
const FULLEST = 2 ** 22 - 1
const HOUR = 3_600_000
/** Of the points at which another dies, beside each at which the first is interrupted. */
const STEP = 1

interface Setup {
  clock: ManualClock
  limiter: Limiter
  /** The same limiter, attached on another thread. */
  other: Limiter
}

interface Play<T> {
  options?: Partial<LimiterOptions>
  /** The number of usable ways. Dead threads have left the other ways claimed. */
  places?: number
  before?: (setup: Setup) => void
  act: (limiter: Limiter) => T
  between: (setup: Setup) => void
  judge: (setup: Setup, result: T, at: string) => void
}

/**
 * Runs the play for every point at which `act` can be interrupted; with `times` = 2 for every pair of points.
 */
function everywhere<T>(play: Play<T>, times = 1): void {
  let last = 0
  while (playAt([last], play)) {
    for (let first = 0; times > 1 && first < last; first++) playAt([first, last], play)
    last++
  }
  assert.ok(last > 4, `${last} points`)
}

/** Runs the play with interruptions at these points. Returns whether `act` has all of them. */
function playAt<T>(
  points: readonly number[],
  { options, places = 1, before, act, between, judge }: Play<T>,
): boolean {
  const { clock, limiter } = limiterWith({ maxKeys: 1, ...options })
  const { words, shape } = attachArena(limiter.share().buffer)
  for (let i = places; i < PLACES; i++) words[shape.waysAt + i * shape.wayWords + ADM] = CLAIMED
  const setup = { clock, limiter, other: attachLimiter(limiter.share()) }
  before?.(setup)
  const { result, wasInterrupted } = interrupted(
    points,
    () => act(limiter),
    () => between(setup),
  )
  if (wasInterrupted) judge(setup, result, `interrupted at ${points}`)
  return wasInterrupted
}

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

for (const [what, charge] of [
  ['a penalty', (limiter: Limiter) => limiter.penalize('key', 3)],
  ['an admission', (limiter: Limiter) => limiter.check('key', 3).allowed],
] as const) {
  test(`deny: ${what} whose empty way is taken does not count for the new key, even if a thread dies`, () => {
    for (let hasDied = true, point = 0; hasDied; point += STEP) {
      hasDied = false
      everywhere({
        options: { onFull: 'deny' },
        before: ({ limiter }) => {
          limiter.block('key', 1)
          limiter.unblock('key')
        },
        act: charge,
        between: ({ clock, other }) => {
          clock.advance(1_000)
          if (diesAt(point, () => other.check('rival'))) hasDied = true
        },
        judge: ({ limiter }, isDone, at) => {
          const [own, rival] = [limiter.usage('key'), limiter.usage('rival')]
          const now = limiter.check('rival').allowed ? 1 : 0
          assert.is(own, isDone ? 3 : 0, `${at}, the other at ${point}`)
          assert.is(limiter.usage('rival'), rival + now)
          assert.ok(rival <= 1, `${at}, the other at ${point}: ${rival} units`)
        },
      })
    }
  })
}

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

test('an unblock of a key whose way was taken does not end the block of the new key', () => {
  everywhere({
    options: { onFull: 'deny' },
    before: ({ limiter }) => limiter.block('key', 1_000),
    act: (limiter) => limiter.unblock('key'),
    between: ({ clock, other }) => {
      clock.advance(62_000)
      assert.ok(other.block('rival', HOUR))
    },
    judge: ({ limiter }, _, at) => assert.not(limiter.check('rival').allowed, at),
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

test('two threads that insert a new key at once create one cell, in any of its ways', () => {
  for (const key of ['a', 'b', 'c']) {
    let others = 0
    everywhere({
      options: { limit: 1 },
      places: PLACES,
      before: () => {
        others = 0
      },
      act: (limiter) => limiter.check(key).allowed,
      between: ({ other }) => {
        if (other.check(key).allowed) others++
      },
      judge: (_, isAdmitted, at) => assert.is(others + (isAdmitted ? 1 : 0), 1, at),
    })
  }
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

test('a block has ended once `unblock` returns, despite concurrent charges', () => {
  everywhere({
    before: ({ limiter }) => limiter.block('key', HOUR),
    act: (limiter) => limiter.unblock('key'),
    between: ({ other }) => other.penalize('key', 1),
    judge: ({ limiter }, wasBlocked, at) => {
      assert.ok(wasBlocked)
      assert.is(limiter.check('key').remaining, 3, at)
    },
  })
})

test('an unblock keeps a concurrent penalty, and a concurrent new block', () => {
  everywhere({
    before: ({ limiter }) => limiter.block('key', HOUR),
    act: (limiter) => limiter.unblock('key'),
    between: ({ other }) => {
      other.penalize('key', 5)
      other.block('key', HOUR)
    },
    judge: ({ limiter }, wasBlocked, at) => {
      assert.ok(wasBlocked)
      assert.not(limiter.check('key').allowed, at)
    },
  })
})

test('a block that is renewed during an eviction stays, and the block that then ends first is evicted', () => {
  const others = Array.from({ length: PLACES / 2 - 1 }, (_, i) => `other ${i}`)
  everywhere({
    places: PLACES,
    before: ({ limiter }) => {
      limiter.block('first', HOUR)
      for (const [i, key] of others.entries()) limiter.block(key, (2 + i) * HOUR)
    },
    act: (limiter) => limiter.block('new', 100 * HOUR),
    between: ({ other }) => other.block('first', Number.POSITIVE_INFINITY),
    judge: ({ limiter }, isBlocked, at) => {
      assert.ok(isBlocked)
      const kept = ['first', 'new', ...others].filter((key) => !limiter.peek(key, 0).allowed)
      assert.equal(kept, ['first', 'new', ...others.slice(1)], at)
    },
  })
})

for (const [what, comesBack] of [
  ['is admitted again', (other: Limiter) => other.check('key')],
  ['is looked at by a refund of nothing', (other: Limiter) => other.refund('key', 0)],
] as const) {
  test(`deny: a key that ${what} while its way is claimed either keeps the way or loses it before`, () => {
    everywhere({
      options: { onFull: 'deny' },
      before: ({ clock, limiter }) => {
        limiter.check('key')
        clock.advance(62_000)
      },
      act: (limiter) => limiter.check('rival').allowed,
      between: ({ other }) => comesBack(other),
      judge: ({ limiter }, isAdmitted, at) => {
        assert.is(limiter.usage('rival'), isAdmitted ? 1 : 0, at)
        const { evictedLive, lostWays } = limiter.stats()
        assert.equal([evictedLive, lostWays], [0, 0], at)
      },
    })
  })
}

test('deny: a key that returns in another way while its old way is claimed leaves the old way to the new key', () => {
  for (const [first, second] of [
    ['key', 'idle'],
    ['idle', 'key'],
  ] as const) {
    let admitted: string[]
    everywhere({
      options: { onFull: 'deny', limit: 1 },
      places: 2,
      before: ({ clock, limiter }) => {
        for (const key of [first, second]) limiter.check(key)
        clock.advance(62_000)
        admitted = []
      },
      act: (limiter) => limiter.check('new').allowed,
      between: ({ other }) => {
        admitted = ['key', 'third'].filter((key) => other.check(key).allowed)
      },
      judge: ({ limiter }, isAdmitted, at) => {
        if (isAdmitted) admitted.push('new')
        assert.is(admitted.length, 2, `${at}: ${admitted} for two places`)
        for (const key of admitted) assert.is(limiter.usage(key), 1, `${at}: ${key}`)
      },
    })
  }
})

test('evict: a way freed because its new key has another way keeps its counts, even if a thread dies', () => {
  for (let hasDied = true, point = 0; hasDied; point += STEP) {
    hasDied = false
    everywhere({
      options: { onFull: 'evict', limit: 1 },
      places: 2,
      before: ({ limiter }) => {
        for (const key of ['first', 'second']) assert.ok(limiter.check(key).allowed)
      },
      act: (limiter) => limiter.check('new').allowed,
      between: ({ other }) => {
        if (diesAt(point, () => other.check('new'))) hasDied = true
      },
      judge: ({ limiter }, isAdmitted, at) => {
        assert.not(isAdmitted, at)
        for (const key of ['third', 'fourth']) {
          assert.not(limiter.check(key).allowed, `${at}, the other at ${point}: ${key}`)
        }
      },
    })
  }
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

test('a thread that stalls while it finishes a conversion forgets nothing if the window changes again', () => {
  let othersAdmitted = 0
  for (let hasDied = true, point = 0; hasDied; point += STEP) {
    let isOtherAdmitted = false
    everywhere({
      options: { limit: 2, window: '6s' },
      before: ({ limiter, other }) => {
        limiter.check('key')
        limiter.update('default', { window: '1s' })
        hasDied = diesAt(point, () => other.check('key'))
      },
      act: (limiter) => limiter.check('key').allowed,
      between: ({ clock, limiter, other }) => {
        isOtherAdmitted = attachLimiter(limiter.share()).check('key').allowed
        other.update('default', { window: '10s' })
        clock.advance(3_000)
      },
      judge: (_, isAdmitted, at) => {
        if (isOtherAdmitted) othersAdmitted++
        assert.not(isOtherAdmitted && isAdmitted, `${at}, another dies at ${point}`)
      },
    })
  }
  assert.ok(othersAdmitted > 0, 'the thread between is admitted')
})

test('a thread that stops for hours while it claims a way inherits the counts of the way', () => {
  everywhere({
    options: { onFull: 'evict', window: '1d', granularity: '1h' },
    before: ({ limiter }) => limiter.check('key', 5),
    act: (limiter) => limiter.check('rival').allowed,
    between: ({ clock, other }) => {
      clock.advance(3 * HOUR)
      other.refund('key', 0) // moves the tick, and changes nothing else
    },
    judge: (_, isAdmitted, at) => assert.not(isAdmitted, at),
  })
})

test('a thread that stops twice for more than an hour does not discard counts of other threads', () => {
  everywhere(
    {
      options: { limit: 1 },
      before: ({ clock, limiter }) => {
        limiter.check('key')
        clock.advance(62_000)
      },
      act: (limiter) => limiter.check('key').allowed,
      between: ({ clock, other }) => {
        clock.advance(HOUR + 400_000)
        assert.ok(other.check('key').allowed)
        clock.advance(1_000)
      },
      judge: ({ other }, _, at) => assert.not(other.check('key').allowed, at),
    },
    2,
  )
})

test.run()
