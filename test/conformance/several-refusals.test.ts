// run: once, also-full, also-long
// Several rules, some of which charge their refusals (`countRefused`) or never refuse
// (`shadow`).

import type { RuleOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { resolved } from '../limiter/support.js'
import { timesOf, usageOf } from './several-rules.js'
import { type Claims, conform, type Options, type Subject } from './suite.js'

type Own = Partial<RuleOptions>

/** 2 in 10 seconds and 5 in a minute. */
const rulesOf = (burst: Own, minute: Own): Options => ({
  rules: [
    { name: 'burst', limit: 2, window: '10s', granularity: '1s', ...burst },
    { name: 'minute', limit: 5, window: '1m', granularity: '1s', ...minute },
  ],
  maxKeys: 20,
})

const SHADOW = { shadow: true }
const COUNTING = { countRefused: true }

const SHADOW_AND_ENFORCED: Claims = {
  'a rule in shadow mode refuses nothing, and the other rules decide': async (subject) => {
    const { limiter } = subject
    const times = timesOf(subject)
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
    const shadow = { allowed: false, retryAfterMs: times.burst.untilFits(1, [0, 2]) }
    assert.equal(decisions[2]!.rules[0]!.shadow, shadow)
    assert.is(decisions[2]!.rules[1]!.shadow, undefined)
    const last = decisions[5]!
    assert.equal([last.rule, last.shadow!.retryAfterMs], ['minute', times.hourly.untilFits(1, [0, 5])])
    assert.equal(await usageOf(limiter), [2, 5])
    const { allowed, denied, shadowDenied } = await limiter.stats()
    assert.equal([allowed, denied, shadowDenied], [5, 1, 3])
    assert.ok(JSON.stringify(decisions[2]).includes(`"shadow":${JSON.stringify(shadow)}`))
    assert.is(await limiter.refund(decisions[2]!), 1, 'the rule in shadow mode has charged nothing')
    assert.equal(await usageOf(limiter), [2, 4])
  },
  'a cost above the limit of a rule in shadow mode is charged in the others': async ({ limiter }) => {
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
  'a commit that a rule in shadow mode would not have seen is charged in the enforced rule': async ({
    limiter,
  }) => {
    const reservation = await limiter.reserve('key', 3)
    assert.equal([reservation.decision.allowed, await usageOf(limiter)], [true, [0, 3]])
    assert.equal([await reservation.commit(5), await usageOf(limiter)], [2, [0, 5]])
  },
}

const ALL_SHADOW: Claims = {
  'rules that are all in shadow mode allow batches': async (subject) => {
    const { limiter } = subject
    const batch = await limiter.checkMany(['a', 'a', 'a', 'b'], 2, { remaining: true })
    assert.equal([...batch.allowed, ...batch.remaining!], [1, 1, 1, 1, 0, 0, 0, 0])
    assert.equal(await usageOf(limiter, 'a'), [2, 4])
    const peeked = await limiter.peek('a', 2)
    assert.equal(peeked.shadow, {
      allowed: false,
      retryAfterMs: timesOf(subject).hourly.untilFits(2, [0, 4]),
    })
    assert.is((await limiter.stats()).shadowDenied, 2)
  },
  'a reservation charges and settles by each rule in shadow mode what this rule would have admitted': (
    subject,
  ) => settlesInShadow(subject, 1),
}

const ALL_SHADOW_BY_TEN: Claims = {
  'rules in shadow mode that count quantities settle reservations by themselves, too': (subject) =>
    settlesInShadow(subject, 10),
}

/** Reserves by the limiter and by a group, and reads what each of the rules counts. */
async function settlesInShadow({ limiter, group }: Subject, unit: number): Promise<void> {
  const both = group({ limiter })
  const used = async () => (await usageOf(limiter)).map((units) => units / unit)
  for (const by of [
    (cost: number) => limiter.reserve('key', cost),
    (cost: number) => both.reserve({ limiter: 'key' }, cost),
  ]) {
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
    await limiter.clear('key')
  }
}

const COUNTING_AND_NOT: Claims = {
  'a rule with countRefused charges its own refusals, and other rules do not': async (subject) => {
    const { limiter, clock, second } = subject
    for (let i = 0; i < 4; i++) await limiter.check('key')
    assert.equal(await usageOf(limiter), [4, 2])
    clock.advance(5_000)
    const { retryAfterMs } = await limiter.check('key')
    const { burst, hourly: minute } = timesOf(subject)
    const untilFits = burst.untilFits(1, [0, 4], [5_000, 1])
    assert.is(retryAfterMs, untilFits, 'the five leave, but this one')
    clock.advance(untilFits)
    assert.ok((await limiter.check('key')).allowed)
    const now = 5_000 + untilFits
    const other = second()
    const again = await other.check('key')
    assert.is(again.allowed, burst.used([0, 4], [5_000, 1], [now, 1]) < 2)
    const used = burst.usedInLast(10_000, [0, 4], [5_000, 1], [now, 2])
    // A refusal on Memcached does not wait until its charges are taken back: only what its own limiter asks comes later.
    assert.equal(await usageOf(other), [used, minute.used([0, 2], [now, again.allowed ? 2 : 1])])
  },
}

const ALL_COUNTING: Claims = {
  'every rule that refuses a request charges it': async ({ limiter, algorithm }) => {
    const most = algorithm.mostUsed?.(2) ?? 10
    await limiter.penalize('key', 5)
    for (let i = 1; i <= 3; i++) {
      assert.is((await limiter.check('key')).rule, 'burst')
      assert.equal(await usageOf(limiter), [Math.min(5 + i, most), 5 + i])
    }
    await limiter.checkMany(['key', 'key'])
    await limiter.peek('key')
    assert.equal(await usageOf(limiter), [Math.min(10, most), 10])
  },
  'a rule charges its refusal of a cost that is above the limit of another rule': async ({
    limiter,
    algorithm,
  }) => {
    await limiter.check('key', 2)
    assert.is((await limiter.check('key', 4)).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal(await usageOf(limiter), [2, 6])
    await limiter.check('key', 3, { limit: { burst: 2, minute: 3 } as never })
    // 3 tokens by the limit 3 are those 5 by the limit 5, and a part more: each is rounded up.
    const counted = algorithm.countsInParts ? 12 : 9
    assert.equal(await usageOf(limiter), [2, counted])
    await limiter.check('key', 6)
    assert.equal(await usageOf(limiter), [2, counted], 'above both limits it is charged in none')
  },
  'attempts of wait are not charged as refusals': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 2)
    const waiting = limiter.wait('key')
    for (let i = 0; i < 3; i++) await limiter.refund('key', 0)
    assert.is(await limiter.usage('key'), 2)
    clock.advance(timesOf(subject).burst.untilEmpty([0, 2]))
    assert.ok((await resolved(waiting)).allowed)
    assert.is(await limiter.usage('key', undefined, { rule: 'minute' }), 3)
  },
}

/** Either rule refuses the others' requests, in either order of the rules. */
const ONE_COUNTING: Claims = {
  'a rule with countRefused charges what it refuses, whichever rule refuses first': async ({ make }) => {
    const [burst, minute] = rulesOf({}, COUNTING).rules as RuleOptions[]
    const both = [[burst!, minute!] as const, [minute!, burst!] as const]
    const used: number[] = []
    for (const rules of both) {
      const limiter = make({ ...rulesOf({}, {}), rules } as Options)
      const usedBy = (rule: string) => limiter.usage('key', undefined, { rule })
      await limiter.check('key', 2)
      await limiter.check('key') // fits the minute
      assert.equal([await usedBy('burst'), await usedBy('minute')], [2, 2])
      await limiter.penalize('key', 3)
      for (let i = 0; i < 4; i++) assert.not((await limiter.check('key')).allowed)
      used.push((await usedBy('burst')) as number, (await usedBy('minute')) as number)
    }
    assert.equal(used, [5, 9, 5, 9])
  },
  'a rule charges the refusal of a blocked key': async ({ limiter }) => {
    await limiter.block('key', '1m')
    for (let i = 0; i < 2; i++) await limiter.check('key', 2)
    assert.equal(await usageOf(limiter), [0, 4])
  },
}

const [TWENTY, FIFTY] = [20, 50].map((limit) => ({ ...SHADOW, limit, unit: 10 }))

conform(
  [
    [SHADOW_AND_ENFORCED, rulesOf(SHADOW, {})],
    [ALL_SHADOW, rulesOf(SHADOW, SHADOW)],
    [ALL_SHADOW_BY_TEN, rulesOf(TWENTY!, FIFTY!)],
    [COUNTING_AND_NOT, rulesOf(COUNTING, {})],
    [ALL_COUNTING, rulesOf(COUNTING, COUNTING)],
    [ONE_COUNTING, rulesOf({}, COUNTING)],
  ],
  /settle/,
)
