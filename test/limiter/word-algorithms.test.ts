// What fixed windows and token buckets do beside counting: their options, full tables, clocks that step, many
// refunds, and changes of the limit.
import { attachLimiter, createLimiter, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, START_MS } from './support.js'

const BUCKET = { limit: 10, window: '1s', algorithm: 'token-bucket' } as const
const WINDOW = { limit: 10, window: '1s', algorithm: 'fixed-window', align: 'first' } as const
const HOUR = 3_600_000

function on(rule: RuleOptions, more: object = {}) {
  const clock = manualClock(START_MS)
  return { clock, limiter: createLimiter({ ...rule, maxKeys: 20, clock, ...more }) }
}

test('an option that the algorithm does not have is refused by its name', () => {
  const cases: [algorithm: RuleOptions['algorithm'], option: string, value: unknown][] = [
    ['fixed-window', 'granularity', '1s'],
    ['fixed-window', 'edge', 'strict'],
    ['fixed-window', 'rangeSum', 'blocks'],
    ['fixed-window', 'burst', 5],
    ['token-bucket', 'granularity', '1s'],
    ['token-bucket', 'align', 'clock'],
    ['leaky-bucket', 'edge', 'smooth'],
    ['sliding-window', 'burst', 5],
    ['sliding-window', 'align', 'first'],
    ['sliding-counter', 'align', 'first'],
  ]
  for (const [algorithm, option, value] of cases) {
    const act = () => createLimiter({ limit: 5, window: '1m', algorithm, [option]: value } as RuleOptions)
    const { expected } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', option, algorithm)
    assert.is(expected, `nothing beside algorithm: '${algorithm}'`)
  }
})

test('align and burst are checked, and what is too large is refused with what would be right', () => {
  const refused = (rule: object, option: string, expected: RegExp) => {
    const act = () => createLimiter({ ...rule } as RuleOptions)
    assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', option).expected, expected)
  }
  for (const align of ['utc', '', null, 1]) refused({ ...WINDOW, align }, 'align', /'clock' or 'first'/)
  for (const burst of [0, -1, 1.5, null, Number.NaN]) refused({ ...BUCKET, burst }, 'burst', /integer/)
  refused({ ...BUCKET, burst: '5' }, 'burst', /a number/)
  refused({ ...BUCKET, burst: 262_145 }, 'burst', /at most 262144 tokens at once; .* option unit/)
  refused({ ...BUCKET, limit: 262_145 }, 'limit', /at most 262144/)
  refused({ ...BUCKET, limit: 100_000, burst: 99 }, 'burst', /at least 100 tokens/)
  refused({ ...WINDOW, limit: 2_097_151 }, 'limit', /at most 2097150 .* unit/)
  for (const rule of [
    { ...BUCKET, burst: 262_144, limit: 1 },
    { ...BUCKET, limit: 100_000, burst: 100 },
    { ...WINDOW, limit: 2_097_150 },
    { ...BUCKET, limit: '10GB', unit: '64KB' } as const,
  ])
    assert.ok(createLimiter(rule).check('key').allowed)
})

test('limiter.rule has the limit, the burst and the alignment, also in another thread', () => {
  const { limiter } = on({ ...BUCKET, burst: 25 })
  const expected = { limit: 10, windowMs: 1_000, burst: 25, algorithm: 'token-bucket' }
  for (const { rule } of [limiter, attachLimiter(limiter.share())]) {
    const { limit, windowMs, burst, algorithm } = rule
    assert.equal({ limit, windowMs, burst, algorithm }, expected)
  }
  assert.is(limiter.check('key').limit, 25, 'what the key may use at once')
  const aligned = on({ ...WINDOW, align: 'clock' }).limiter
  assert.equal([aligned.rule.align, attachLimiter(aligned.share()).rule.align], ['clock', 'clock'])
})

test('a limit of a call or of update keeps the part of the limit that the burst is, or is refused', () => {
  const { clock, limiter } = on({ ...BUCKET, burst: 25 })
  const wrong = () => limiter.check('key', 1, { limit: 11 })
  assert.match(assertRaises(wrong, 'ERR_MILLRACE_INVALID_OPTION', 'limit').expected, /a multiple of 2/)
  const update = () => limiter.update('default', { limit: 11 })
  assert.match(assertRaises(update, 'ERR_MILLRACE_INVALID_RULE', 'limit').expected, /a multiple of 2/)
  assert.is(limiter.check('key', 1, { limit: 20 }).limit, 50)
  limiter.update('default', { limit: 40 })
  assert.equal([limiter.rule.limit, limiter.rule.burst, limiter.check('new').limit], [40, 100, 100])
  for (let i = 0; i < 99; i++) assert.ok(limiter.check('new').allowed)
  assert.is(limiter.check('new').retryAfterMs, 25)
  limiter.update('default', { window: '4s' })
  assert.equal([limiter.rule.limit, limiter.rule.windowMs, limiter.rule.burst], [40, 4_000, 100])
  clock.advance(20_000)
  assert.is(limiter.check('new', 100).resetMs, 10_000)
  for (const limit of [4_194_302, 200_000])
    assertRaises(() => limiter.update('default', { limit }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
})

test('windows aligned to the clock begin at whole multiples in UTC, by the time of the system', () => {
  const limiter = createLimiter({ limit: 5, window: '1h', algorithm: 'fixed-window' })
  const before = Date.now()
  const { resetMs } = limiter.check('key')
  const after = Date.now()
  const next = Math.ceil(before / HOUR) * HOUR
  assert.ok(before + resetMs >= next - 2 - (after - before) && before + resetMs <= next + HOUR, `${resetMs}`)
  assert.ok(after + resetMs - next <= 2 + (after - before) || after >= next, `${resetMs}`)
})

for (const rule of [BUCKET, WINDOW]) {
  test(`${rule.algorithm}: a key is not locked out by a clock that steps back for good, nor forgotten by a small step`, () => {
    const { clock, limiter } = on(rule)
    assert.ok(limiter.check('key', 10).allowed)
    clock.advance(-HOUR / 6)
    assert.not(limiter.check('key').allowed, 'ten minutes back: it may be the clock of another thread')
    clock.advance(-2 * HOUR)
    assert.ok(limiter.check('key', 10).allowed)
    assert.not(limiter.check('key').allowed)
    clock.advance(1_000)
    assert.ok(limiter.check('key', 10).allowed)
  })

  test(`${rule.algorithm}: hundreds of refunds of one key never let more through than its limit`, () => {
    const { clock, limiter } = on({ ...rule, limit: 1_000, window: '1m' })
    const early = limiter.check('key', 400)
    for (let i = 0; i < 600; i++) limiter.refund(limiter.check('key'))
    assert.ok(limiter.usage('key') >= 400)
    limiter.refund(early)
    const left = limiter.usage('key')
    assert.ok(left === 0 || rule === BUCKET, `${left}: a bucket gives back less after so many refunds`)
    assert.is(limiter.check('key', 1_000 - left).remaining, 0)
    clock.advance(60_000)
    assert.is(limiter.check('key').remaining, 999)
    assert.is(limiter.refund(early), 0)
  })

  test(`${rule.algorithm}: a full table evicts the least used key, and its counts go to the new one`, () => {
    const { limiter } = on(rule, { onFull: 'evict' })
    for (let i = 0; i < 32; i++) assert.ok(limiter.check(`${i}`, i === 7 ? 1 : 5).allowed)
    const { allowed, remaining } = limiter.check('new', 9)
    assert.equal([allowed, remaining], [true, 0], 'the one unit of the displaced key counts')
    assert.equal([limiter.usage('7'), limiter.stats().evictedLive], [0, 1])
  })

  test(`${rule.algorithm}: a full table that denies has a place for a new key as soon as it says`, () => {
    const { clock, limiter } = on(rule, { onFull: 'deny' })
    for (let i = 0; i < 32; i++) assert.ok(limiter.check(`${i}`, 1 + (i % 5)).allowed)
    const refused = limiter.check('new')
    assert.not(refused.allowed)
    clock.advance(refused.retryAfterMs - 1)
    assert.not(limiter.peek('new').allowed, `${refused.retryAfterMs}`)
    clock.advance(1)
    const { allowed, remaining } = limiter.check('new')
    assert.equal([allowed, remaining], [true, 9])
  })

  test(`${rule.algorithm}: at most half of the places stay blocked, and a block that gives way leaves its counts`, () => {
    const { limiter } = on(rule, { onFull: 'evict' })
    for (let i = 0; i < 32; i++) assert.ok(limiter.block(`${i}`, 1_000 * (i + 1)))
    assert.ok(limiter.stats().blocksEvicted >= 16)
    assert.ok(limiter.check('new').allowed)
    assert.not(limiter.check('31').allowed)
    limiter.clearAll()
    assert.ok(limiter.check('31', 10).allowed)
  })

  test(`${rule.algorithm}: a penalty and a refund act on a blocked key, whose counts are there after the block`, () => {
    const { clock, limiter } = on(rule)
    limiter.block('key', '100ms')
    limiter.penalize('key', 8)
    assert.is(limiter.refund('key', 3), 3)
    assert.equal([limiter.usage('key'), limiter.check('key').allowed], [5, false])
    clock.advance(125) // blocks end at sixteenths of a second
    const { allowed, remaining } = limiter.check('key', 5)
    assert.equal([allowed, remaining], [true, rule.algorithm === 'token-bucket' ? 1 : 0])
  })
}

test.run()
