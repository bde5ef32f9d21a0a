// run: also-long
// Compares several rules with one exact log for each: all or nothing, and the exact `retryAfterMs`.

import { createLimiter, type Decision, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { ExactLog } from '../judge/exact-log.js'
import { START_MS } from './support.js'

/** One rule by an exact log of ticks. A strict window holds its whole oldest bucket. */
class LoggedRule {
  readonly name: string
  readonly limit: number
  readonly #granuleMs: number
  readonly #buckets: number
  readonly #logs = new Map<string, ExactLog>()

  constructor(name: string, limit: number, granuleMs: number, buckets: number) {
    this.name = name
    this.limit = limit
    this.#granuleMs = granuleMs
    this.#buckets = buckets
  }

  get options(): RuleOptions {
    const window = this.#granuleMs * this.#buckets
    return { name: this.name, limit: this.limit, window, granularity: this.#granuleMs }
  }

  used(key: string, atMs: number): number {
    return this.#of(key).used(this.#tick(atMs), this.#buckets + 1)
  }

  fits(key: string, cost: number, atMs: number): boolean {
    return this.used(key, atMs) + cost <= this.limit
  }

  /** Negative: gives units back. */
  add(key: string, atMs: number, units: number): void {
    this.#of(key).add(this.#tick(atMs), units)
  }

  /** Whether a charge at this moment still counts. */
  counts(chargedMs: number, atMs: number): boolean {
    return this.#tick(atMs) - this.#tick(chargedMs) <= this.#buckets
  }

  #of(key: string): ExactLog {
    const log = this.#logs.get(key) ?? new ExactLog()
    this.#logs.set(key, log)
    return log
  }

  #tick(ms: number): number {
    return Math.floor(ms / this.#granuleMs)
  }
}

const rule = fc.record({
  limit: fc.integer({ min: 1, max: 30 }),
  granuleMs: fc.constantFrom(1, 7, 50, 333),
  buckets: fc.integer({ min: 1, max: 12 }),
})
const key = fc.constantFrom('a', 'b')
const cost = fc.integer({ min: 1, max: 12 })
const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('check' as const), key, cost }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('peek' as const), key, cost }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund' as const), index: fc.nat(50) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 500 }) }),
  },
)

/** Asserts that a decision at this moment agrees with the logs. */
function assertDecided(
  decision: Decision,
  rules: readonly LoggedRule[],
  key: string,
  cost: number,
  nowMs: number,
) {
  const left = rules.map((each) => each.limit - each.used(key, nowMs))
  const below = rules.findIndex(({ limit }) => cost > limit)
  const full = rules.findIndex((each) => !each.fits(key, cost, nowMs))
  assert.is(decision.allowed, full < 0)
  if (full >= 0) assert.is(decision.rule, rules[below >= 0 ? below : full]!.name)
  if (full < 0) return
  assert.equal(
    decision.rules.map(({ remaining }) => remaining),
    left,
    'nothing was charged',
  )
  assert.equal(
    decision.rules.map(({ allowed }) => allowed),
    rules.map((each) => each.fits(key, cost, nowMs)),
  )
  const { retryAfterMs } = decision
  if (below >= 0) return assert.is(retryAfterMs, Number.POSITIVE_INFINITY)
  const fitAt = (ms: number) => rules.every((each) => each.fits(key, cost, ms))
  assert.ok(fitAt(nowMs + retryAfterMs), `fits after ${retryAfterMs} ms`)
  assert.not(fitAt(nowMs + retryAfterMs - 1), `does not fit after ${retryAfterMs - 1} ms`)
}

test('several rules decide like one exact log for each rule, all or nothing', () => {
  const seen = { allowed: 0, refusedByLater: 0, refunded: 0 }
  const runs = fc.property(
    fc.array(rule, { minLength: 2, maxLength: 4 }),
    fc.array(operation, { minLength: 20, maxLength: 120 }),
    (shapes, operations) => {
      const rules = shapes.map(
        ({ limit, granuleMs, buckets }, i) => new LoggedRule(`rule ${i}`, limit, granuleMs, buckets),
      )
      const clock = manualClock(START_MS)
      const limiter = createLimiter({ rules: rules.map(({ options }) => options), maxKeys: 20, clock })
      const charged: { decision: Decision; key: string; cost: number; atMs: number }[] = []
      for (const op of operations) {
        const nowMs = clock.now()
        if (op.do === 'advance') clock.advance(op.ms)
        else if (op.do === 'refund') {
          const [one] = charged.splice(op.index % Math.max(1, charged.length), 1)
          if (one === undefined) continue
          const counting = rules.filter((each) => each.counts(one.atMs, nowMs))
          for (const each of counting) each.add(one.key, one.atMs, -one.cost)
          assert.is(limiter.refund(one.decision), counting.length > 0 ? one.cost : 0)
          seen.refunded++
        } else {
          const decision = limiter[op.do](op.key, op.cost)
          assertDecided(decision, rules, op.key, op.cost, nowMs)
          if (decision.allowed && op.do === 'check') {
            for (const each of rules) each.add(op.key, nowMs, op.cost)
            charged.push({ decision, key: op.key, cost: op.cost, atMs: nowMs })
            seen.allowed++
          } else if (decision.rules[0]!.allowed) seen.refusedByLater++
        }
        for (const each of rules) {
          for (const name of ['a', 'b']) {
            assert.is(limiter.usage(name, undefined, { rule: each.name }), each.used(name, clock.now()))
          }
        }
      }
    },
  )
  fc.assert(runs, { numRuns: 150 })
  assert.ok(seen.allowed > 500 && seen.refusedByLater > 100 && seen.refunded > 50, JSON.stringify(seen))
})

test.run()
