// run: once, also-long
// Compares a limiter with a unit with a model in BigInt, a log of charges in whole units.

import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { START_MS } from './support.js'

const GRANULES = 6
const WINDOW_MS = 60_000
const GRANULE_MS = WINDOW_MS / GRANULES

/** The charges of one key by a rule, in the units of the rule. */
class Model {
  readonly unit: bigint
  readonly limit: bigint
  readonly charges: { tick: number; units: bigint }[] = []

  constructor(limit: number, unit: number) {
    this.unit = BigInt(unit)
    this.limit = BigInt(limit) / this.unit
  }

  unitsOf(cost: number): bigint {
    return (BigInt(cost) + this.unit - 1n) / this.unit
  }

  used(tick: number): bigint {
    return this.#counting(tick).reduce((sum, { units }) => sum + units, 0n)
  }

  check(tick: number, cost: number): boolean {
    const units = this.unitsOf(cost)
    if (units > 0n && this.used(tick) + units > this.limit) return false
    this.charges.push({ tick, units })
    return true
  }

  /** Takes whole units of a quantity out of the oldest charges. */
  refund(tick: number, quantity: number): bigint {
    let left = BigInt(quantity) / this.unit
    const before = left
    for (const charge of this.#counting(tick)) {
      const part = charge.units < left ? charge.units : left
      charge.units -= part
      left -= part
    }
    return (before - left) * this.unit
  }

  remaining(tick: number): number {
    const left = this.limit - this.used(tick)
    return Number((left > 0n ? left : 0n) * this.unit)
  }

  #counting(tick: number) {
    return this.charges.filter((charge) => charge.tick >= tick - GRANULES)
  }
}

/** A limit of 1 to 40 units of any size, plus a fraction of a unit. */
const rule = fc
  .record({
    bits: fc.constantFrom(0, 1, 4, 10, 16, 25, 30, 32, 33, 36, 40, 43, 45, 46),
    mantissa: fc.nat(),
    units: fc.integer({ min: 1, max: 40 }),
  })
  .chain(({ bits, mantissa, units }) => {
    const unit = 2 ** bits + (mantissa % 2 ** bits)
    return fc
      .nat(unit - 1 > 2 ** 31 - 1 ? 2 ** 31 - 1 : unit - 1)
      .map((rest) => ({ unit, limit: units * unit + rest }))
  })

const call = fc.record({
  /** The part of the limit, above which a cost may be a little. */
  part: fc.constantFrom(0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1, 1.1),
  off: fc.integer({ min: -1, max: 1 }),
  /** Rounds the cost to a multiple of the unit before `off` is added. */
  isMultiple: fc.boolean(),
  isSmall: fc.boolean(),
  pauseMs: fc.integer({ min: 0, max: 15_000 }),
  what: fc.constantFrom('check', 'check', 'check', 'check', 'batch', 'refund', 'penalize', 'reserve'),
})

test('admissions, remaining, usage and refunds are those of a model in BigInt', () => {
  let admitted = 0
  let refused = 0
  let above32Bits = 0
  fc.assert(
    fc.property(rule, fc.array(call, { minLength: 5, maxLength: 30 }), ({ unit, limit }, calls) => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter({
        limit,
        unit,
        window: WINDOW_MS,
        granularity: GRANULE_MS,
        maxKeys: 4,
        clock,
      })
      const model = new Model(limit, unit)
      assert.is(limiter.rule.limit, Number(model.limit * model.unit))
      for (const { part, off, isMultiple, isSmall, pauseMs, what } of calls) {
        clock.advance(pauseMs)
        const tick = Math.floor(clock.now() / GRANULE_MS)
        const about = Math.floor(part * limit * (isSmall ? 0.1 : 1))
        const cost = Math.max(0, (isMultiple ? about - (about % unit) : about) + off)
        if (cost > 2 ** 32) above32Bits++
        const hint = `${what} ${cost} of ${limit} in units of ${unit}`
        if (what === 'check' || what === 'batch') {
          const isAllowed = model.check(tick, cost)
          if (isAllowed) admitted++
          else refused++
          if (what === 'check') {
            const { allowed, remaining, limit: shown } = limiter.check('key', cost)
            assert.equal(
              [allowed, remaining, shown],
              [isAllowed, model.remaining(tick), limiter.rule.limit],
              hint,
            )
          } else {
            const { allowed, remaining } = limiter.checkMany(['key'], cost, { remaining: true })
            assert.equal([allowed[0], remaining![0]], [isAllowed ? 1 : 0, model.remaining(tick)], hint)
          }
        } else if (what === 'refund') {
          assert.is(limiter.refund('key', cost), Number(model.refund(tick, cost)), hint)
        } else if (what === 'penalize') {
          limiter.penalize('key', cost)
          model.charges.push({ tick, units: model.unitsOf(cost) })
        } else {
          const reservation = limiter.reserve('key', cost)
          const actual = Math.floor(cost * part)
          if (reservation.decision.allowed) {
            const change = reservation.commit(actual)
            const units = model.unitsOf(actual)
            assert.is(change, Number((units - model.unitsOf(cost)) * model.unit), hint)
            model.charges.push({ tick, units })
          }
        }
        assert.is(limiter.usage('key'), Number(model.used(tick) * model.unit), hint)
      }
    }),
    { numRuns: 700 },
  )
  assert.ok(admitted > 500 && refused > 500 && above32Bits > 500, `${admitted}, ${refused}, ${above32Bits}`)
})

test('in any window the admitted quantities stay within the limit, although each is rounded', () => {
  const costs = fc.array(fc.integer({ min: 0, max: 3e9 }), { minLength: 20, maxLength: 100 })
  fc.assert(
    fc.property(costs, fc.integer({ min: 1, max: 1e9 }), (quantities, unit) => {
      const clock = manualClock(START_MS)
      const limit = 1e10
      const limiter = createLimiter({ limit, unit: unit * 3 + 5_000, window: '1m', maxKeys: 4, clock })
      const log: { at: number; cost: number }[] = []
      for (const cost of quantities) {
        clock.advance((cost % 7) * 1_000)
        if (limiter.check('key', cost).allowed) log.push({ at: clock.now(), cost })
      }
      for (const { at } of log) {
        const inWindow = log.filter((other) => other.at > at - 60_000 && other.at <= at)
        assert.ok(inWindow.reduce((sum, { cost }) => sum + cost, 0) <= limit)
      }
    }),
    { numRuns: 100 },
  )
})

test.run()
