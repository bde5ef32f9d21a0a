// run: typescript, also-full, also-long
// The calendar of `Intl` against another calculation, of the package temporal-polyfill.
import { Temporal } from 'temporal-polyfill'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Calendar, knownTimeZone } from '#millrace/core/calendar.js'
import { PERIODS, type Period } from '#millrace/core/rule-algorithms.js'
import { boundsOf } from '../calendar.js'
import fc from '../fast-check.js'
import { assertRaises } from '../limiter/support.js'
import { shareOf, sized } from '../size.js'

const ALL = PERIODS.filter((period) => period !== 'none')
const ZONES = Intl.supportedValuesOf('timeZone')
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

function judge(period: Period, timeZone: string, ms: number): void {
  const { startMs, endMs, number } = new Calendar(period, timeZone).at(ms)
  const expected = boundsOf(period, timeZone, ms)
  const shown = (bounds: readonly number[]) =>
    bounds.map((bound) => new Date(bound).toISOString()).join(' to ')
  assert.is(
    shown([startMs, endMs]),
    shown(expected),
    `${period} of ${timeZone} at ${new Date(ms).toISOString()}`,
  )
  const calendar = new Calendar(period, timeZone)
  assert.is(calendar.startOf(number), startMs)
  assert.is(calendar.at(startMs).number, number)
  assert.ok(calendar.at(startMs - 1).number < number)
}

const years = (from: number, to: number) => fc.integer({ min: Date.UTC(from, 0, 1), max: Date.UTC(to, 0, 1) })

test('the bounds of days, weeks, months and years in every zone are those of another calculation', () => {
  const property = fc.property(fc.constantFrom(...ALL), fc.constantFrom(...ZONES), years(1973, 2060), judge)
  fc.assert(property, { numRuns: sized({ quick: 300, full: 5_000, long: 40_000 }) })
})

/** When the zone's offset changes, from 1973 on. */
function* changesIn(timeZone: string): Iterable<number> {
  let at = Temporal.Instant.from('1973-01-01T00:00Z').toZonedDateTimeISO(timeZone)
  for (;;) {
    const next = at.getTimeZoneTransition('next')
    if (next === null || next.year > 2030) return
    at = next
    yield next.epochMilliseconds
  }
}

/** Whether local time comes near to a midnight there. */
const isAtMidnight = (timeZone: string, ms: number): boolean =>
  [ms - 1, ms].some((each) => {
    const { hour } = Temporal.Instant.fromEpochMilliseconds(each).toZonedDateTimeISO(timeZone)
    return hour < 2 || hour > 21
  })

/** Zones with changes at midnight, with a day that was left out, with half hours, in the south. */
const CHANGING = [
  ...['America/Sao_Paulo', 'America/Havana', 'Asia/Beirut', 'Africa/Cairo', 'America/St_Johns', 'Asia/Amman'],
  ...['Pacific/Apia', 'Pacific/Kwajalein', 'Australia/Lord_Howe', 'America/Asuncion', 'Europe/Berlin'],
]

for (const timeZone of CHANGING) {
  test(`${timeZone}: around each change of the offset, to the millisecond`, () => {
    const changes = [...changesIn(timeZone)]
    assert.ok(changes.length > 0)
    for (const change of sized({ quick: changes.slice(-4), full: changes }))
      for (const aroundMs of [
        -26 * HOUR_MS,
        -HOUR_MS,
        -MINUTE_MS,
        -1,
        0,
        1,
        MINUTE_MS,
        HOUR_MS,
        26 * HOUR_MS,
      ])
        for (const period of ALL) judge(period, timeZone, change + aroundMs)
  })
}

test('every zone: around its changes near midnight', () => {
  for (const timeZone of sized({ quick: [], full: shareOf(ZONES, 12) }))
    for (const change of changesIn(timeZone))
      if (isAtMidnight(timeZone, change))
        for (const aroundMs of [-HOUR_MS, -1, 0, HOUR_MS]) judge('day', timeZone, change + aroundMs)
})

const at = (iso: string) => Date.parse(iso)
const lengthOf = (period: Period, timeZone: string, iso: string): number => {
  const { startMs, endMs } = new Calendar(period, timeZone).at(at(iso))
  return (endMs - startMs) / HOUR_MS
}

test('days have 23, 24 or 25 hours, leap days are days, and years have 365 or 366', () => {
  assert.is(lengthOf('day', 'Europe/Berlin', '2026-03-29T12:00Z'), 23)
  assert.is(lengthOf('day', 'Europe/Berlin', '2026-03-30T12:00Z'), 24)
  assert.is(lengthOf('day', 'Europe/Berlin', '2026-10-25T12:00Z'), 25)
  assert.is(lengthOf('day', 'Australia/Lord_Howe', '2026-04-04T20:00Z'), 24.5)
  assert.is(lengthOf('month', 'UTC', '2028-02-29T12:00Z'), 29 * 24)
  assert.is(lengthOf('month', 'UTC', '2100-02-12T12:00Z'), 28 * 24)
  assert.is(lengthOf('year', 'UTC', '2028-02-29T12:00Z'), 366 * 24)
  assert.is(lengthOf('year', 'UTC', '2026-02-28T12:00Z'), 365 * 24)
})

test('a day without a midnight begins where its gap ends', () => {
  const { startMs } = new Calendar('day', 'America/Sao_Paulo').at(at('2018-11-04T12:00Z'))
  assert.is(new Date(startMs).toISOString(), '2018-11-04T03:00:00.000Z') // 01:00 of the day
})

test('a day that a zone has left out has no moments', () => {
  const calendar = new Calendar('day', 'Pacific/Apia')
  const before = calendar.at(at('2011-12-30T09:59:59.999Z'))
  const after = calendar.at(at('2011-12-30T10:00Z'))
  assert.is(after.number - before.number, 2)
  assert.is(before.endMs, after.startMs)
})

test('weeks begin on Monday', () => {
  const { startMs, endMs } = new Calendar('week', 'UTC').at(at('2027-01-01T00:00Z'))
  assert.equal([startMs, endMs], [at('2026-12-28T00:00Z'), at('2027-01-04T00:00Z')])
})

test('the seconds of an offset are rounded up to minutes', () => {
  const { startMs } = new Calendar('day', 'Africa/Monrovia').at(at('1971-06-01T12:00Z')) // 00:44:30 behind UTC
  assert.is(new Date(startMs).toISOString(), '1971-06-01T00:45:00.000Z')
})

test('a time that no calendar has is an error by name, and a start beyond it has an order', () => {
  for (const ms of [9e15, -9e15, Number.POSITIVE_INFINITY, Number.NaN])
    assertRaises(() => new Calendar('day', 'UTC').at(ms), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  for (const period of ALL) {
    const calendar = new Calendar(period, 'UTC')
    assert.ok(calendar.startOf(2 ** 31) < calendar.startOf(2 ** 31 + 1))
  }
})

test('a time zone is known by any capitals, and keeps its own name', () => {
  assert.is(knownTimeZone('europe/berlin'), 'Europe/Berlin')
  assert.is(knownTimeZone('utc'), 'UTC')
  assert.is(knownTimeZone('Asia/Calcutta'), 'Asia/Calcutta')
  assert.is(knownTimeZone('Asia/Kolkata'), 'Asia/Kolkata')
  for (const zone of ['Europe/Berln', '', 'local', 1, null, {}]) assert.is(knownTimeZone(zone), undefined)
})

test.run()
