// run: once
import { attachLimiter, createLimiter, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import type { PoolLimiter } from '#millrace/limiters/pool-limiter.js'

test('a decision takes effect at its reading, or at the start of its granule if another clock was ahead', () => {
  const late = 10_250.5
  const early = 10_120.25
  const ahead = createLimiter({ limit: 5, window: '1s', granularity: '100ms', clock: { now: () => late } })
  const behind = attachLimiter(ahead.share(), { clock: { now: () => early } })
  const effectOf = (limiter: Limiter, key: string, readingMs: number) =>
    (limiter.check(key) as InlineDecision).effectMs(readingMs)
  assert.is(effectOf(behind, 'alone', early), early)
  assert.is(effectOf(ahead, 'both', late), late)
  assert.is(effectOf(behind, 'both', early), 10_200)
})

test("a pool's decision takes effect between call and result, in the granule that it is charged in", async () => {
  const clock = manualClock(10_250)
  const limiter = createLimiter({ limit: 5, window: '1s', granularity: '100ms', clock, engine: 'pool' })
  const pool = limiter as PoolLimiter
  const decision = await limiter.check('alone')
  assert.is(pool.effectMs(decision, 10_240, 10_260), 10_260, 'answered in the granule')
  assert.is(pool.effectMs(decision, 10_240, 10_450), 10_240, 'asked in it, and answered later')
  assert.is(pool.effectMs(decision, 10_150, 10_450), 10_200, 'asked before it, and answered later')
  await limiter.close()
})

test.run()
