// run: also-full, also-long
// Sends the same random requests to both engines, to the pool in bursts without awaiting. All replies must be
// equal.

import { createLimiter, type Decision, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../../fast-check.js'
import { START_MS } from '../../limiter/support.js'
import { sized } from '../../size.js'
import type { Either } from '../both.js'

const KEYS = 12
const BURST = 40
const RUNS = sized({ quick: 20, full: 100 })

type Perform = (limiter: Either, key: string, act: Act, decisions: Decision[]) => unknown

const OPERATIONS = {
  check: (limiter, key, { cost }) => limiter.check(key, cost),
  peek: (limiter, key, { cost }) => limiter.peek(key, cost),
  checkWithin: (limiter, key, { cost, ms }) => limiter.check(key, cost, { limit: limitOf(limiter, ms) }),
  peekWithin: (limiter, key, { cost, ms }) => limiter.peek(key, cost, { limit: limitOf(limiter, ms) }),
  usage: (limiter, key, { ms, cost }) =>
    limiter.usage(key, ms, { rule: limiter.rules[cost % limiter.rules.length]!.name }),
  refund: (limiter, key, { cost }) => limiter.refund(key, cost),
  penalize: (limiter, key, { cost }) => limiter.penalize(key, cost),
  block: (limiter, key, { ms }) => limiter.block(key, ms),
  unblock: (limiter, key) => limiter.unblock(key),
  clear: (limiter, key) => limiter.clear(key),
  giveBack: (limiter, _, { ms }, decisions) => {
    const decision = decisions[ms % (decisions.length || 1)]
    return decision === undefined ? 0 : limiter.refund(decision)
  },
  checkMany: async (limiter, key, { others }) => {
    const keys = others.map((other) => `${key}, ${other}`)
    const batch = await limiter.checkMany(keys, 1, { remaining: true })
    const retries = keys.map((_, i) => batch.retryAfterMs(i))
    return { allowed: [...batch.allowed], remaining: [...batch.remaining!], retries }
  },
} satisfies Record<string, Perform>
type Operation = keyof typeof OPERATIONS

/** A limit of a call: of the one rule, or of one of several. */
function limitOf({ rules }: Either, ms: number): number | Record<string, number> {
  const limit = 1 + (ms % 20)
  return rules.length === 1 ? limit : { [rules[ms % rules.length]!.name]: limit }
}

interface Act {
  readonly operation: Operation
  readonly key: number
  readonly cost: number
  readonly ms: number
  readonly others: number[]
}

const act: fc.Arbitrary<Act> = fc.record({
  operation: fc.oneof(
    { weight: 10, arbitrary: fc.constant<Operation>('check') },
    { weight: 9, arbitrary: fc.constantFrom(...(Object.keys(OPERATIONS) as Operation[])) },
  ),
  key: fc.integer({ min: 0, max: KEYS - 1 }),
  cost: fc.integer({ min: 0, max: 4 }),
  ms: fc.integer({ min: 1, max: 60_000 }),
  others: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 30 }),
})
const burst = fc.record({
  acts: fc.array(act, { maxLength: BURST }),
  advanceMs: fc.constantFrom(0, 1, 400, 1_000, 20_000, 61_000, 1e7),
})

/** A reply as plain data, with every figure that the inline engine would compute later. */
const plain = (answer: unknown): unknown => (isDecision(answer) ? answer.toJSON() : answer)

const isDecision = (answer: unknown): answer is Decision =>
  typeof answer === 'object' && answer !== null && 'toJSON' in answer

const LIMIT = { limit: 9, window: '1m', granularity: '1s' } as const
const RULES: Record<string, readonly RuleOptions[]> = {
  strict: [LIMIT],
  smooth: [{ ...LIMIT, edge: 'smooth' }],
  'two rules': [
    { ...LIMIT, name: 'minute' },
    { name: 'hourly', limit: 20, window: '1h', granularity: '1m' },
  ],
  'four rules, with their options': [
    { ...LIMIT, name: 'smooth', edge: 'smooth', limit: 12 },
    { ...LIMIT, name: 'shadow', shadow: true },
    { ...LIMIT, name: 'counting', limit: 11, window: '2m', countRefused: true },
    { name: 'hourly', limit: 30, window: '1h', granularity: '1m' },
  ],
}

for (const [name, rules] of Object.entries(RULES)) {
  test(`${name}: every reply equals the inline engine's`, async () => {
    const options = { rules, maxKeys: 10_000 }
    const [ourClock, theirClock] = [manualClock(START_MS), manualClock(START_MS)]
    const ours = createLimiter({ ...options, clock: ourClock })
    const pool = { minThreads: 2, maxThreads: 2 }
    const theirs = createLimiter({ ...options, clock: theirClock, engine: 'pool', pool })
    let runs = 0
    const property = fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 8 }), async (bursts) => {
      const prefix = runs++
      const perform = (limiter: Either, act: Act, decisions: Decision[]): unknown =>
        (OPERATIONS[act.operation] as Perform)(limiter, `${prefix}: ${act.key}`, act, decisions)
      const mine: Decision[] = []
      const others: Decision[] = []
      for (const { acts, advanceMs } of bursts) {
        const answers = Promise.all(acts.map((one) => perform(theirs, one, others)))
        const expected: unknown[] = []
        const made: unknown[] = []
        for (const one of acts) {
          const answer = await perform(ours, one, mine)
          made.push(answer)
          expected.push(plain(answer)) // figures of the inline engine must be read at once
        }
        assert.equal((await answers).map(plain), expected)
        mine.push(...made.filter(isDecision))
        others.push(...(await answers).filter(isDecision))
        ourClock.advance(advanceMs)
        theirClock.advance(advanceMs)
      }
    })
    await fc.assert(property, { numRuns: RUNS })
    await theirs.close()
  })
}

test.run()
