// A charge is given back by another limiter on the same counts, by a receipt that went over a wire as JSON.
// run: modules
import { attachLimiter, createLimiter, type Limiter, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALGORITHMS } from '#millrace/core/algorithms.js'
import { receiptsOf } from '#millrace/limiters/receipts.js'

const sets: [name: string, rules: RuleOptions[]][] = [
  ...ALGORITHMS.map((algorithm): [string, RuleOptions[]] => [
    algorithm,
    [{ name: 'one', limit: 10, window: '1m', algorithm }],
  ]),
  [
    'several rules',
    [
      { name: 'a', limit: 10, window: '1m' },
      { name: 'b', limit: 50, window: '1h' },
    ],
  ],
  ['a unit', [{ name: 'bytes', limit: '10KB', window: '1m', unit: '1KB' }]],
]

/** Two limiters on the same counts. */
function pair(rules: RuleOptions[]): [Limiter, Limiter] {
  const clock = manualClock(1_000)
  const first = createLimiter({ ...(rules.length === 1 ? rules[0]! : { rules }), clock })
  return [first, attachLimiter(first.share(), { clock })]
}

const throughJson = (value: unknown) => JSON.parse(JSON.stringify(value))

for (const [name, rules] of sets) {
  const scale = rules[0]!.unit === undefined ? 1 : 1_000

  test(`${name}: another limiter gives back exactly the charge of a receipt`, () => {
    const [first, second] = pair(rules)
    const decision = first.check('a', 4 * scale)
    first.check('a', 2 * scale)
    const receipt = throughJson(receiptsOf(first)!.receiptOf(decision))
    const reservation = receiptsOf(second)!.reservationOf(receipt)!
    assert.is(second.refund(reservation.decision as typeof decision), 4 * scale)
    assert.is(second.refund(reservation.decision as typeof decision), 0)
    assert.is(first.peek('a').remaining, 8 * scale)
  })

  test(`${name}: another limiter settles a reservation of a receipt`, () => {
    const [first, second] = pair(rules)
    for (const [actual, remaining] of [
      [1, 9],
      [4, 6],
      [6, 4],
    ] as const) {
      const decision = first.check(`key ${actual}`, 4 * scale)
      const receipt = throughJson(receiptsOf(first)!.receiptOf(decision))
      const committed = receiptsOf(second)!
        .reservationOf(receipt)!
        .commit(actual * scale)
      assert.is(committed, (actual - 4) * scale)
      assert.is(first.peek(`key ${actual}`).remaining, remaining * scale)
    }
  })
}

test('a decision that charged nothing has no receipt', () => {
  const limiter = createLimiter({ limit: 1, window: '1m' })
  assert.is(receiptsOf(limiter)!.receiptOf(limiter.check('a', 0)), undefined)
  assert.is(receiptsOf(limiter)!.receiptOf(limiter.peek('a')), undefined)
  assert.is(receiptsOf(limiter)!.receiptOf(limiter.check('a', 2)), undefined)
})

test.run()
