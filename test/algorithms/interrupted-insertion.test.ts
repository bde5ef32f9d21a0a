// run: typescript, full
// Keys that take a way in the table while another thread takes it, or dies there.

import type { Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { diesAt } from './interrupted.js'
import { everywhere, PLACES, STEP } from './interrupted-plays.js'

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

test.run()
