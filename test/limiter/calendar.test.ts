// run: also-full
// Rules with `align: 'calendar'` in shared memory.
import {
  attachLimiter,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  manualClock,
  type Period,
} from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER, TIME_ZONE_WORDS } from '#millrace/memory/layout.js'
import { writeText } from '#millrace/memory/text.js'
import { boundsOf } from '../calendar.js'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { assertRaises } from './support.js'

const HOUR_MS = 3_600_000
const BAD = 'ERR_MILLRACE_INVALID_RULE'
const at = (iso: string) => Date.parse(iso)

const monthly = { algorithm: 'fixed-window', align: 'calendar', period: 'month', limit: 5 } as const

/** A limiter of a calendar on a manual clock, which begins at this time. */
function on(iso: string, options: Partial<LimiterOptions> = {}) {
  const clock = manualClock(at(iso))
  return { clock, limiter: createLimiter({ ...monthly, maxKeys: 20, clock, ...options }) }
}

function refused(options: object, option: string, expected: RegExp): void {
  const { message } = assertRaises(
    () => createLimiter({ ...monthly, ...options } as LimiterOptions),
    BAD,
    option,
  )
  assert.match(message, expected)
}

test('a wrong period or time zone is refused by name', () => {
  for (const period of [undefined, 'hour', 'none', 'months', '', 1, null])
    refused({ period }, 'period', /'day' or 'week' or 'month' or 'year'/)
  for (const timeZone of ['Europe/Berln', '', 'local', 5, null, {}]) refused({ timeZone }, 'timeZone', /IANA/)
})

test('a calendar takes no window, no granularity, and no other algorithm', () => {
  refused({ window: '30d' }, 'window', /nothing beside align: 'calendar'/)
  refused({ granularity: '1d' }, 'granularity', /nothing beside/)
  refused({ algorithm: 'sliding-window' }, 'align', /nothing beside algorithm: 'sliding-window'/)
  refused({ algorithm: 'token-bucket', align: undefined }, 'period', /nothing beside algorithm/)
  for (const align of [undefined, 'clock', 'first']) {
    refused({ align, window: '1d' }, 'period', /nothing without align: 'calendar'/)
    refused({ align, window: '1d', period: undefined, timeZone: 'UTC' }, 'timeZone', /nothing without/)
  }
  refused({ align: 'clock', period: undefined }, 'window', /milliseconds above 0/)
})

test('limiter.rule has the period and the time zone, also in another thread, and the longest length', () => {
  const { limiter } = on('2026-02-10T00:00Z', { timeZone: 'asia/tokyo' })
  const expected = { align: 'calendar', period: 'month', timeZone: 'Asia/Tokyo', windowMs: 31 * 24 * HOUR_MS }
  for (const { rule } of [limiter, attachLimiter(limiter.share())])
    assert.equal({ ...rule, ...expected }, rule)
  assert.is(on('2026-02-10T00:00Z').limiter.rule.timeZone, 'UTC')
})

test('the longest name of a time zone fits', () => {
  const longest = Intl.supportedValuesOf('timeZone').reduce((a, b) => (b.length > a.length ? b : a))
  const alias = 'America/Argentina/ComodRivadavia'
  for (const timeZone of [longest, alias]) {
    const { limiter } = on('2026-02-10T00:00Z', { timeZone })
    assert.is(attachLimiter(limiter.share()).rule.timeZone, timeZone)
  }
})

test('an update changes the limit, and no window', () => {
  const { limiter } = on('2026-02-10T00:00Z')
  limiter.update('default', { limit: 7 })
  assert.is(limiter.check('key', 7).remaining, 0)
  for (const change of [{ window: '1d' }, { limit: 5, window: '1d' }] as const) {
    const { message } = assertRaises(() => limiter.update('default', change), BAD, 'window')
    assert.match(message, /periods/)
  }
})

test('a day of 23 hours and one of 25 end at their midnights', () => {
  for (const [iso, hours] of [
    ['2026-03-28T23:00Z', 23],
    ['2026-10-24T22:00Z', 25],
  ] as const) {
    const { clock, limiter } = on(iso, { period: 'day', timeZone: 'Europe/Berlin' })
    const { resetMs } = limiter.check('key', 5)
    assert.is(resetMs, hours * HOUR_MS)
    clock.advance(hours * HOUR_MS - 1)
    assert.equal([limiter.check('key').allowed, limiter.check('key').retryAfterMs], [false, 1])
    clock.advance(1)
    assert.is(limiter.check('key', 5).allowed, true)
  }
})

test('a call that waits is admitted when the month ends, and not before', async () => {
  const { clock, limiter } = on('2028-02-29T23:59:59.900Z')
  limiter.check('key', 5)
  const waiting = limiter.wait('key')
  clock.advance(99)
  assert.is(limiter.check('key').allowed, false)
  clock.advance(1)
  assert.is((await waiting).remaining, 4)
})

test('a small step back of the clock stands still, and after a large one the key has its limit again', () => {
  const { clock, limiter } = on('2026-03-01T00:00Z', { period: 'day' })
  limiter.check('key', 5)
  clock.advance(-1)
  assert.is(limiter.check('key').allowed, false)
  clock.advance(-10 * 24 * HOUR_MS)
  assert.is(limiter.check('key', 5).allowed, true)
  assert.is(limiter.check('key').allowed, false)
})

const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia')
const periods = fc.constantFrom<Period>('day', 'week', 'month', 'year')
const steps = fc.array(
  fc.record({
    ms: fc.oneof(fc.nat(2 * HOUR_MS), fc.nat(40 * 24 * HOUR_MS)),
    cost: fc.integer({ min: 0, max: 5 }),
    thread: fc.boolean(),
    op: fc.constantFrom('check', 'peek', 'penalize', 'refund', 'batch'),
  }),
  { minLength: 1, maxLength: 40 },
)

test('random calls of two threads are counted by the periods of another calculation', () => {
  const start = fc.integer({ min: at('2011-12-01T00:00Z'), max: at('2030-01-01T00:00Z') })
  const property = fc.property(periods, zones, start, steps, (period, timeZone, startMs, all) => {
    const { clock, limiter } = on(new Date(startMs).toISOString(), { period, timeZone })
    const threads = [limiter, attachLimiter(limiter.share())]
    let [used, endMs] = [0, 0]
    for (const { ms, cost, thread, op } of all) {
      clock.advance(ms)
      const own = threads[Number(thread)]!
      const [, end] = boundsOf(period, timeZone, clock.now())
      if (end !== endMs) used = 0
      endMs = end
      const fits = cost === 0 || used + cost <= 5
      if (op === 'penalize') {
        if (cost > 0) own.penalize('key', cost)
        used += cost
      } else if (op === 'refund') {
        assert.is(own.refund('key', cost), Math.min(cost, used))
        used = Math.max(0, used - cost)
      } else if (op === 'batch') {
        assert.equal([...own.checkMany(['key'], [cost]).allowed], [Number(fits)])
        if (fits) used += cost
      } else {
        const decision = op === 'check' ? own.check('key', cost) : own.peek('key', cost)
        if (op === 'check' && fits) used += cost
        const wait = fits ? 0 : cost > 5 ? Number.POSITIVE_INFINITY : end - clock.now()
        assert.equal(
          [decision.allowed, decision.remaining, decision.retryAfterMs, decision.resetMs],
          [fits, Math.max(0, 5 - used), wait, used > 0 ? end - clock.now() : 0],
        )
      }
      assert.is(own.usage('key'), used)
    }
  })
  fc.assert(property, { numRuns: sized({ quick: 100, full: 2_000 }) })
})

/** Another thread on the same memory, whose data of time zones say something else. */
function withOtherData(limiter: Limiter, timeZone: string): Limiter {
  const share = limiter.share()
  const words = new Int32Array(share.buffer)
  const own = limiter.rule.timeZone!
  writeText(words, HEADER.TIME_ZONE, TIME_ZONE_WORDS, timeZone)
  const other = attachLimiter(share)
  writeText(words, HEADER.TIME_ZONE, TIME_ZONE_WORDS, own)
  return other
}

/** Zones whose midnights are an hour or less apart. */
const DIFFERENT = [
  ['Europe/Berlin', 'Europe/London'],
  ['Asia/Kathmandu', 'Asia/Kolkata'],
] as const

test('processes whose data of time zones differ keep to one end: the later one, and the limit holds until then', () => {
  const calls = fc.array(fc.record({ node: fc.nat(1), ms: fc.nat(3 * HOUR_MS), cost: fc.nat(5) }), {
    minLength: 1,
    maxLength: 60,
  })
  const property = fc.property(fc.constantFrom(...DIFFERENT), calls, ([early, late], all) => {
    const { clock, limiter } = on('2026-06-10T12:00Z', { period: 'day', timeZone: early })
    const nodes = [limiter, withOtherData(limiter, late)]
    const admitted: { ms: number; cost: number; endMs: number }[] = []
    const ends = new Set<number>()
    for (const { node, ms, cost } of all) {
      clock.advance(ms)
      const { allowed, resetMs } = nodes[node]!.check('key', cost)
      if (!allowed || cost === 0) continue
      const nowMs = clock.now()
      admitted.push({ ms: nowMs, cost, endMs: nowMs + resetMs })
      ends.add(nowMs + resetMs)
      const ownEnds = [early, late].map((zone) => boundsOf('day', zone, nowMs)[1])
      assert.ok(ownEnds.includes(nowMs + resetMs), 'the end is one of the two')
    }
    for (const { ms, endMs } of admitted) {
      const counted = admitted.filter((each) => each.ms >= ms && each.ms < endMs)
      assert.ok(
        counted.reduce((sum, each) => sum + each.cost, 0) <= 5,
        'the limit holds until the end that was said',
      )
    }
    // An end may be moved to the later one. No day has a third one.
    const days = Math.ceil((clock.now() - at('2026-06-10T12:00Z')) / (24 * HOUR_MS)) + 1
    assert.ok(ends.size <= 2 * days)
  })
  fc.assert(property, { numRuns: sized({ quick: 100, full: 3_000 }) })
})

test('the node whose day ends earlier waits for the other one, and the other way round', () => {
  const { clock, limiter: early } = on('2026-06-10T21:30Z', { period: 'day', timeZone: 'Europe/Berlin' })
  const late = withOtherData(early, 'Europe/London') // 23:00 instead of 22:00 in UTC
  assert.is(late.check('key', 5).resetMs, 1.5 * HOUR_MS)
  clock.set(at('2026-06-10T22:10Z'))
  assert.equal([early.check('key').allowed, early.check('key').retryAfterMs], [false, 50 * 60_000])
  clock.set(at('2026-06-10T23:00Z'))
  assert.is(early.check('key', 5).resetMs, 23 * HOUR_MS)
  clock.set(at('2026-06-11T22:10Z')) // its own day has ended, but not that of the other one
  assert.is(late.check('key').allowed, false)
  assert.is(early.check('key').allowed, false)
})

test('damaged bounds of a period are replaced', () => {
  const { clock, limiter } = on('2026-06-10T12:00Z', { period: 'day' })
  for (const bits of [-1n, 1n, 0x7fffffff_80000000n, 0x80000000n]) {
    new BigInt64Array(limiter.share().buffer)[HEADER.PERIOD / 2] = bits
    clock.advance(24 * HOUR_MS)
    assert.is(limiter.check('key', 5).resetMs, 12 * HOUR_MS, `${bits}`)
    assert.is(limiter.check('key').allowed, false)
  }
})

test.run()
