// Keys that are displaced: by clocks that differ by less than a granule, and by blocks.
import { attachLimiter, createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { limiterWith, START_MS } from './support.js'

const PLACES = 32

test('with clocks nearly a granule apart, a displaced key is not admitted twice in a window', () => {
  let nowMs = START_MS
  const limiter = createLimiter({
    limit: 1,
    window: 1_000,
    granularity: 100,
    maxKeys: 1,
    onFull: 'deny',
    clock: { now: () => nowMs },
  })
  const ahead = attachLimiter(limiter.share(), { clock: { now: () => nowMs + 90 } })
  const admittedMs: number[] = []
  for (let round = 0; round < 200; round++) {
    nowMs += 5_000 + 37 * (round % 7)
    const startMs = nowMs
    const key = `key ${round}`
    for (let i = 1; i < PLACES; i++) limiter.block(`fill ${i}`, 4_000)
    const decide = () => {
      const decision = limiter.check(key) as InlineDecision
      if (decision.allowed) admittedMs.push(decision.effectMs(nowMs))
    }
    decide()
    while (nowMs < startMs + 1_400) {
      nowMs += 13
      ahead.block(key, 1)
      ahead.unblock(key)
      ahead.check(`passing ${round}`)
      decide()
    }
  }
  assert.ok(admittedMs.length > 200)
  for (const [i, ms] of admittedMs.entries()) {
    if (i > 0) assert.ok(ms - admittedMs[i - 1]! >= 1_000, `${ms - admittedMs[i - 1]!} ms apart`)
  }
})

test('evict: if every place is blocked, retryAfterMs includes the counts inherited from the first free place', () => {
  const { clock, limiter } = limiterWith({ onFull: 'evict', limit: 5 })
  for (let i = 0; i < PLACES; i++) {
    limiter.check(`${i}`, 5)
    limiter.block(`${i}`, 10_000 + 1_000 * i)
  }
  const { allowed, retryAfterMs } = limiter.check('new', 2)
  assert.not(allowed)
  assert.ok(retryAfterMs > 10_000, 'the first block ends before the counts expire')
  clock.advance(retryAfterMs - 1)
  assert.not(limiter.check('new', 2).allowed)
  clock.advance(1)
  assert.ok(limiter.check('new', 2).allowed)
})

test('deny: a place without counts is free a granule later, and retryAfterMs says so', () => {
  const { clock, limiter } = limiterWith({ onFull: 'deny' })
  for (let i = 0; i < PLACES; i++) limiter.check(`${i}`, 1)
  limiter.block('0', 1)
  clock.advance(1_000)
  for (let i = 1; i < PLACES; i++) limiter.check(`${i}`, 1)
  limiter.clear('0')
  limiter.block('0', 1)
  limiter.unblock('0')
  const { allowed, retryAfterMs } = limiter.check('new')
  assert.not(allowed)
  assert.ok(retryAfterMs <= 1_000, `${retryAfterMs} ms`)
  clock.advance(retryAfterMs - 1)
  assert.not(limiter.check('new').allowed)
  clock.advance(1)
  assert.ok(limiter.check('new').allowed)
})

test.run()
