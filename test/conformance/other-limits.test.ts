// run: once, also-full, also-long
// Limits of calls and of `update`, where an algorithm counts in something else than the limit: tokens, units.
import { MillraceError } from 'millrace'
import * as assert from 'uvu/assert'
import { type Claims, conform, type Subject, thrownBy } from './suite.js'

/** More than a fixed window, a log or a bucket counts. */
const TOO_LARGE = 4_000_000

const BOUNDED: Claims = {
  'the error of a limit that is too large names the largest one that is accepted': async (subject) => {
    const { limiter } = subject
    const { name, unit = 1 } = limiter.rule
    for (const set of [
      (limit: number) => limiter.update(name, { limit }),
      (limit: number) => limiter.check('key', 0, { limit }),
    ]) {
      const most = await mostSaid(() => set(TOO_LARGE * unit))
      await set(most)
      assert.is(await mostSaid(() => set(most + stepOf(subject))), most)
    }
  },
}

/** Smallest difference of two limits of the rule. */
const stepOf = ({ limiter: { rule } }: Subject): number =>
  (rule.burst === undefined ? 1 : 4) * (rule.unit ?? 1)

async function mostSaid(act: () => unknown): Promise<number> {
  const error = (await thrownBy(async () => act())) as Error
  assert.instance(error, MillraceError)
  const [, most] = /at most (\d+), which this limiter can count/.exec(error.message) ?? []
  assert.ok(most, error.message)
  return Number(most)
}

const WAITING: Claims = {
  'a wait that no bucket can admit names its tokens, and not the limit': async ({ make, group }) => {
    const slow = make({ limit: 20, burst: 5, window: '1m', maxKeys: 20 })
    const both = group({ slow })
    for (const [wait, tokens] of [
      [() => slow.wait('key', { cost: 6 }), 5],
      [() => slow.wait('key', { cost: 11, limit: 40 }), 10],
      [() => both.wait({ slow: 'key' }, { cost: 6 }), 5],
      [() => both.wait({ slow: 'key' }, { cost: 11, limit: { slow: 40 } }), 10],
    ] as const)
      assert.match(((await thrownBy(wait)) as Error).message, `cost: expected at most the limit, ${tokens}`)
  },
  'a wait of a key that is blocked for ever says so, also above the limit but not above the tokens': async ({
    make,
    group,
  }) => {
    const full = make({ limit: 5, burst: 20, window: '1m', maxKeys: 20 })
    await full.block('key', Number.POSITIVE_INFINITY)
    const both = group({ full })
    for (const wait of [() => full.wait('key', { cost: 6 }), () => both.wait({ full: 'key' }, { cost: 6 })])
      assert.match(((await thrownBy(wait)) as Error).message, 'blocked for ever')
  },
}

const JOINED: Claims = {
  'a limit of a call to a group is one of the rule, and not of its tokens': async ({ make, group }) => {
    for (const unit of [1, 10]) {
      const size = unit === 1 ? {} : { unit }
      const limiter = make({ limit: 20 * unit, burst: 5 * unit, window: '1m', maxKeys: 20, ...size })
      const both = group({ limiter })
      const decision = await both.check({ limiter: 'key' }, 10 * unit, { limit: { limiter: 40 * unit } })
      assert.equal([decision.allowed, decision.limit, decision.remaining], [true, 10 * unit, 0])
      assert.is(await limiter.usage('key'), 5 * unit)
    }
  },
}

const USED: Claims = {
  'usage of a bucket accepts its window, and that of its rule': async ({ make }) => {
    for (const [limit, window, burst] of [
      [20, '1m', 5],
      [7, '1m', 3],
      [5, '1m', 50],
      [100, '7s', 33],
    ] as const) {
      const limiter = make({ limit, window, burst, maxKeys: 20, name: `of ${burst}` })
      await limiter.check('key', 2)
      for (const ms of [window, limiter.rule.windowMs, undefined])
        assert.is(await limiter.usage('key', ms), 2)
      const longer = 2 * Math.max(1, burst / limit) * limiter.rule.windowMs
      assert.match(
        ((await thrownBy(async () => limiter.usage('key', longer))) as Error).message,
        'at most the window',
      )
    }
  },
}

const RULE = { limit: 20, window: '1m', maxKeys: 20 } as const

// The first algorithm has none of these claims, and limiters with shards join no group.
conform(
  [
    [
      BOUNDED,
      ({ countsInParts, mostLimit }) =>
        mostLimit === undefined ? undefined : { ...RULE, ...(countsInParts && { burst: 5 }) },
    ],
    [BOUNDED, ({ mostLimit }) => (mostLimit === undefined ? undefined : { ...RULE, limit: 200, unit: 10 })],
    [JOINED, ({ countsInParts }) => (countsInParts ? RULE : undefined)],
    [USED, ({ countsInParts }) => (countsInParts ? RULE : undefined)],
    [WAITING, ({ countsInParts }) => (countsInParts ? RULE : undefined)],
  ],
  undefined,
  undefined,
  /forgets all keys| group|a wait that no bucket can admit|a wait of a key that is blocked for ever/,
  [],
)
