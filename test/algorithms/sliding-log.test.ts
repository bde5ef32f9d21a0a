// run: once, also-full
// The sliding log against its definition, on random operations and readings with fractions of a millisecond.
import { createLimiter, type Decision, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { random } from './random.js'

const RUNS = sized({ quick: 60, full: 600 })
const STEPS = 300
const START_MS = 1_700_000_000_123

/** A whole number from `least` to `most`. */
type Draw = (least: number, most: number) => number

/** How far the clock moves: mostly a part of the window, at times hours, or months. */
function jump(draw: Draw, windowMs: number): number {
  const part = draw(0, 1) === 0 ? 0 : draw(1, 15) / 16
  const kind = draw(0, 39)
  if (kind < 12) return part
  if (kind < 34) return part + draw(0, Math.ceil(windowMs / 3))
  if (kind < 38) return part + draw(0, 2 * windowMs)
  return part + draw(0, kind === 38 ? 2 ** 29 : 2 ** 33)
}

/** The units of one key: each by the first whole millisecond at or after its reading. */
class Reference {
  readonly #windowMs: number
  readonly #most: number
  dates: number[] = []

  constructor(windowMs: number, most: number) {
    this.#windowMs = windowMs
    this.#most = most
  }

  /** Units that count at this moment. */
  used(nowMs: number): number {
    return this.dates.filter((date) => Math.floor(nowMs) < date + this.#windowMs).length
  }

  charge(nowMs: number, cost: number): void {
    this.dates.push(...Array.from({ length: Math.min(cost, this.#most) }, () => Math.ceil(nowMs)))
    this.#keep(nowMs)
  }

  /** The oldest first. */
  refund(nowMs: number, cost: number): void {
    this.#keep(nowMs)
    this.dates = this.dates.slice(cost)
  }

  /** The units of one decision, if they still count. */
  giveBack(nowMs: number, atMs: number, cost: number): number {
    this.#keep(nowMs)
    const date = Math.ceil(atMs)
    if (!this.dates.includes(date)) return 0
    const kept = this.dates.filter((other) => other !== date)
    const same = this.dates.length - kept.length - cost
    const first = this.dates.indexOf(date)
    this.dates = [...kept.slice(0, first), ...Array.from({ length: same }, () => date), ...kept.slice(first)]
    return cost
  }

  #keep(nowMs: number): void {
    const counting = this.dates.filter((date) => Math.floor(nowMs) < date + this.#windowMs)
    this.dates = counting.slice(Math.max(0, counting.length - this.#most))
  }
}

/** The first whole number of milliseconds after which at most `most` units count. */
function untilAtMost(reference: Reference, nowMs: number, most: number, longestMs: number): number {
  let low = -1
  let high = longestMs
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (reference.used(nowMs + middle) <= most) high = middle
    else low = middle
  }
  return high
}

/** A decision that may be given back later. */
interface Kept {
  readonly decision: Decision
  readonly atMs: number
  readonly cost: number
}

function run(seed: number): void {
  const next = random(seed)
  const draw: Draw = (least, most) => least + Math.floor(next() * (most - least + 1))
  const maxLimit = draw(1, 30)
  const limit = draw(1, maxLimit)
  const windowMs = [draw(1, 20), draw(1, 5_000), draw(1, 108_000_000)][draw(0, 2)]!
  const clock = manualClock(START_MS)
  const limiter: Limiter = createLimiter({
    limit,
    window: windowMs,
    algorithm: 'sliding-log',
    maxLimit,
    clock,
    maxKeys: 4,
  })
  const reference = new Reference(windowMs, maxLimit)
  let kept: Kept | undefined
  for (let i = 0; i < STEPS; i++) {
    clock.advance(jump(draw, windowMs))
    const nowMs = clock.now()
    const used = reference.used(nowMs)
    const own = draw(0, 3) > 0 ? limit : draw(1, maxLimit)
    const cost = draw(1, Math.max(1, Math.ceil(own / draw(1, 6))))
    const what = `seed ${seed}, step ${i}, ${nowMs}: `
    switch (draw(0, 11)) {
      case 0:
        assert.is(limiter.refund('key', cost), Math.min(cost, used), `${what}refund`)
        reference.refund(nowMs, cost)
        if (used > 0) kept = undefined // it may have been refunded
        break
      case 1:
        limiter.penalize('key', cost)
        reference.charge(nowMs, cost)
        kept = undefined // it may have got another date
        assert.is(limiter.usage('key'), reference.used(nowMs), `${what}penalize`)
        break
      case 2:
        assert.is(limiter.peek('key', cost, { limit: own }).allowed, used + cost <= own, `${what}peek`)
        break
      case 3:
        if (kept === undefined) break
        assert.is(
          limiter.refund(kept.decision),
          reference.giveBack(nowMs, kept.atMs, kept.cost),
          `${what}give back`,
        )
        kept = undefined
        break
      case 4:
        assert.is(limiter.usage('key', windowMs / 2), lastHalf(reference, nowMs, windowMs), `${what}usage`)
        break
      default: {
        const decision = limiter.check('key', cost, { limit: own })
        const { allowed, remaining, retryAfterMs, resetMs } = decision
        assert.is(allowed, used + cost <= own, `${what}${used} of ${own} used, ${cost} asked`)
        if (allowed) {
          reference.charge(nowMs, cost)
          kept = { decision, atMs: nowMs, cost }
        }
        assert.is(remaining, Math.max(0, own - reference.used(nowMs)), `${what}remaining`)
        const fitsMs = untilAtMost(reference, nowMs, own - cost, 3 * windowMs)
        assert.is(retryAfterMs, allowed ? 0 : Math.max(1, fitsMs), `${what}retryAfterMs`)
        assert.is(resetMs, untilAtMost(reference, nowMs, 0, 3 * windowMs), `${what}resetMs`)
      }
    }
  }
}

const lastHalf = (reference: Reference, nowMs: number, windowMs: number): number =>
  reference.dates.filter((date) => date > nowMs - windowMs / 2 && Math.floor(nowMs) < date + windowMs).length

test('every figure follows from the definition, over months', () => {
  for (let seed = 1; seed <= RUNS; seed++) run(seed)
})

test('a unit counts for its window to the millisecond, and never shorter', () => {
  const clock = manualClock(1_000.25)
  const limiter = createLimiter({ limit: 1, window: '1s', algorithm: 'sliding-log', clock })
  assert.ok(limiter.check('key').allowed)
  clock.set(2_000.25)
  assert.is(limiter.check('key').retryAfterMs, 1) // dated 1001, so that it never counts for less than a second
  clock.set(2_001)
  assert.ok(limiter.check('key').allowed)
  clock.set(3_000)
  assert.not(limiter.check('key').allowed)
  clock.set(3_001) // dated by a whole millisecond: exactly a second
  assert.ok(limiter.check('key').allowed)
})

test('a key that rests for long starts afresh, also where its ticks come round', () => {
  for (const restMs of [2 ** 28, 2 ** 28 + 1, 2 ** 29, 2 ** 31, 2 ** 32 + 5, 2 ** 33 - 5, 3 * 2 ** 32 + 1]) {
    const clock = manualClock(START_MS)
    const limiter = createLimiter({ limit: 3, window: '1h', algorithm: 'sliding-log', clock })
    limiter.check('key', 3)
    clock.advance(restMs)
    assert.is(limiter.usage('key'), 0, `${restMs}`)
    assert.ok(limiter.check('key', 3).allowed, `${restMs}`)
    clock.advance(3_599_999)
    assert.not(limiter.check('key').allowed, `${restMs}`)
  }
})

test('a decision is not given back if a refund by key may have taken its units', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ limit: 5, window: '1m', algorithm: 'sliding-log', clock })
  const [first, second] = [limiter.check('key', 2), limiter.check('key', 2)]
  assert.is(limiter.refund('key', 2), 2)
  assert.equal([limiter.refund(first), limiter.refund(second), limiter.usage('key')], [0, 0, 2])
  const third = limiter.check('key', 2)
  assert.equal([limiter.refund(third), limiter.usage('key')], [2, 2])
})

test('a window of more than 37 hours counts in the shortest whole milliseconds that fit', () => {
  const granularityOf = (window: string) =>
    createLimiter({ limit: 1, window: window as '1d', algorithm: 'sliding-log' }).rule.granularityMs
  assert.equal(['1d', '36h', '7d', '30d'].map(granularityOf), [1, 1, 5, 20])
})

test('auto takes the log where it is smaller than the buckets', () => {
  const ruleOf = (limit: number, more = {}) =>
    createLimiter({ limit, window: '1m', algorithm: 'auto', maxKeys: 1_000, ...more })
  const small = ruleOf(10)
  const buckets = createLimiter({ limit: 10, window: '1m', maxKeys: 1_000 })
  assert.is(small.rule.algorithm, 'sliding-log')
  assert.ok(small.stats().bytes < buckets.stats().bytes)
  assert.is(ruleOf(59).rule.algorithm, 'sliding-log')
  assert.is(ruleOf(60).rule.algorithm, undefined)
  assert.is(ruleOf(10, { maxLimit: 100 }).rule.algorithm, undefined)
  assert.is(ruleOf(10, { granularity: '10s' }).rule.algorithm, undefined)
  assert.is(ruleOf(4_096, { granularity: '10ms' }).rule.algorithm, 'sliding-log')
  assert.is(ruleOf(4_097, { granularity: '10ms' }).rule.algorithm, undefined)
  assert.throws(() => ruleOf(10, { edge: 'smooth' }), /edge/)
})

test('a log has a limit of up to 4,096, and up to its largest limit', () => {
  const create = (options: object) =>
    createLimiter({ limit: 10, window: '1m', algorithm: 'sliding-log', ...options })
  assert.throws(() => create({ limit: 4_097 }), /limit: expected at most 4096 with algorithm: 'sliding-log'/)
  assert.throws(() => create({ maxLimit: 9 }), /maxLimit: expected at least the limit, 10/)
  assert.throws(() => create({ maxLimit: 5_000 }), /maxLimit: expected at most 4096/)
  assert.throws(() => create({ granularity: '1s' }), /granularity: expected nothing beside/)
  const limiter = create({ maxLimit: 20 })
  assert.is(limiter.rule.maxLimit, 20)
  assert.ok(limiter.check('key', 20, { limit: 20 }).allowed)
  assert.throws(() => limiter.check('key', 1, { limit: 21 }), /at most 20/)
  limiter.update('default', { limit: 20, window: '1h' })
  assert.throws(() => limiter.update('default', { limit: 21, window: '1m' }), /at most 20/)
})

test.run()
