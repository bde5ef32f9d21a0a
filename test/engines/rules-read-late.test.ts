// An admission by several rules makes the parts of its rules when they are read. They are as of the decision.
import { createLimiter, type Decision, type Limiter, type LimiterOptions, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { START_MS } from '../limiter/support.js'

const BURST = { name: 'burst', limit: 10, window: '1s' } as const
const HOURLY = { name: 'hourly', limit: 25, window: '1h' } as const
const DAILY = { name: 'daily', limit: 1_000, window: '1d', granularity: '10m' } as const

function limiterBy(rules: readonly object[], options: Partial<LimiterOptions> = {}) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ rules, maxKeys: KEYS, clock, ...options } as LimiterOptions) as Limiter
  return { clock, limiter }
}

const RULES: Record<string, readonly object[]> = {
  'two rules': [BURST, HOURLY],
  'three rules': [BURST, HOURLY, DAILY],
  'a smooth edge': [BURST, { ...HOURLY, edge: 'smooth' }],
  'granules that are no whole milliseconds': [{ ...BURST, granularity: 1_000 / 3 }, HOURLY],
  'a rule in shadow mode': [BURST, { ...HOURLY, shadow: true }],
  'other algorithms': [
    { ...BURST, algorithm: 'token-bucket' },
    { ...HOURLY, algorithm: 'fixed-window' },
    { name: 'daily', limit: 30, window: '1d', algorithm: 'sliding-log' },
  ],
}
const KEYS = 60
/** Also readings whose whole millisecond would not give the same figures. */
const STEPS = [0, 0.9995, 0.0005, 7, 40.25, 100, 333, 999.9999, 0.0001, 120_000]

for (const [name, rules] of Object.entries(RULES)) {
  test(`${name}: read after decisions on other keys, a decision says what it says when it is read at once`, () => {
    const late = limiterBy(rules)
    const atOnce = limiterBy(rules)
    const made: Decision[] = []
    const expected: unknown[] = []
    for (let pass = 0; pass < 3; pass++) {
      for (let i = 0; i < KEYS; i++) {
        for (const { clock } of [late, atOnce]) clock.advance(STEPS[(i + pass) % STEPS.length]!)
        const cost = (i + pass) % 5
        // The first decision in a tick brings the cell to it. The second is the usual case.
        for (const { limiter } of [late, atOnce]) limiter.check(`key ${i}`)
        // Only the last pass is read: while figures are read, decisions compute them at once.
        const [decision, other] = [late, atOnce].map(({ limiter }) => limiter.check(`key ${i}`, cost))
        if (pass < 2) continue
        made.push(decision!)
        expected.push(other!.toJSON())
      }
    }
    const said = made.map((decision) => decision.toJSON())
    for (const [i, each] of said.entries()) assert.equal(each, expected[i], `key ${i}`)
  })

  test(`${name}: given back late, a decision gives its charges back in every rule`, () => {
    const { clock, limiter } = limiterBy(rules)
    const free = limiter.peek('key').toJSON()
    limiter.check('key')
    const first = limiter.check('key', 2)
    limiter.check('other', 3)
    clock.advance(1)
    const before = limiter.check('key', 1)
    assert.is(limiter.refund(first), 2)
    assert.is(limiter.refund(first), 0, 'a charge is given back once')
    assert.is(limiter.refund(before), 1)
    assert.equal(
      limiter.peek('key').rules.map(({ rule, remaining }) => [rule, remaining]),
      free.rules!.map(({ rule, remaining }) => [rule, remaining - 1]),
    )
  })
}

test('a charge after a refund by key in the same granule is given back as a whole', () => {
  const { limiter } = limiterBy([BURST, HOURLY])
  limiter.check('key', 3)
  limiter.refund('key', 1)
  const decision = limiter.check('key', 4)
  limiter.check('other')
  assert.is(limiter.refund(decision), 4)
  assert.equal(
    limiter.peek('key').rules.map(({ remaining }) => remaining),
    [8, 23],
  )
})

test('a decision keeps the limits that it was made by', () => {
  const { limiter } = limiterBy([BURST, HOURLY])
  limiter.check('key')
  const decision = limiter.check('key')
  limiter.update('burst', { limit: 3 })
  limiter.update('hourly', { limit: 4 })
  assert.equal(
    decision.rules.map(({ limit, remaining }) => [limit, remaining]),
    [
      [10, 8],
      [25, 23],
    ],
  )
  assert.equal(
    limiter.check('key').rules.map(({ limit, remaining }) => [limit, remaining]),
    [
      [3, 0],
      [4, 1],
    ],
  )
})

test('a decision is counted by the windows that hold at present, and read by those that it was made by', () => {
  const { clock, limiter } = limiterBy([BURST, HOURLY])
  const before = limiter.check('key')
  limiter.update('burst', { window: '2s' })
  const after = limiter.check('key')
  assert.is(after.allowed, true)
  clock.advance(1_500)
  assert.is(limiter.usage('key', '2s', { rule: 'burst' }), 2, 'the window of two seconds has both')
  assert.is(before.rules[0]!.limit, 10)
  assert.ok(before.rules[0]!.remaining <= 9)
  assert.is(after.rules[0]!.remaining, 8)
})

test('the second rule refuses, and the first has taken its charge back', () => {
  const { limiter } = limiterBy([BURST, { ...HOURLY, limit: 2 }])
  const all = [1, 2, 3].map(() => limiter.check('key'))
  assert.equal(
    all.map(({ allowed, rule }) => [allowed, rule]),
    [
      [true, 'hourly'],
      [true, 'hourly'],
      [false, 'hourly'],
    ],
  )
  assert.is(limiter.usage('key', '1s', { rule: 'burst' }), 2)
  assert.equal(limiter.stats().allowed, 2)
  assert.equal(limiter.stats().denied, 1)
})

test.run()
