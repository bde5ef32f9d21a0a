// Nodes that count more than their buckets, because a thread died between the two. Also a refund during which
// the cell's tick moves.
import { manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Adjustments } from '#millrace/algorithms/window/adjustments.js'
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import { Reading } from '#millrace/core/reading.js'
import { checkRule } from '#millrace/core/rule.js'
import { Ticks } from '#millrace/core/ticks.js'
import { OneRuleLimiter } from '#millrace/limiters/one-rule-limiter.js'
import { createArena } from '#millrace/memory/arena.js'
import { Hasher } from '#millrace/memory/hash.js'
import { BLOCK, HEADER, TICK } from '#millrace/memory/layout.js'
import { Table } from '#millrace/memory/table.js'
import { interrupted } from '../algorithms/interrupted.js'

const SECOND_MS = 1_000
type Setup = ReturnType<typeof setUp>
const STRUCTURES = ['blocks', 'fenwick'] as const

/** A limiter with granules of a second, and the parts of the cell of 'key'. */
function setUp(sums: (typeof STRUCTURES)[number], buckets: number, limit: number, edge: 'strict' | 'smooth') {
  const clock = manualClock(0)
  const rule = checkRule({ limit, window: buckets * SECOND_MS, granularity: SECOND_MS, edge })
  const arena = createArena(rule, 10, 'evict', 0, sums)
  const { words, shape } = arena
  const limiter = new OneRuleLimiter({ arenas: [arena], names: [rule.name] }, clock)
  const window = new SlidingWindow(words, shape, edge, 0)
  const hasher = new Hasher(words[HEADER.SEED_0]!, words[HEADER.SEED_1]!)
  hasher.hash('key')
  const { lo, hi } = hasher
  const way = () => new Table(words, shape).findLive(lo, hi)
  const other = new OneRuleLimiter({ arenas: [arena], names: [rule.name] }, clock) // as on another thread
  return { clock, limiter, other, window, words, shape, lo, hi, way }
}

/** When costs are requested, in seconds after the first admission. */
const MOMENTS = [6, 1_000, 1_001, 1_002, 1_003, 2_222, 3_590, 3_600]

/**
 * Charges one unit at second `start`. Five seconds later a thread charges `dead` units to the nodes alone and
 * dies. Then other charges fill the limit.
 */
function assertKnown({ clock, limiter, window, words, way }: Setup, start: number, dead: number): void {
  clock.set(start * SECOND_MS)
  limiter.check('key', 1)
  clock.advance(5 * SECOND_MS)
  // Moves the cell to this second, and makes the next refusal sum again.
  limiter.refund(limiter.check('key', 9))
  const base = window.base(way())
  const e = words[base + TICK]!
  const slot = window.ring.slot(e)
  window.ring.sums.charge(base, e, slot, window.ring.lap, dead) // the thread dies here
  clock.advance(SECOND_MS)
  for (let i = 1 + dead; i < 10; i++) assert.ok(limiter.check('key').allowed)
  for (const moment of MOMENTS) {
    // By then part of the dead charge's block has left the window.
    if (start % BLOCK > 0 && moment > 3_590) continue
    for (const cost of [2, 8, 9, 10]) {
      clock.set((start + moment) * SECOND_MS)
      const { allowed, retryAfterMs } = limiter.check('key', cost)
      const message = `cost ${cost}, ${moment} s after ${start}`
      assert.not(allowed, message)
      clock.advance(retryAfterMs - 1)
      assert.not(limiter.peek('key', cost).allowed, `${message}, a millisecond before`)
      clock.advance(1)
      assert.ok(limiter.peek('key', cost).allowed, `${message}, after ${retryAfterMs} ms`)
    }
  }
  const { resetMs } = limiter.peek('key')
  clock.advance(resetMs)
  assert.is(limiter.peek('key').remaining, 10)
}

for (const sums of STRUCTURES) {
  for (const edge of ['strict', 'smooth'] as const) {
    for (const [what, dead] of [
      ['alone', 9],
      ['before others are admitted', 8],
    ] as const) {
      test(`${sums}, ${edge}: retryAfterMs and resetMs include what a dead thread left in the nodes ${what}`, () => {
        for (const start of [1_000_000, 1_000_010]) assertKnown(setUp(sums, 3_600, 10, edge), start, dead)
      })
    }
  }

  test(`${sums}: a refund of everything takes every unit, even if the cell's tick starts a new lap meanwhile`, () => {
    const { clock, limiter, window, shape, lo, hi, way } = setUp(sums, 300, 100, 'strict')
    const turn = 10 * shape.ring
    for (const [second, cost] of [
      [100, 10],
      [250, 5],
      [300, 1],
    ] as const) {
      clock.set((turn + second) * SECOND_MS)
      limiter.check('key', cost)
    }
    const { sums: structure } = window.ring
    const { find } = structure
    let wasOvertaken = false
    structure.find = (...place) => {
      if (!wasOvertaken) {
        wasOvertaken = true
        clock.set((turn + shape.ring) * SECOND_MS)
        limiter.check('key', 1)
      }
      return find.apply(structure, place)
    }
    const reading = new Reading(clock, new Ticks(shape.windowMs, shape.buckets, shape.modulus))
    reading.take()
    assert.is(new Adjustments(window).refund(way(), lo, hi, 1_000, reading), 17)
    assert.ok(wasOvertaken)
    assert.is(limiter.usage('key'), 0)
  })
}

for (const sums of STRUCTURES) {
  test(`${sums}: usage is that before or after a concurrent start of a new lap, nothing in between`, () => {
    const seen = new Set<number>()
    for (let point = 0, isOver = false; !isOver; point++) {
      const { clock, limiter, other, shape } = setUp(sums, 300, 100, 'strict')
      const turn = 10 * shape.ring
      for (const [second, cost] of [
        [100, 10],
        [250, 5],
        [299, 1],
      ] as const) {
        clock.set((turn + second) * SECOND_MS)
        limiter.check('key', cost)
      }
      const { result, wasInterrupted } = interrupted(
        [point],
        () => limiter.usage('key'),
        () => {
          clock.set((turn + shape.ring) * SECOND_MS)
          other.check('key', 2)
        },
      )
      isOver = !wasInterrupted
      if (wasInterrupted) seen.add(result)
    }
    for (const usage of seen) assert.ok([16, 18].includes(usage), `${usage} units`)
    assert.ok(seen.size > 0)
  })

  test(`${sums}: an expired cell at the end of a lap counts nothing, also with the smooth edge`, () => {
    const { clock, limiter, shape } = setUp(sums, 300, 100, 'smooth')
    clock.set((11 * shape.ring - 1) * SECOND_MS)
    limiter.check('key', 50)
    clock.advance(301.5 * SECOND_MS)
    assert.equal([limiter.usage('key'), limiter.peek('key').remaining], [0, 100])
  })
}

test.run()
