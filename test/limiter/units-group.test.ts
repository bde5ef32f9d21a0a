// run: once
// Groups whose members have different units: each member charges the same cost in its own whole units.
import { createLimiter, group, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { usageOf } from '../conformance/several-rules.js'
import { assertRaises, START_MS } from './support.js'

const KEYS = { exact: 'e', bytes: 'b', mixed: 'm' }

function members(engine: 'inline' | 'pool') {
  const options = { window: '1m', maxKeys: 20, clock: manualClock(START_MS), engine } as const
  const { window: _, ...table } = options
  return {
    exact: createLimiter({ ...options, limit: 250_000 }),
    bytes: createLimiter({ ...options, limit: '640KB', unit: '64KB' }),
    mixed: createLimiter({
      ...table,
      rules: [
        { name: 'fine', limit: '300KB', unit: '1KB', window: '1m' },
        { name: 'coarse', limit: '1MB', unit: '100KB', window: '1h' },
      ],
    }),
  }
}

for (const engine of ['inline', 'pool'] as const) {
  test(`${engine}: each member charges, shows and gives back its own units`, async () => {
    const { exact, bytes, mixed } = members(engine)
    const usages = async () => [
      await exact.usage('e'),
      await bytes.usage('b'),
      ...(await usageOf(mixed, 'm')),
    ]
    const together = group({ exact, bytes, mixed })
    const decision = await together.check(KEYS, 100_001)
    assert.equal([decision.allowed, decision.member, decision.remaining], [true, 'exact', 149_999])
    assert.equal(
      decision.rules.map(({ remaining }) => remaining),
      [149_999, 512_000, 199_000, 800_000],
    )
    assert.equal(await usages(), [100_001, 128_000, 101_000, 200_000])
    const refused = await together.check(KEYS, 149_999 + 1)
    assert.equal([refused.allowed, refused.member, refused.limit], [false, 'exact', 250_000])
    const last = await together.check(KEYS, 200_000, { limit: { exact: 400_000 } })
    assert.equal([last.allowed, last.member, last.rule], [false, 'mixed', 'fine'])
    assert.equal(await usages(), [100_001, 128_000, 101_000, 200_000])
    assert.is(await together.refund(decision), 200_000)
    assert.equal(await usages(), [0, 0, 0, 0])

    const reservation = await together.reserve(KEYS, 100_001)
    assert.is(await reservation.commit(50_000), -100_000)
    assert.equal(await usages(), [50_000, 64_000, 50_000, 100_000])
    const larger = await together.reserve(KEYS, 1)
    assert.is(await larger.commit(64_001), 64_000)
    assert.equal(await usages(), [114_001, 192_000, 115_000, 200_000])
    const above = await together.check(KEYS, 2 ** 45)
    assert.equal([above.member, above.retryAfterMs], ['exact', Number.POSITIVE_INFINITY])
    const within = await together.peek(KEYS, 1, { limit: { bytes: '255KB', mixed: { coarse: '250KB' } } })
    assert.equal(
      within.rules.map(({ limit }) => limit),
      [250_000, 192_000, 300_000, 200_000],
    )
    assert.equal([within.allowed, within.member], [false, 'bytes'])
    await Promise.all([exact.close(), bytes.close(), mixed.close()])
  })
}

test('limits that are not sizes for a member are refused, and the error names the member', () => {
  const { exact, bytes, mixed } = members('inline')
  const together = group({ exact, bytes, mixed })
  for (const [limit, option] of [
    [{ exact: '1KB' }, 'limit.exact'],
    [{ bytes: '63KB' }, 'limit.bytes'],
    [{ mixed: { coarse: 'x' } }, 'limit.mixed.coarse'],
  ] as const) {
    assertRaises(
      () => together.check(KEYS, 1, { limit: limit as never }),
      'ERR_MILLRACE_INVALID_OPTION',
      option,
    )
  }
})

test.run()
