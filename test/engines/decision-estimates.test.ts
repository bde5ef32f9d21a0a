// run: once
// The figures that a pool sends with a reply equal those that a decision computes when it is read at once.
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import type { RuleOptions } from '#millrace/core/rule-options.js'
import { InlineEngine } from '#millrace/engines/inline/inline.js'
import { lastFigures } from '#millrace/engines/inline/last-decision.js'
import { createArena } from '#millrace/memory/arena.js'
import { ADM, BUCKETS, CLAIMED, COUNT, STATE, shapeFor, TICK } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'

const LIMIT = 20
const KEYS = 3

function engineOf(options: Partial<RuleOptions>, clock: { nowMs: number }) {
  const rule = checkRule({ limit: LIMIT, window: '1m', granularity: '1s', ...options })
  const arena = createArena(rule, 100, 'evict', clock.nowMs)
  return {
    engine: new InlineEngine(arena, 'default', { now: () => clock.nowMs }),
    modulus: arena.shape.modulus,
  }
}

/** Decides, and compares the estimates with the figures of the decision. */
function foreseen(engine: InlineEngine, key: number, cost: number): { allowed: boolean; resetMs: number } {
  engine.reading.take()
  const decision = engine.check(key, key, cost, -1)
  const { outcome, limit } = decision
  const { remaining, retryAfterMs, resetMs } = lastFigures(engine, key, key, cost, limit, outcome)
  assert.equal(
    { remaining, retryAfterMs, resetMs },
    { remaining: decision.remaining, retryAfterMs: decision.retryAfterMs, resetMs: decision.resetMs },
  )
  return { allowed: decision.allowed, resetMs }
}

const SHAPES: Record<string, Partial<RuleOptions>> = {
  'strict, whole granules': {},
  'strict, granules of no whole milliseconds': { window: '1s', granularity: 1_000 / 60 },
  smooth: { edge: 'smooth' },
  'smooth, granules of no whole milliseconds': { window: '1s', granularity: 1_000 / 60, edge: 'smooth' },
  'block sums': { rangeSum: 'blocks', window: '10m', granularity: '1s' },
  'a Fenwick tree': { rangeSum: 'fenwick', window: '10m', granularity: '1s' },
}

for (const [name, options] of Object.entries(SHAPES)) {
  test(`${name}: remaining, retryAfterMs and resetMs are equal`, () => {
    const draw = random(1)
    const clock = { nowMs: 1_000_123.25 }
    const { engine } = engineOf(options, clock)
    let refused = 0
    for (let i = 0; i < 4_000; i++) {
      clock.nowMs += [0, 0, 0, 0.5, 1, 7, 130, 900, 1_000, 20_000, 60_000][Math.floor(draw() * 11)]!
      if (draw() < 0.05) clock.nowMs -= 3_000 // a clock that steps back stands still
      const { allowed } = foreseen(engine, 1 + Math.floor(draw() * KEYS), 1 + Math.floor(draw() * 6))
      if (!allowed) refused++
    }
    assert.ok(refused > 20, `only ${refused} were refused`)
  })
}

test('the end of a tick is not reused for the equal tick word a modulus later', () => {
  const clock = { nowMs: 5_000 }
  const { engine, modulus } = engineOf({ window: 61, granularity: 1 }, clock)
  const { resetMs } = foreseen(engine, 1, 1)
  for (const rounds of [1, 2]) {
    clock.nowMs = 5_000 + rounds * modulus
    assert.is(foreseen(engine, 2, 1).resetMs, resetMs)
  }
  clock.nowMs = 5_000
  assert.is(foreseen(engine, 3, 1).resetMs, resetMs)
})

/** A table of 32 ways that denies new keys when full. Every way was used at the clock's reading. */
function fullTable(clock: { now(): number }) {
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    granularity: '1s',
    maxKeys: 1,
    onFull: 'deny',
    clock,
  })
  for (let i = 0; i < 100; i++) limiter.check(`key ${i}`)
  assert.is(limiter.stats().keys, 32)
  return limiter
}

test('retryAfterMs ignores a way that a dead thread has claimed', () => {
  const clock = { ms: 5_000, now: () => clock.ms }
  const limiter = fullTable(clock)
  const words = new Int32Array(limiter.share().buffer)
  const { waysAt, wayWords } = shapeFor(60_000, 60, 2)
  const head = waysAt + 7 * wayWords
  words[head + ADM] = (words[head + ADM]! & ~STATE) | CLAIMED
  words[head + TICK]! -= 3 // otherwise the first way to expire
  assert.is(limiter.check('one more').retryAfterMs, 62_000)
})

test('a refusal for lack of room is at least a millisecond, even if a way expires before its figures are read', () => {
  const clock = { ms: 5_000, step: 0, now: () => (clock.ms += clock.step) }
  const limiter = fullTable(clock)
  clock.step = 0.4 // three readings: to decide, to find a way, and for the figures
  clock.ms = 5_000 + 62_000 - 1
  const refused = limiter.check('one more')
  assert.equal([refused.allowed, refused.retryAfterMs], [false, 1])
})

test('a refusal is at least a millisecond, even if its cost fits once the figures are read', () => {
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    granularity: '1s',
    maxKeys: 1,
    clock: { now: () => 5_000 },
  })
  limiter.check('key', 5)
  const refused = limiter.check('key')
  const { buffer } = limiter.share()
  const words = new Int32Array(buffer)
  const { waysAt, ways, wayWords, ring } = shapeFor(60_000, 60, 2)
  // The state between two steps of another thread's refund: the buckets are empty, the admission word is
  // unchanged.
  for (let base = waysAt; base < waysAt + ways * wayWords; base += wayWords) {
    for (let i = 0; i < ring; i++) words[base + BUCKETS + i]! &= ~COUNT
  }
  assert.equal([refused.remaining, refused.allowed, refused.retryAfterMs], [5, false, 1])
})

test.run()
