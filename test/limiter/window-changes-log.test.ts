// run: also-full
// Random operations and changes of the window, judged by a log of all admissions.
import { attachLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { limiterWith, random } from './support.js'

const RUNS = sized({ quick: 20, full: 60 })
const STEPS = 250
const KEYS = ['a', 'b', 'c']

interface Charge {
  readonly key: string
  readonly atMs: number
  /** The window by which it was admitted. */
  readonly windowMs: number
  cost: number
  /** Whether the window, or that of its admission, counted it at each change so far: then none may forget it. */
  isKept: boolean
}

const RULES = [
  { window: 60_000, granularity: 1_000 },
  { window: 60_000, granularity: 1_000, edge: 'smooth' },
  { window: 60_000, granularity: 100, rangeSum: 'blocks' },
  { window: 60_000, granularity: 100, rangeSum: 'fenwick' },
] as const

/** Windows in milliseconds, from a tenth to ten times the first one. */
const WINDOWS = [6_000, 60_000, 61_200, 600_000]

for (const [index, rule] of RULES.entries()) {
  const { edge = 'strict', rangeSum } = rule as { edge?: string; rangeSum?: string }
  test(`no window is over its limit, and at rest all is available: ${edge}, ${rangeSum ?? 'linear'}`, () => {
    for (let seed = 1; seed <= RUNS; seed++) play(rule, seed * RULES.length + index)
  })
}

/** Plays random operations on two limiters of one memory, and judges each admission. */
function play(rule: (typeof RULES)[number], seed: number): void {
  const next = random(seed)
  const { limiter, clock } = limiterWith({ ...rule, limit: 8, onFull: seed % 2 ? 'deny' : 'evict' })
  const limiters: Limiter[] = [limiter, attachLimiter(limiter.share())]
  const charges: Charge[] = []
  const { edge } = limiter.rule
  let changes = 0
  for (let step = 0; step < STEPS; step++) {
    const own = limiters[next(2)]!
    const key = KEYS[next(KEYS.length)]!
    const pick = next(20)
    if (pick < 9) {
      const cost = 1 + next(4)
      const decision = own.check(key, cost)
      if (decision.allowed) {
        charges.push({ key, atMs: clock.now(), windowMs: own.rule.windowMs, cost, isKept: true })
        judge()
        if (next(6) === 0) charges.at(-1)!.cost -= own.refund(decision)
      } else judgeRefusal(decision.retryAfterMs)
    } else if (pick < 11) own.peek(key, 1 + next(4))
    else if (pick < 12) assert.ok(own.usage(key) <= admitted(key), 'each unit counts once')
    else if (pick < 13) own.checkMany(KEYS, 0)
    else if (pick < 15) {
      const { windowMs } = own.rule
      for (const charge of charges)
        charge.isKept &&= charge.atMs > clock.now() - Math.max(windowMs, charge.windowMs)
      own.update('default', { window: WINDOWS[next(WINDOWS.length)]!, limit: 4 + next(8) })
      changes++
      if (changes === 60) break
    } else clock.advance(next(4) === 0 ? next(900_000) : next(5_000))
  }
  clock.advance(2 * 660_000)
  for (const key of KEYS) {
    const { limit } = limiter.rule
    assert.ok(limiters[next(2)]!.check(key, limit).allowed, `seed ${seed}: the whole limit at rest`)
  }

  /** A change may let units count for another window. */
  function admitted(key: string): number {
    return charges.reduce((sum, charge) => (charge.key === key ? sum + charge.cost : sum), 0)
  }

  /** The units of the last admission's key that count in the window that ends now. */
  function judge(): void {
    const { key } = charges.at(-1)!
    const { windowMs, granularityMs, limit } = limiter.rule
    const lengthMs = edge === 'smooth' ? windowMs - granularityMs : windowMs
    const counted = charges.filter(
      (charge) => charge.key === key && charge.isKept && charge.atMs > clock.now() - lengthMs,
    )
    const units = counted.reduce((sum, { cost }) => sum + cost, 0)
    assert.ok(
      units <= limit,
      `seed ${seed}: ${units} of ${limit} in ${windowMs} ms, after ${changes} changes`,
    )
  }

  /** A refusal ends after at most a window, and the buckets of the window before. */
  function judgeRefusal(retryAfterMs: number): void {
    if (retryAfterMs === Number.POSITIVE_INFINITY) return
    const { windowMs, granularityMs } = limiter.rule
    assert.ok(retryAfterMs <= windowMs + granularityMs, `seed ${seed}: refused for ${retryAfterMs} ms`)
  }
}

test.run()
