// run: once, also-full
// The algorithms that count in the admission word, against their definitions, on random operations.
import { createLimiter, type Limiter, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fullIn, unitsIn } from '../conformance/algorithms.js'
import { sized } from '../size.js'
import { random } from './random.js'

const RUNS = sized({ quick: 40, full: 400 })
const STEPS = 300
const START_MS = 1_700_000_000_123

/** A whole number from `least` to `most`. */
type Draw = (least: number, most: number) => number

/** How far the clock moves: mostly a part of the window, at times many windows, or months. */
function jump(draw: Draw, windowMs: number): number {
  const kind = draw(0, 19)
  if (kind < 8) return draw(0, 3)
  if (kind < 16) return draw(0, Math.ceil(windowMs / 3))
  return draw(0, kind < 19 ? 4 * windowMs : 100 * 86_400_000)
}

/** What is counted of one key. Limits are those of calls, in units at once. */
interface Reference {
  /** Units that count at this moment, by this limit. */
  used(nowMs: number, limit: number): number
  charge(nowMs: number, cost: number, limit: number): void
  refund(nowMs: number, cost: number, limit: number): void
}

/** The most that counts, the limit at once, those of calls, and the reference of a rule. */
interface Case {
  readonly rule: RuleOptions
  readonly most: number
  readonly limit: number
  /** Multiples of the rule's limit, as calls have them, and of the limit at once. */
  otherLimit(draw: Draw): { readonly ofCall: number; readonly atOnce: number }
  readonly windowMs: number
  reference(): Reference
}

function bucketCase(draw: Draw): Case {
  const limit = draw(1, 40)
  const burst = draw(0, 1) === 0 ? limit : limit * draw(1, 4)
  // The bucket fills up in a whole number of milliseconds that has all parts of its eighths.
  const windowMs = 8 * draw(1, 5) * limit
  const fillMs = (windowMs * burst) / limit
  const units = unitsIn(fillMs, burst)
  const rule = { limit, window: windowMs, burst, algorithm: 'token-bucket' } as const
  return {
    rule,
    most: 3 * burst,
    limit: burst,
    otherLimit(draw) {
      const ofCall = draw(1, draw(0, 1) === 0 ? 60 : Math.floor(units / (burst / limit)))
      return { ofCall, atOnce: (ofCall * burst) / limit }
    },
    windowMs: fillMs,
    reference: () => bucketOf(units, fillMs),
  }
}

function bucketOf(units: number, fillMs: number): Reference {
  const unitOf = (ms: number) => Number((BigInt(ms) * BigInt(units)) / BigInt(fillMs))
  const timeOf = (cost: number, limit: number) => Math.ceil((cost * fullIn(units, limit)) / limit)
  let full = 0
  return {
    used: (nowMs, limit) => Math.max(0, Math.ceil(((full - unitOf(nowMs)) * limit) / fullIn(units, limit))),
    charge(nowMs, cost, limit) {
      const now = unitOf(nowMs)
      full = Math.min(Math.max(full, now) + timeOf(cost, limit), Math.max(full, now + 3 * units))
    },
    refund(nowMs, cost, limit) {
      full = Math.max(full - timeOf(cost, limit), unitOf(nowMs))
    },
  }
}

/** A window from a whole multiple on, or from the first charge on of which something counts. */
function windowCase(draw: Draw): Case {
  const limit = draw(1, 40)
  const windowMs = draw(1, 4_000)
  const align = draw(0, 1) === 0 ? 'clock' : 'first'
  const rule = { limit, window: windowMs, align, algorithm: 'fixed-window' } as const
  const otherLimit = () => {
    const other = draw(1, 60)
    return { ofCall: other, atOnce: other }
  }
  return { rule, most: 2 ** 21 - 1, limit, otherLimit, windowMs, reference: () => windowOf(windowMs, align) }
}

function windowOf(windowMs: number, align: 'clock' | 'first'): Reference {
  let begunMs = Number.NEGATIVE_INFINITY
  let count = 0
  const isOver = (nowMs: number) => nowMs >= begunMs + windowMs
  return {
    used: (nowMs) => (isOver(nowMs) ? 0 : count),
    charge(nowMs, cost) {
      if (isOver(nowMs) || count === 0) {
        begunMs = align === 'clock' ? nowMs - (nowMs % windowMs) : nowMs
        count = 0
      }
      count += cost
    },
    refund(nowMs, cost) {
      if (!isOver(nowMs)) count = Math.max(0, count - cost)
    },
  }
}

/** The first whole millisecond after which at most `most` units count. */
function untilAtMost(
  reference: Reference,
  nowMs: number,
  most: number,
  limit: number,
  longestMs: number,
): number {
  let low = -1
  let high = longestMs
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (reference.used(nowMs + middle, limit) <= most) high = middle
    else low = middle
  }
  return high
}

function step(made: Case, limiter: Limiter, reference: Reference, nowMs: number, draw: Draw): void {
  const { limit, most, windowMs } = made
  const used = reference.used(nowMs, limit)
  const cost = draw(1, Math.max(1, Math.ceil(limit / draw(1, 6))))
  switch (draw(0, 9)) {
    case 0:
      assert.is(limiter.refund('key', cost), Math.min(cost, used))
      reference.refund(nowMs, cost, limit)
      return
    case 1:
      limiter.penalize('key', cost)
      reference.charge(nowMs, cost, limit)
      assert.is(limiter.usage('key'), Math.min(most, reference.used(nowMs, limit)))
      return
    case 2:
      assert.is(limiter.peek('key', cost).allowed, used + cost <= limit, 'peek')
      return
    case 3: {
      const { decision, cost: asked, limit: own } = decided(made, limiter, reference, nowMs, draw)
      if (!decision.allowed) return
      assert.is(limiter.refund(decision), asked, 'given back at once')
      reference.refund(nowMs, asked, own)
      assert.is(limiter.usage('key'), used)
      return
    }
    case 4:
      limiter.block('key', 1_000)
      assert.not(limiter.check('key', cost).allowed)
      limiter.unblock('key')
      return
    default: {
      const { decision, cost: asked, limit: own } = decided(made, limiter, reference, nowMs, draw)
      const { allowed, remaining, retryAfterMs, resetMs } = decision
      assert.is(remaining, Math.max(0, own - reference.used(nowMs, own)))
      const longestMs = 4 * windowMs
      const fitsMs = untilAtMost(reference, nowMs, own - asked, own, longestMs)
      assert.is(retryAfterMs, allowed ? 0 : Math.max(1, fitsMs))
      assert.is(resetMs, untilAtMost(reference, nowMs, 0, own, longestMs))
    }
  }
}

/** A request by the limit of the rule, or by another one. */
function decided(made: Case, limiter: Limiter, reference: Reference, nowMs: number, draw: Draw) {
  const other = draw(0, 1) === 0 ? undefined : made.otherLimit(draw)
  const limit = other?.atOnce ?? made.limit
  const cost = draw(1, Math.max(1, Math.ceil(limit / draw(1, 6))))
  const used = reference.used(nowMs, limit)
  const decision = limiter.check('key', cost, other && { limit: other.ofCall })
  assert.is(decision.allowed, used + cost <= limit, `${used} of ${limit} used, ${cost} asked`)
  if (decision.allowed) reference.charge(nowMs, cost, limit)
  return { decision, cost, limit }
}

for (const [name, caseOf] of [
  ['token bucket', bucketCase],
  ['fixed window', windowCase],
] as const) {
  test(`${name}: random requests, refunds, penalties and blocks are counted as by the definition, over months`, () => {
    for (let seed = 1; seed <= RUNS; seed++) {
      const next = random(seed)
      const draw: Draw = (least, most) => least + Math.floor(next() * (most - least + 1))
      const made = caseOf(draw)
      const clock = manualClock(START_MS)
      const limiter = createLimiter({ ...made.rule, maxKeys: 10, clock })
      const reference = made.reference()
      let nowMs = START_MS
      for (let i = 0; i < STEPS; i++) {
        try {
          step(made, limiter, reference, nowMs, draw)
        } catch (error) {
          throw new Error(`seed ${seed}, step ${i}, ${JSON.stringify(made.rule)}`, { cause: error })
        }
        const ms = jump(draw, made.windowMs)
        nowMs += ms
        clock.advance(ms)
      }
    }
  })
}

test.run()
