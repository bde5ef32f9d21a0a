// run: also-long
// Compares groups with one exact log for each member: all or nothing, and the exact `retryAfterMs`.

import { createLimiter, type GroupDecision, group, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { ExactLog } from '../judge/exact-log.js'
import { START_MS } from './support.js'

interface Shape {
  readonly limit: number
  readonly granuleMs: number
  readonly buckets: number
}

/** The limit of one member by exact logs of ticks. A strict window holds its whole oldest bucket. */
class LoggedMember {
  readonly shape: Shape
  readonly #logs = new Map<string, ExactLog>()

  constructor(shape: Shape) {
    this.shape = shape
  }

  used(key: string, atMs: number): number {
    return this.#of(key).used(this.#tick(atMs), this.shape.buckets + 1)
  }

  fits(key: string, cost: number, atMs: number): boolean {
    return this.used(key, atMs) + cost <= this.shape.limit
  }

  /** Negative: gives units back. */
  add(key: string, atMs: number, units: number): void {
    this.#of(key).add(this.#tick(atMs), units)
  }

  /** Whether a charge at this moment still counts. */
  counts(chargedMs: number, atMs: number): boolean {
    return this.#tick(atMs) - this.#tick(chargedMs) <= this.shape.buckets
  }

  #of(key: string): ExactLog {
    const log = this.#logs.get(key) ?? new ExactLog()
    this.#logs.set(key, log)
    return log
  }

  #tick(ms: number): number {
    return Math.floor(ms / this.shape.granuleMs)
  }
}

const shape = fc.record({
  limit: fc.integer({ min: 1, max: 30 }),
  granuleMs: fc.constantFrom(1, 7, 50, 333),
  buckets: fc.integer({ min: 1, max: 12 }),
})
const NAMES = ['first', 'second', 'third'] as const
const keys = fc.tuple(...NAMES.map(() => fc.constantFrom('a', 'b')))
const cost = fc.integer({ min: 1, max: 12 })
const index = fc.nat(50)
const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('check' as const), keys, cost }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('peek' as const), keys, cost }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund' as const), index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settle' as const), index, cost }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 500 }) }),
  },
)

/** Asserts that a decision at this moment agrees with the logs. */
function assertDecided(
  decision: GroupDecision,
  logged: readonly LoggedMember[],
  keys: readonly string[],
  cost: number,
  nowMs: number,
) {
  const below = logged.findIndex(({ shape }) => cost > shape.limit)
  const fitAt = (ms: number) => logged.map((each, i) => each.fits(keys[i]!, cost, ms))
  const full = fitAt(nowMs).indexOf(false)
  assert.is(decision.allowed, full < 0)
  if (full < 0) return
  assert.is(decision.member, NAMES[below >= 0 ? below : full])
  const parts = logged.map((_, i) => decision.members[NAMES[i]!]!)
  assert.equal(
    parts.map(({ remaining }) => remaining),
    logged.map((each, i) => Math.max(0, each.shape.limit - each.used(keys[i]!, nowMs))),
    'nothing was charged',
  )
  assert.equal(
    parts.map(({ allowed }) => allowed),
    fitAt(nowMs),
  )
  const { retryAfterMs } = decision
  if (below >= 0) return assert.is(retryAfterMs, Number.POSITIVE_INFINITY)
  assert.not(fitAt(nowMs + retryAfterMs).includes(false), `fits after ${retryAfterMs} ms`)
  assert.ok(fitAt(nowMs + retryAfterMs - 1).includes(false), `does not fit after ${retryAfterMs - 1} ms`)
}

test('a group decides like one exact log for each member, all or nothing', () => {
  const seen = { allowed: 0, refusedByLater: 0, refunded: 0, settled: 0 }
  const runs = fc.property(
    fc.array(shape, { minLength: 2, maxLength: 3 }),
    fc.array(operation, { minLength: 20, maxLength: 120 }),
    (shapes, operations) => {
      const logged = shapes.map((each) => new LoggedMember(each))
      const clock = manualClock(START_MS)
      const limiters = shapes.map(({ limit, granuleMs, buckets }) =>
        createLimiter({ limit, window: granuleMs * buckets, granularity: granuleMs, maxKeys: 20, clock }),
      )
      const members = group(Object.fromEntries(limiters.map((limiter, i) => [NAMES[i]!, limiter])))
      const keysOf = (keys: readonly string[]) =>
        Object.fromEntries(limiters.map((_, i) => [NAMES[i]!, keys[i]!]))
      const charged: {
        reservation: ReturnType<typeof members.reserve>
        keys: string[]
        cost: number
        atMs: number
      }[] = []
      let admitted = 0
      for (const op of operations) {
        const nowMs = clock.now()
        if (op.do === 'advance') clock.advance(op.ms)
        else if (op.do === 'refund' || op.do === 'settle') {
          const [one] = charged.splice(op.index % Math.max(1, charged.length), 1)
          if (one === undefined) continue
          const { reservation, keys, cost, atMs } = one
          const units = op.do === 'refund' ? -cost : op.cost - cost
          const changed = logged.map((each, i) => {
            if (units > 0) each.add(keys[i]!, nowMs, units)
            else if (each.counts(atMs, nowMs)) each.add(keys[i]!, atMs, units)
            else return 0
            return units
          })
          const expected = units > 0 ? units : Math.min(...changed)
          if (op.do === 'refund') assert.is(members.refund(reservation.decision), 0 - expected)
          else assert.is(reservation.commit(op.cost), expected)
          seen[op.do === 'refund' ? 'refunded' : 'settled']++
        } else if (op.do === 'peek') {
          assertDecided(members.peek(keysOf(op.keys), op.cost), logged, op.keys, op.cost, nowMs)
        } else {
          const reservation = members.reserve(keysOf(op.keys), op.cost)
          const { decision } = reservation
          assertDecided(decision, logged, op.keys, op.cost, nowMs)
          if (decision.allowed) {
            for (const [i, each] of logged.entries()) each.add(op.keys[i]!, nowMs, op.cost)
            charged.push({ reservation, keys: op.keys, cost: op.cost, atMs: nowMs })
            admitted++
          } else if (decision.members.first!.allowed) seen.refusedByLater++
        }
        for (const [i, each] of logged.entries()) {
          for (const name of ['a', 'b']) assert.is(limiters[i]!.usage(name), each.used(name, clock.now()))
        }
      }
      seen.allowed += admitted
      assert.equal(
        limiters.map((each) => each.stats().allowed),
        limiters.map(() => admitted),
      )
    },
  )
  fc.assert(runs, { numRuns: 150 })
  assert.ok(seen.allowed > 500 && seen.refusedByLater > 100, JSON.stringify(seen))
  assert.ok(seen.refunded > 50 && seen.settled > 50, JSON.stringify(seen))
})

test.run()
