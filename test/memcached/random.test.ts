// run: also-full
// Random operations on a real Memcached against a model of two counters: every figure of every decision.
import { randomInt } from 'node:crypto'
import type { Decision } from 'millrace'
import type { MemcachedLimiter } from 'millrace/memcached'
import * as assert from 'uvu/assert'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { sized } from '../size.js'
import { end, Limiters } from './limiters.js'

const RULES = [
  { name: 'short', limit: 6, window: 50 },
  { name: 'long', limit: 25, window: 700 },
] as const

interface Charge {
  readonly index: number
  readonly units: number
}

/** The units of one key by the windows in which they were charged: no formula of the limiter. */
class ModelRule {
  readonly limit: number
  readonly windowMs: number
  #charges: Charge[] = []

  constructor({ limit, window }: (typeof RULES)[number]) {
    this.limit = limit
    this.windowMs = window
  }

  index(nowMs: number): number {
    return Math.floor(nowMs / this.windowMs)
  }

  charge(units: number, nowMs: number): Charge {
    const charge = { index: this.index(nowMs), units }
    this.#charges.push(charge)
    return charge
  }

  /** Takes out units of a window. Returns how many there were. */
  takeOut(units: number, index: number): number {
    const given = Math.min(units, this.#unitsOf(index))
    this.#charges.push({ index, units: -given })
    return given
  }

  clear(): void {
    this.#charges = []
  }

  refund(units: number, nowMs: number): number {
    const older = this.takeOut(units, this.index(nowMs) - 1)
    return older + this.takeOut(units - older, this.index(nowMs))
  }

  /** Whether previous * (windowMs - elapsedMs) + (current + cost) * windowMs <= most * windowMs. */
  fits(cost: number, nowMs: number, most = this.limit): boolean {
    const index = this.index(nowMs)
    const leftMs = this.windowMs - (nowMs - index * this.windowMs)
    const weighted = this.#unitsOf(index - 1) * leftMs + (this.#unitsOf(index) + cost) * this.windowMs
    return weighted <= most * this.windowMs
  }

  /** The first millisecond from now on at which it fits, found by trying each. */
  untilFits(cost: number, nowMs: number, most = this.limit): number {
    if (cost > most) return Number.POSITIVE_INFINITY
    let ms = 0
    while (!this.fits(cost, nowMs + ms, most)) ms++
    return ms
  }

  remaining(nowMs: number): number {
    let units = this.limit
    while (units > 0 && !this.fits(units, nowMs)) units--
    return units
  }

  #unitsOf(index: number): number {
    return this.#charges.filter((charge) => charge.index === index).reduce((sum, { units }) => sum + units, 0)
  }
}

/** A limiter, and the model of one of its keys. */
class Pair {
  readonly limiter: MemcachedLimiter
  readonly #rules = RULES.map((rule) => new ModelRule(rule))
  #last: { decision: Decision; charges: Charge[]; cost: number } | undefined
  refusals = 0

  constructor(limiter: MemcachedLimiter) {
    this.limiter = limiter
  }

  async act(nowMs: number): Promise<void> {
    const cost = randomInt(0, 4)
    switch (randomInt(0, 20)) {
      case 0:
        await this.limiter.penalize('key', cost + 1)
        for (const rule of this.#rules) rule.charge(cost + 1, nowMs)
        return
      case 1: {
        const given = this.#rules.map((rule) => rule.refund(cost, nowMs))
        assert.is(await this.limiter.refund('key', cost), Math.max(...given))
        return
      }
      case 2:
        return this.#giveBack(nowMs)
      case 3:
        await this.limiter.clear('key')
        this.#last = undefined
        for (const rule of this.#rules) rule.clear()
        return
      case 4:
        return this.#compare(await this.limiter.peek('key', cost), cost, nowMs, false)
      case 5: {
        const { allowed } = await this.limiter.checkMany(['key', 'key'], cost)
        for (const one of allowed) this.#decide(one === 1, cost, nowMs, true)
        return
      }
      default:
        return this.#compare(await this.limiter.check('key', cost), cost, nowMs, true)
    }
  }

  async #giveBack(nowMs: number): Promise<void> {
    const last = this.#last
    if (last === undefined) return
    this.#last = undefined
    const given = last.charges.map(({ index }, i) => {
      const rule = this.#rules[i]!
      return index < rule.index(nowMs) - 1 ? 0 : rule.takeOut(last.cost, index)
    })
    assert.is(await this.limiter.refund(last.decision), Math.max(0, ...given))
  }

  /** Returns when the request fits each rule. */
  #decide(allowed: boolean, cost: number, nowMs: number, charges: boolean) {
    const untilMs = this.#rules.map((rule) => (cost === 0 ? 0 : rule.untilFits(cost, nowMs)))
    assert.is(
      allowed,
      untilMs.every((ms) => ms === 0),
    )
    if (!allowed) this.refusals++
    const charged = allowed && charges && cost > 0 ? this.#rules.map((rule) => rule.charge(cost, nowMs)) : []
    return { untilMs, charged }
  }

  #compare(decision: Decision, cost: number, nowMs: number, charges: boolean): void {
    const { untilMs, charged } = this.#decide(decision.allowed, cost, nowMs, charges)
    if (charged.length > 0) this.#last = { decision, charges: charged, cost }
    assert.equal(
      decision.rules.map(({ remaining, retryAfterMs, resetMs }) => [remaining, retryAfterMs, resetMs]),
      this.#rules.map((rule, i) => [rule.remaining(nowMs), untilMs[i], rule.untilFits(0, nowMs, 0)]),
    )
  }
}

test('every figure is that of the model, whatever is done', async () => {
  const server = await startMemcached()
  const limiters = new Limiters(server.port)
  try {
    const pairs = Array.from({ length: 4 }, () => new Pair(limiters.timed({ rules: RULES })))
    for (let i = 0; i < sized({ quick: 500, full: 5_000 }); i++) {
      limiters.nowMs += randomInt(0, 40) ** 2 % 61
      await Promise.all(pairs.map((pair) => pair.act(limiters.nowMs)))
    }
    for (const { refusals } of pairs) assert.ok(refusals > 0)
  } finally {
    await limiters.close()
    await end(server)
  }
})

test.run()
