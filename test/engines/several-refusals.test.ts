// run: once
// Both engines: several rules, some of which charge their refusals (`countRefused`) or never refuse
// (`shadow`).
import { attachLimiter, createLimiter, group, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { resolved } from '../limiter/support.js'
import { type Either, ENGINES, type Engine } from './both.js'
import { type Several, usageOf } from './several-rules.js'

type Own = Partial<RuleOptions>
type Verify = (several: Several) => Promise<void>

/** A limiter of 2 in 10 seconds and of 5 in a minute. */
function limiterOf(engine: Engine, burst: Own, minute: Own): Several {
  const clock = manualClock(0)
  const rules = [
    { name: 'burst', limit: 2, window: '10s', granularity: '1s', ...burst },
    { name: 'minute', limit: 5, window: '1m', granularity: '1s', ...minute },
  ]
  const options = { rules, maxKeys: 20, clock }
  const limiter: Either =
    engine === 'pool'
      ? createLimiter({ ...options, engine, pool: { maxThreads: 1 } })
      : createLimiter(options)
  return { clock, limiter }
}

function testBoth(claim: string, burst: Own, minute: Own, verify: Verify): void {
  for (const engine of ENGINES) {
    test(`${engine}: ${claim}`, async () => {
      const several = limiterOf(engine, burst, minute)
      try {
        await verify(several)
      } finally {
        await several.limiter.close()
      }
    })
  }
}

const SHADOW = { shadow: true }
const COUNTING = { countRefused: true }

testBoth('a rule in shadow mode refuses nothing, and the other rules decide', SHADOW, {}, async (several) => {
  const { limiter } = several
  const decisions = []
  for (let i = 0; i < 6; i++) decisions.push(await limiter.check('key'))
  assert.equal(
    decisions.map(({ allowed, shadow }) => [allowed, shadow!.allowed]),
    [
      [true, true],
      [true, true],
      [true, false],
      [true, false],
      [true, false],
      [false, false],
    ],
  )
  assert.equal(decisions[2]!.rules[0]!.shadow, { allowed: false, retryAfterMs: 11_000 })
  assert.is(decisions[2]!.rules[1]!.shadow, undefined)
  assert.equal([decisions[5]!.rule, decisions[5]!.shadow!.retryAfterMs], ['minute', 61_000])
  assert.equal(await usageOf(limiter), [2, 5])
  const { allowed, denied, shadowDenied } = await limiter.stats()
  assert.equal([allowed, denied, shadowDenied], [5, 1, 3])
  assert.ok(JSON.stringify(decisions[2]).includes('"shadow":{"allowed":false,"retryAfterMs":11000}'))
  assert.is(await limiter.refund(decisions[2]!), 1, 'the rule in shadow mode has charged nothing')
  assert.equal(await usageOf(limiter), [2, 4])
})

testBoth(
  'a cost above the limit of a rule in shadow mode is charged in the others',
  SHADOW,
  {},
  async ({ limiter }) => {
    const { allowed, shadow } = await limiter.check('key', 4)
    assert.equal([allowed, shadow], [true, { allowed: false, retryAfterMs: Infinity }])
    assert.ok((await limiter.peek('key', 1)).allowed)
    assert.is(await limiter.usage('key', undefined, { rule: 'minute' }), 4)
    assert.is(
      (await limiter.check('key', 6)).rule,
      'minute',
      'a cost above the limit of the other one is refused',
    )
  },
)

testBoth('rules that are all in shadow mode allow batches', SHADOW, SHADOW, async ({ limiter }) => {
  const batch = await limiter.checkMany(['a', 'a', 'a', 'b'], 2, { remaining: true })
  assert.equal([...batch.allowed, ...batch.remaining!], [1, 1, 1, 1, 0, 0, 0, 0])
  assert.equal(await usageOf(limiter, 'a'), [2, 4])
  const peeked = await limiter.peek('a', 2)
  assert.equal(peeked.shadow, { allowed: false, retryAfterMs: 61_000 })
  assert.is((await limiter.stats()).shadowDenied, 2)
})

/** Reservations of 2, 2 and 2 units, and what each of the rules counts. */
async function settlesInShadow({ limiter }: Several, unit: number): Promise<void> {
  const both = group({ limiter })
  const used = async () => (await usageOf(limiter)).map((units) => units / unit)
  for (const [by, clear] of [
    [(cost: number) => limiter.reserve('key', cost), () => limiter.clear('key')],
    [(cost: number) => both.reserve({ limiter: 'key' }, cost), () => limiter.clear('key')],
  ] as const) {
    const passing = await by(2 * unit)
    assert.equal([await passing.commit(unit), await used()], [-unit, [1, 1]])
    await limiter.penalize('key', unit)
    const half = await by(2 * unit)
    assert.equal([half.decision.allowed, half.decision.shadow!.allowed, await used()], [true, false, [2, 4]])
    assert.equal([await half.commit(3 * unit), await used()], [unit, [2, 5]], 'only the rule that it passed')
    for (const cost of [7 * unit, 2 * unit, unit, 0]) {
      const none = await by(2 * unit)
      assert.equal([none.decision.allowed, await none.commit(cost), await used()], [true, 0, [2, 5]])
    }
    const unknown = await by(0)
    assert.equal([await unknown.commit(unit), await used()], [unit, [3, 6]], 'no rule refuses cost 0')
    await clear()
  }
}

testBoth(
  'a reservation charges and settles by each rule in shadow mode what this rule would have admitted',
  SHADOW,
  SHADOW,
  (several) => settlesInShadow(several, 1),
)

testBoth(
  'the same by rules that count quantities',
  { ...SHADOW, limit: 20, unit: 10 },
  { ...SHADOW, limit: 50, unit: 10 },
  (several) => settlesInShadow(several, 10),
)

testBoth(
  'a commit that a rule in shadow mode would not have seen is charged in the enforced rule',
  SHADOW,
  {},
  async ({ limiter }) => {
    const reservation = await limiter.reserve('key', 3)
    assert.equal([reservation.decision.allowed, await usageOf(limiter)], [true, [0, 3]])
    assert.equal([await reservation.commit(5), await usageOf(limiter)], [2, [0, 5]])
  },
)

testBoth(
  'a rule with countRefused charges its own refusals, and other rules do not',
  COUNTING,
  {},
  async ({ limiter, clock }) => {
    for (let i = 0; i < 4; i++) await limiter.check('key')
    assert.equal(await usageOf(limiter), [4, 2])
    clock.advance(5_000)
    assert.is((await limiter.check('key')).retryAfterMs, 6_000, 'the five leave, but this one')
    clock.advance(6_000)
    assert.ok((await limiter.check('key')).allowed)
    const attached = attachLimiter(limiter.share(), {})
    attached.check('key')
    assert.equal(await usageOf(limiter), [3, 3])
    await attached.close()
  },
)

testBoth('attempts of wait are not charged as refusals', COUNTING, COUNTING, async ({ limiter, clock }) => {
  await limiter.check('key', 2)
  const waiting = limiter.wait('key')
  for (let i = 0; i < 3; i++) await limiter.refund('key', 0)
  assert.is(await limiter.usage('key'), 2)
  clock.advance(11_000)
  assert.ok((await resolved(waiting)).allowed)
  assert.is(await limiter.usage('key', undefined, { rule: 'minute' }), 3)
})

test.run()
