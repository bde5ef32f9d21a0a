// The text that console.log prints for the objects of a limiter, and the content of their copies.
import { inspect } from 'node:util'
import { manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decidedBy, ENGINES } from '../engines/both.js'
import { resolved } from './support.js'

const INSIDE = /#|source|asker|engine|arena|Int32Array\(\d{3}/

for (const engine of ENGINES) {
  test(`${engine}: console.log of a limiter shows its rule, and after close only that it is closed`, async () => {
    const { limiter } = decidedBy(engine, { name: 'api' })
    const name = engine === 'pool' ? 'AsyncLimiter' : 'Limiter'
    assert.match(
      inspect(limiter),
      new RegExp(`^${name} \\{\\s+name: 'api',\\s+limit: 5,\\s+windowMs: 60000,`),
    )
    assert.not.match(inspect(limiter, { depth: 9 }), INSIDE)
    await resolved(limiter.close())
    assert.is(inspect(limiter), `${name} { isClosed: true }`)
  })

  test(`${engine}: console.log of a decision shows its seven fields and no internal ones`, async () => {
    await using made = decidedBy(engine)
    const decision = await made.limiter.check('key', 2)
    assert.match(
      inspect(decision),
      /allowed: true.*limit: 5.*remaining: 3.*retryAfterSeconds: 0.*rule: 'default'/s,
    )
    assert.not.match(inspect([decision], { depth: 9, showHidden: true }), INSIDE)
    assert.match(inspect([await made.limiter.check('key', 9)], { depth: 9 }), /retryAfterMs: Infinity/)
  })

  test(`${engine}: console.log of a batch shows its results`, async () => {
    await using made = decidedBy(engine)
    const batch = await made.limiter.checkMany(['a', 'b'], [1, 6], { remaining: true })
    const shown =
      'BatchDecision { length: 2, allowed: Uint8Array(2) [ 1, 0 ], remaining: Int32Array(2) [ 4, 5 ] }'
    assert.is(inspect(batch, { breakLength: Number.POSITIVE_INFINITY }), shown)
    assert.is(
      inspect(await made.limiter.checkMany([])),
      'BatchDecision { length: 0, allowed: Uint8Array(0) [] }',
    )
  })

  test(`${engine}: console.log of a handle shows its fingerprint, of packed keys their number`, async () => {
    await using made = decidedBy(engine)
    assert.match(inspect(made.limiter.handle('key')), /^KeyHandle \{ fingerprint: '[0-9a-f]{16}' \}$/)
    assert.is(inspect(made.limiter.pack(['a', 'b'])), 'PackedKeys { length: 2 }')
  })

  test(`${engine}: a copy of a decision has the fields known at once, and no internal ones`, async () => {
    await using made = decidedBy(engine, { name: 'api' })
    for (const decision of [
      await made.limiter.check('key'),
      await made.limiter.check('key', 5),
      await made.limiter.peek('new'),
    ]) {
      const all = decision.toJSON()
      const { allowed, limit, rule } = all
      const expected = engine === 'pool' ? all : { allowed, limit, rule }
      assert.equal({ ...decision }, expected)
      assert.equal(structuredClone(decision), expected)
      assert.equal(Object.keys(decision).sort(), Object.keys(expected).sort())
      assert.equal(structuredClone(decision.toJSON()), all)
      const { port1, port2 } = new MessageChannel()
      port1.postMessage(decision.toJSON())
      port1.close()
      port2.close()
    }
  })

  test(`${engine}: a decision in JSON has all seven fields, none of them null`, async () => {
    await using made = decidedBy(engine)
    await made.limiter.block('blocked', Number.POSITIVE_INFINITY)
    for (const decision of [
      await made.limiter.check('key'),
      await made.limiter.check('key', 6),
      await made.limiter.check('blocked'),
    ]) {
      const json = JSON.parse(JSON.stringify(decision)) as Record<string, unknown>
      assert.equal(Object.keys(json), [
        'allowed',
        'limit',
        'remaining',
        'retryAfterMs',
        'retryAfterSeconds',
        'resetMs',
        'rule',
      ])
      assert.not(Object.values(json).includes(null))
      if (decision.retryAfterMs !== Number.POSITIVE_INFINITY) continue
      assert.equal([json.retryAfterMs, json.retryAfterSeconds], [Number.MAX_SAFE_INTEGER, 2_147_483])
    }
  })

  test(`${engine}: retryAfterSeconds is whole, rounded up, and finite for every kind of refusal`, async () => {
    await using made = decidedBy(engine, { limit: 1, window: '2s', granularity: '1s' })
    const { limiter, clock } = made
    assert.is((await limiter.check('key')).retryAfterSeconds, 0)
    const refused = await limiter.check('key')
    assert.is(refused.retryAfterSeconds, Math.ceil(refused.retryAfterMs / 1_000))
    clock.advance(refused.retryAfterMs - 1)
    assert.is((await limiter.check('key')).retryAfterSeconds, 1, 'a millisecond')
    for (const [ms, seconds] of [
      [1_000, 2], // a block is up to a sixteenth of a second longer, so this is rounded up
      ['30d', 2_147_483],
      [Number.POSITIVE_INFINITY, 2_147_483],
    ] as const) {
      await limiter.block('blocked', ms)
      assert.is((await limiter.check('blocked')).retryAfterSeconds, seconds, `${ms}`)
    }
    assert.is((await limiter.check('other', 2)).retryAfterSeconds, 2_147_483)
    assert.is((await limiter.check('other', 0)).retryAfterSeconds, 0)
  })
}

test('console.log of a manual clock shows its reading', () => {
  assert.is(inspect(manualClock(12.5)), 'ManualClock { nowMs: 12.5 }')
})

test.run()
