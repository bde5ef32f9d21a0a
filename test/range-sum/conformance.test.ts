// run: also-full
// The three implementations of sums obey one contract: limiters that differ only in their sums give equal
// results.
import { type Decision, type Edge, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { OneRuleLimiter } from '#millrace/limiters/one-rule-limiter.js'
import { createArena } from '#millrace/memory/arena.js'
import { SUMS } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import { sized } from '../size.js'

const KEYS = 3
const SHARE = sized({ quick: 0.1, full: 1 })
/**
 * Nothing is given back if the longest gap has at least this many windows. A swept bucket keeps its lap. In
 * the one granule in which the lap comes round, a charge cannot be taken out again, and rings of other
 * lengths come round at other times.
 */
const MOST_RETURNED = 20

interface Shape {
  readonly windowMs: number
  readonly buckets: number
  readonly limit: number
}

/**
 * A random step of the clock in granules: often small, sometimes about a block, a window, or many windows.
 */
function step(next: () => number, buckets: number, gap: number): number {
  const scales = [0, 1, 3, 64, buckets, 3 * buckets, gap * buckets]
  const weights = [0.35, 0.65, 0.85, 0.93, 0.985, 0.995, 1]
  const pick = next()
  return 2 * next() * scales[weights.findIndex((weight) => pick < weight)]!
}

function limiters({ windowMs, buckets, limit }: Shape, edge: Edge, startMs: number) {
  const clock = manualClock(startMs)
  const rule = checkRule({ limit, window: windowMs, granularity: windowMs / buckets, edge })
  const all = SUMS.map(
    (sums) =>
      new OneRuleLimiter(
        { arenas: [createArena(rule, 10, 'evict', clock.now(), sums)], names: [rule.name] },
        clock,
      ),
  )
  return { clock, all }
}

const seen = (decision: Decision) => JSON.stringify(decision)

/** A random operation, which returns its result on a limiter. */
function operation(
  next: () => number,
  { windowMs, limit }: Shape,
  gap: number,
): (limiter: OneRuleLimiter) => unknown {
  const key = `key ${Math.floor(next() * KEYS)}`
  const cost = Math.floor(next() ** 3 * limit) + 1
  const part = Math.max(1, Math.floor(next() * windowMs))
  const pick = next()
  if (pick < 0.6) return (limiter) => seen(limiter.check(key, cost))
  if (pick < 0.7) return (limiter) => seen(limiter.peek(key, cost))
  if (pick < 0.8) return (limiter) => limiter.usage(key, part)
  if (pick < 0.87 && gap < MOST_RETURNED) return (limiter) => limiter.refund(key, cost)
  if (pick < 0.93 && gap < MOST_RETURNED) return (limiter) => limiter.refund(limiter.check(key, cost))
  if (pick < 0.97) return (limiter) => limiter.penalize(key, cost)
  if (pick < 0.98) return (limiter) => limiter.penalize(key, 4_000_000)
  if (pick < 0.99) return (limiter) => limiter.block(key, part)
  return (limiter) => limiter.clear(key)
}

function play(shape: Shape, edge: Edge, gap: number, seed: number, operations: number): number {
  const next = random(seed)
  const { clock, all } = limiters(shape, edge, Math.floor(next() * 1e9))
  const granuleMs = shape.windowMs / shape.buckets
  let said = 0
  for (let i = 0; i < operations; i++) {
    clock.advance(Math.floor(step(next, shape.buckets, gap) * granuleMs))
    const operate = operation(next, shape, gap)
    const answers = all.map((limiter) => operate(limiter))
    assert.equal(answers, Array(all.length).fill(answers[0]), `operation ${i} by seed ${seed}`)
    if (answers[0] !== 0) said++
  }
  return said
}

const MINUTE = 60_000
for (const [buckets, most] of [
  [1, 500],
  [60, 2_000],
  [64, 2_000],
  [257, 2_000],
  [3_600, 2_000],
  [4_097, 1_500],
  [86_400, 300],
] as const) {
  for (const edge of ['strict', 'smooth'] as const) {
    const operations = most * SHARE
    test(`${buckets} granules, ${edge} edge: block sums and a Fenwick tree give the results of single buckets`, () => {
      for (const limit of [1, 20, 5_000]) {
        for (const gap of [5, 300]) {
          const shape = { windowMs: buckets * MINUTE, buckets, limit }
          assert.ok(play(shape, edge, gap, buckets + limit, operations) > operations / 2)
        }
      }
    })
  }
}

test('all sums give equal results where the tick wraps', () => {
  const buckets = 300
  const shape = { windowMs: buckets * 2 ** 20, buckets, limit: 50 }
  for (const seed of [1, 2, 3]) assert.ok(play(shape, 'strict', 2 ** 12, seed, 2_000) > 500)
})

test.run()
