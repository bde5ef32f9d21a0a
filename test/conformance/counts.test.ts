// run: once, also-full
// What `stats()` counts in each place, by each way of deciding: the decisions themselves say what is right.

import type { Decision, LimiterStats } from 'millrace'
import * as assert from 'uvu/assert'
import { random } from '../algorithms/random.js'
import type { Either } from '../engines/both.js'
import { type Claims, conform, FIVE, type Options } from './suite.js'

const KEYS = ['a', 'b', 'c', 'd', 'e']
const SHARE = 0.5

/** The same as `FIVE`, and a rule that is not enforced. */
const SEVERAL: Options = {
  rules: [
    { name: 'minute', limit: 5, window: '1m', granularity: '1s' },
    { name: 'hour', limit: 12, window: '1h', granularity: '1m' },
    { name: 'tried', limit: 3, window: '1m', granularity: '1s', shadow: true },
  ],
  maxKeys: 20,
  nearLimit: SHARE,
}

const none = () => ({ admitted: 0, refused: 0, shadowRefused: 0, blocked: 0, nearLimit: 0 })
type Sums = ReturnType<typeof none>

/** What a limiter should have counted. */
class Expected {
  readonly all = none()
  readonly rules: Record<string, Sums>

  constructor(names: readonly string[]) {
    this.rules = Object.fromEntries(names.map((name) => [name, none()]))
  }

  see({ allowed, rule, rules }: Decision, cost: number, isBlocked: boolean): void {
    let [hasShadowed, hasNear] = [false, false]
    for (const part of rules) {
      const own = this.rules[part.rule]!
      const isShadowed = part.shadow?.allowed === false
      const isNear = cost > 0 && !isShadowed && (part.limit - part.remaining) / part.limit >= SHARE
      if (allowed) {
        own.admitted++
        if (isShadowed) own.shadowRefused++
        if (isNear) own.nearLimit++
        hasShadowed ||= isShadowed
        hasNear ||= isNear
      } else if (part.rule === rule) {
        own.refused++
        if (isBlocked) own.blocked++
      }
    }
    this.all[allowed ? 'admitted' : 'refused']++
    if (!allowed && isBlocked) this.all.blocked++
    if (hasShadowed) this.all.shadowRefused++
    if (hasNear) this.all.nearLimit++
  }
}

const sumOf = (one: Sums, other: Sums, name: keyof Sums) => one[name] + other[name]

/** The counts of two limiters on the same memory are those of their decisions, and `shared` has both. */
async function assertCounted(limiters: readonly Either[], expected: readonly Expected[]): Promise<void> {
  const stats = (await Promise.all(limiters.map((limiter) => limiter.stats()))) as LimiterStats[]
  for (const [i, { own, allowed, denied, shadowDenied, shared }] of stats.entries()) {
    const { all, rules } = expected[i]!
    const { rules: ownRules, ...ownAll } = own
    assert.equal(ownAll, all, `own of ${i}`)
    assert.equal(ownRules, rules, `own of ${i}, by rule`)
    const of = shared ?? own
    assert.equal([allowed, denied, shadowDenied], [of.admitted, of.refused, of.shadowRefused])
  }
  // Each has read its own before it was asked: the last of them has all.
  const { shared } = (await limiters[0]!.stats()) as LimiterStats
  const [one, other] = expected.map(({ all }) => all) as [Sums, Sums]
  for (const name of ['admitted', 'refused', 'shadowRefused'] as const)
    if (shared !== undefined) assert.is(shared[name], sumOf(one, other, name), `shared ${name}`)
}

const ONE: Options = { ...FIVE, nearLimit: SHARE }

const claimsWith = (options: Options): Claims => ({
  'counts its own decisions by what came of them, by rule, and shares the sums': async ({
    limiter,
    clock,
    second,
  }) => {
    const limiters = [limiter, second()]
    const expected = limiters.map(() => new Expected(limiter.rules.map(({ name }) => name)))
    const draw = random(11)
    /** By key: until when it is blocked. A block lasts up to a sixteenth of a second longer, and time goes in eighths. */
    const blocked = new Map<string, number>()
    for (let i = 0; i < 250; i++) {
      const key = KEYS[Math.floor(draw() * KEYS.length)]!
      const by = Math.floor(draw() * 2)
      const act = draw()
      if (act < 0.04) {
        const ms = act < 0.02 ? Number.POSITIVE_INFINITY : 20_060
        await limiters[by]!.block(key, ms)
        blocked.set(key, clock.now() + ms)
      } else if (act < 0.08) {
        await limiters[by]!.unblock(key)
        blocked.delete(key)
      } else {
        const cost = Math.floor(draw() ** 3 * 7)
        expected[by]!.see(await limiters[by]!.check(key, cost), cost, clock.now() < (blocked.get(key) ?? 0))
      }
      clock.advance(Math.floor(draw() ** 3 * 64) * 125)
    }
    await assertCounted(limiters, expected)
  },
  'counts no refusal as one of a blocked key because the key before it is blocked': async ({ limiter }) => {
    await limiter.block('a', 20_000)
    await limiter.checkMany(['a', 'd', 'a', 'e'], [1, 20, 1, 20])
    for (const [key, cost] of [
      ['a', 1],
      ['d', 20],
    ] as const)
      await limiter.check(key, cost)
    const { refused, blocked } = ((await limiter.stats()) as LimiterStats).own
    assert.equal({ refused, blocked }, { refused: 6, blocked: 3 })
  },
  'counts the keys of a batch as if each were decided alone': async ({ limiter, make, clock }) => {
    const alone = make(options)
    const draw = random(12)
    for (let i = 0; i < 12; i++) {
      const keys = Array.from({ length: 1 + Math.floor(draw() * 40) }, () => KEYS[Math.floor(draw() * 5)]!)
      const costs = keys.map(() => Math.floor(draw() ** 3 * 7))
      if (draw() < 0.3) for (const each of [limiter, alone]) await each.block(keys[0]!, 20_000)
      await limiter.checkMany(keys, costs)
      for (const [k, key] of keys.entries()) await alone.check(key, costs[k])
      clock.advance(Math.floor(draw() * 30_000))
    }
    const [batches, single] = (await Promise.all([limiter.stats(), alone.stats()])) as LimiterStats[]
    assert.equal(batches!.own, single!.own)
    assert.ok(batches!.own.blocked > 0 && batches!.own.refused > batches!.own.blocked)
    assert.ok(batches!.own.nearLimit > 0)
  },
})

conform([
  [claimsWith(ONE), ONE],
  [claimsWith(SEVERAL), SEVERAL],
])
