// run: also-full
// Sends the same random requests to both engines, to the pool in bursts without awaiting. All replies must be
// equal.
import fc from 'fast-check'
import type { Decision } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../../size.js'
import { decidedBy, type Either, pooled } from '../both.js'

const KEYS = 12
const BURST = 40
const RUNS = sized({ quick: 50, full: 150 })

type Perform = (limiter: Either, key: string, act: Act, decisions: Decision[]) => unknown

const OPERATIONS = {
  check: (limiter, key, { cost }) => limiter.check(key, cost),
  peek: (limiter, key, { cost }) => limiter.peek(key, cost),
  checkWithin: (limiter, key, { cost, ms }) => limiter.check(key, cost, { limit: 1 + (ms % 20) }),
  peekWithin: (limiter, key, { cost, ms }) => limiter.peek(key, cost, { limit: 1 + (ms % 20) }),
  usage: (limiter, key, { ms }) => limiter.usage(key, ms),
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

for (const edge of ['strict', 'smooth'] as const) {
  test(`${edge}: every reply equals the inline engine's`, async () => {
    const options = { limit: 9, maxKeys: 10_000, edge }
    await using ours = decidedBy('inline', options)
    await using theirs = pooled(options, { minThreads: 2, maxThreads: 2 })
    let runs = 0
    const property = fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 8 }), async (bursts) => {
      const prefix = runs++
      const perform = (limiter: Either, act: Act, decisions: Decision[]): unknown =>
        (OPERATIONS[act.operation] as Perform)(limiter, `${prefix}: ${act.key}`, act, decisions)
      const mine: Decision[] = []
      const others: Decision[] = []
      for (const { acts, advanceMs } of bursts) {
        const answers = Promise.all(acts.map((one) => perform(theirs.limiter, one, others)))
        const expected: unknown[] = []
        const made: unknown[] = []
        for (const one of acts) {
          const answer = await perform(ours.limiter, one, mine)
          made.push(answer)
          expected.push(plain(answer)) // figures of the inline engine must be read at once
        }
        assert.equal((await answers).map(plain), expected)
        mine.push(...made.filter(isDecision))
        others.push(...(await answers).filter(isDecision))
        ours.clock.advance(advanceMs)
        theirs.clock.advance(advanceMs)
      }
    })
    await fc.assert(property, { numRuns: RUNS })
  })
}

test.run()
