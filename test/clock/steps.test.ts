// run: also-full, also-long
// Custom clocks that step back and forth by a second to an hour, freeze, and advance. Judged by an exact log:
// never over the limit in any window, and no key locked out.

import { attachLimiter, createLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { type ClockRule, KeyJudge, standsForMs } from './key-judge.js'
import { anyMoves, anyRule, anyStepMs, KEYS, type Move, optionsOf } from './moves.js'

/** Of the runs of each property. */
const SHARE = sized({ quick: 0.25, full: 1 })

const START_MS = 1e10 + 123

interface Seen {
  admitted: number
  refused: number
  stood: number
  forgotten: number
}

/** Plays the moves with a judge for each key. The clock is never so far back that counts are forgotten. */
function play(rule: ClockRule, moves: Move[], twoClocks: boolean, seen: Seen): void {
  const granuleMs = rule.windowMs / rule.parts
  const reachMs = standsForMs(rule) - (twoClocks ? 2 * granuleMs : 0)
  let now = START_MS
  let offMs = 0
  const first = createLimiter({ ...optionsOf(rule), clock: { now: () => now } })
  const second = attachLimiter(first.share(), { clock: { now: () => now + offMs } })
  const judges = Array.from({ length: KEYS }, () => new KeyJudge(rule))
  let newest = now
  for (const move of moves) {
    newest = Math.max(newest, now)
    now = Math.max(Math.round(now + move.stepMs + move.granules * granuleMs), Math.ceil(newest - reachMs))
    offMs = Math.trunc(move.off * granuleMs)
    const [limiter, readingMs] = twoClocks && move.second ? [second, now + offMs] : [first, now]
    for (let i = 0; i < move.checks; i++) {
      judges[move.key]!.judge(readingMs, move.cost, limiter.check(`key ${move.key}`, move.cost))
    }
  }
  settle(rule, first, judges, Math.max(newest, now) + granuleMs, (ms) => {
    now = ms
  })
  for (const { admitted, refused, stood, forgotten } of judges) {
    seen.admitted += admitted
    seen.refused += refused
    seen.stood += stood
    seen.forgotten += forgotten
  }
}

/** Asserts that a window and a granule after the newest reading every key has its whole limit, once. */
function settle(
  rule: ClockRule,
  limiter: Limiter,
  judges: KeyJudge[],
  newestMs: number,
  set: (ms: number) => void,
): void {
  const then = Math.ceil(newestMs + rule.windowMs + rule.windowMs / rule.parts)
  set(then)
  judges.forEach((judge, key) => {
    for (let unit = 0; unit <= rule.limit; unit++) {
      const decision = limiter.check(`key ${key}`)
      assert.is(decision.allowed, unit < rule.limit, `unit ${unit} of ${rule.limit} after all windows`)
      judge.judge(then, 1, decision)
    }
  })
}

for (const twoClocks of [false, true]) {
  const subject = twoClocks ? 'two limiters with clocks up to a granule apart' : 'one limiter'
  test(`${subject}, clocks that step by up to an hour and freeze: never over the limit, no key locked out`, () => {
    const seen = { admitted: 0, refused: 0, stood: 0, forgotten: 0 }
    fc.assert(
      fc.property(anyRule, anyMoves(anyStepMs), (rule, moves) => play(rule, moves, twoClocks, seen)),
      { numRuns: Math.ceil(400 * SHARE) },
    )
    const { admitted, refused, stood, forgotten } = seen
    assert.ok(
      admitted > 10_000 * SHARE && refused > 10_000 * SHARE && stood > 10_000 * SHARE,
      JSON.stringify(seen),
    )
    assert.is(forgotten, 0)
  })
}

test('after a step back, retryAfterMs is the first millisecond at which the same cost is admitted', () => {
  let waits = 0
  fc.assert(
    fc.property(anyRule, anyMoves(anyStepMs), (rule, moves) => {
      const granuleMs = rule.windowMs / rule.parts
      let now = START_MS
      const limiter = createLimiter({ ...optionsOf(rule), clock: { now: () => now } })
      let newest = now
      for (const { stepMs, granules, cost, checks } of moves) {
        now = Math.max(Math.round(now + stepMs + granules * granuleMs), Math.ceil(newest - standsForMs(rule)))
        newest = Math.max(newest, now)
        for (let i = 0; i < checks; i++) limiter.check('key', cost)
        const { allowed, retryAfterMs } = limiter.check('key', cost)
        if (allowed || now === newest) continue
        waits++
        const latestMs = Math.ceil(newest - now + rule.windowMs + granuleMs)
        assert.ok(retryAfterMs >= 1 && retryAfterMs <= latestMs, `${retryAfterMs} ms, at most ${latestMs}`)
        now += retryAfterMs - 1
        assert.not(limiter.check('key', cost).allowed, 'admitted before retryAfterMs')
        now += 1
        assert.ok(limiter.check('key', cost).allowed, 'refused at retryAfterMs')
        newest = Math.max(newest, now)
      }
    }),
    { numRuns: Math.ceil(300 * SHARE) },
  )
  assert.ok(waits > 1_000 * SHARE, `${waits}`)
})

test('a frozen clock admits exactly the limit', () => {
  fc.assert(
    fc.property(anyRule, fc.integer({ min: -1e12, max: 1e12 }), (rule, now) => {
      const limiter = createLimiter({ ...optionsOf(rule), clock: { now: () => now } })
      let admitted = 0
      for (let i = 0; i < 3_000; i++) if (limiter.check(`key ${i % KEYS}`).allowed) admitted++
      assert.is(admitted, KEYS * rule.limit)
    }),
  )
})

test.run()
