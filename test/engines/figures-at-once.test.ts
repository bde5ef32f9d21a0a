// While figures are read, a decision computes its figures at once. They are those that it would have computed
// when they are read.
import {
  attachLimiter,
  createLimiter,
  type Decision,
  type LimiterOptions,
  manualClock,
  type RuleOptions,
  type RulesLimiterOptions,
} from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { countedOf } from '#millrace/core/unit-decision.js'
import type { InlineEngine } from '#millrace/engines/inline/inline.js'
import { ADM } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import { START_MS } from '../limiter/support.js'
import { onSide } from '../native/sides.js'

type Options = LimiterOptions | RulesLimiterOptions

/** The parts of a decision that one rule made, in whole units. */
const partsOf = (decision: Decision): InlineDecision[] =>
  decision.rules.map((part) => countedOf(part === decision ? decision : part))

/** Lets this many decisions of each rule compute their figures at once. */
function demand(parts: readonly InlineDecision[], decisions: number): void {
  for (const { era } of parts) {
    era.demand.left = decisions
    era.demand.byAddon = decisions
  }
}

const RULE = { limit: 12, window: '1m', granularity: '1s' } satisfies RuleOptions
const HOUR: RuleOptions = { name: 'hour', limit: 20, window: '1h' }
const SHAPES: Record<string, Options> = {
  strict: RULE,
  'strict, granules of no whole milliseconds': { ...RULE, window: '1s', granularity: 1_000 / 60 },
  smooth: { ...RULE, edge: 'smooth' },
  'block sums': { ...RULE, rangeSum: 'blocks', window: '10m' },
  'a Fenwick tree': { ...RULE, rangeSum: 'fenwick', window: '10m' },
  'refusals are charged': { ...RULE, countRefused: true },
  'a shadow rule': { ...RULE, shadow: true },
  'a unit': { ...RULE, limit: 120, unit: 10 },
  'two rules': { rules: [{ ...RULE, name: 'minute' }, HOUR] },
  'two rules, one with a unit': { rules: [{ ...RULE, limit: 120, unit: 10, name: 'minute' }, HOUR] },
  'two rules, one in shadow': { rules: [{ ...RULE, name: 'minute', shadow: true }, HOUR] },
  'a table that denies new keys': { ...RULE, onFull: 'deny', maxKeys: 1 },
}

for (const [name, options] of Object.entries(SHAPES)) {
  test(`${name}: figures computed at once are those computed when they are read`, () => {
    const draw = random(7)
    const below = (end: number) => Math.floor(draw() * end)
    const clock = manualClock(START_MS + 0.25)
    const scale = 'unit' in options ? 10 : 1
    const made = { maxKeys: 20, clock, ...options }
    const atOnce = createLimiter(made)
    const whenRead = createLimiter(made)
    const parts = [atOnce, whenRead].map((limiter) => partsOf(limiter.check('first')))
    let refused = 0
    for (let i = 0; i < 800; i++) {
      clock.advance([0, 0, 0, 0.5, 1, 7, 130, 900, 1_000, 20_000, 60_000][below(11)]!)
      const key = `key ${below(options.onFull === 'deny' ? 40 : 3)}`
      const cost = scale * (below(20) === 0 ? below(14) : below(4))
      const act = below(30)
      const limit = below(4) === 0 && !('rules' in options) ? { limit: scale * (1 + below(15)) } : undefined
      demand(parts[0]!, 64)
      demand(parts[1]!, 0)
      const [one, other] = [atOnce, whenRead].map((limiter) => {
        if (act === 0) limiter.block(key, 5_000)
        if (act === 1) limiter.penalize(key, cost + 1)
        if (act === 2) limiter.refund(key, cost + 1)
        const decision = limiter.check(key, cost, limit)
        const read = { ...decision.toJSON(), rules: decision.rules.map(({ resetMs }) => resetMs) }
        if (act === 3) limiter.refund(decision)
        return read
      })
      assert.equal(one, other, `decision ${i}`)
      if (!one!.allowed || one!.shadow?.allowed === false) refused++
    }
    assert.ok(refused > 30, `only ${refused} were refused`)
  })
}

const READ = ['remaining', 'retryAfter', 'reset'] as const

/** Counts the figures that are computed when they are read. */
function countLate(decision: Decision): { late: number } {
  const count = { late: 0 }
  for (const { era } of partsOf(decision)) {
    const estimates = era.estimates as Record<(typeof READ)[number], (made: unknown) => number>
    for (const figure of READ) {
      const compute = estimates[figure].bind(estimates)
      estimates[figure] = (made) => {
        count.late++
        return compute(made)
      }
    }
  }
  return count
}

const SOON: Record<string, Options> = {
  'one rule': SHAPES.strict!,
  'two rules': SHAPES['two rules']!,
  'refusals are charged': SHAPES['refusals are charged']!,
}
for (const [name, options] of Object.entries(SOON)) {
  test(`${name}: while figures are read, admissions and refusals have theirs at once`, () => {
    const limiter = createLimiter({ maxKeys: 20, clock: manualClock(START_MS), ...options })
    const first = limiter.check('key')
    const count = countLate(first)
    assert.ok(first.remaining > 0)
    assert.ok(count.late > 0, 'the first decision did not know that its figures would be read')
    count.late = 0
    let refused = 0
    for (let i = 0; i < 100; i++) {
      const { allowed, remaining, retryAfterMs, resetMs } = limiter.check('key')
      assert.ok(remaining >= 0 && resetMs > 0)
      assert.is(retryAfterMs > 0, !allowed)
      if (!allowed) refused++
    }
    assert.ok(refused > 50)
    assert.is(count.late, 0)
  })
}

test('a loop that reads no figures soon computes none', () => {
  const limiter = createLimiter({ ...RULE, limit: 1_000, maxKeys: 20, clock: manualClock(START_MS) })
  const first = limiter.check('key')
  assert.is(first.remaining, 999)
  for (let i = 0; i < 64; i++) limiter.check('key')
  const last = limiter.check('key')
  const count = countLate(last)
  assert.is(last.remaining, 1_000 - 66)
  assert.is(count.late, 1)
})

/** Runs `decide`, and `act` after the first compare-exchange that changes the word. */
function afterChangeOf<T>(words: Int32Array, index: number, act: () => void, decide: () => T): T {
  const { compareExchange } = Atomics
  const intercepted = (array: Int32Array, at: number, expected: number, next: number): number => {
    const found = compareExchange(array, at, expected, next)
    if (array.buffer === words.buffer && at === index && found === expected && next !== expected) {
      Atomics.compareExchange = compareExchange
      act()
    }
    return found
  }
  Atomics.compareExchange = intercepted as typeof compareExchange
  const decided = decide()
  assert.is(Atomics.compareExchange, compareExchange, 'the word was changed')
  return decided
}

for (const what of ['refund', 'penalize', 'clear'] as const) {
  test(`a ${what} between a decision and its sum never shows more than was true`, () => {
    const clock = manualClock(START_MS)
    const options = { ...RULE, limit: 10, maxKeys: 20, clock }
    const limiter = onSide('typescript', () => createLimiter(options))
    const other = attachLimiter(limiter.share(), { clock })
    limiter.check('key', 4)
    clock.advance(70_000) // the units expire, but the admission word still counts them
    const second = limiter.check('key', 2) as InlineDecision
    const { way, era } = second
    const { words, shape } = (era.engine as InlineEngine).arena
    const adm = shape.waysAt + way * shape.wayWords + ADM
    demand([second], 64)
    const change = () => (what === 'clear' ? other.clear('key') : other[what]('key', 2))
    const made = afterChangeOf(words, adm, change, () => limiter.check('key'))
    assert.is(made.remaining, 10 - 7, 'by the admission word, which errs high: 7 were left')
    assert.is(made.resetMs, 61_000 - (clock.now() % 1_000))
  })
}

test('the rules of a refusal have the figures of the decision', () => {
  const clock = manualClock(START_MS)
  const rules = [
    { ...RULE, name: 'minute' },
    { ...HOUR, limit: 5 },
  ]
  const limiter = createLimiter({ rules, maxKeys: 20, clock })
  limiter.check('key', 5).remaining
  const { allowed, rules: parts } = limiter.check('key')
  assert.not(allowed)
  assert.equal(
    parts.map(({ remaining }) => remaining),
    [7, 0],
  )
})

test.run()
