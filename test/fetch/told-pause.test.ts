// What the headers of an answer tell: from this project's server, from express-rate-limit's forms, and malformed.
// run: modules
import { createLimiter, manualClock } from 'millrace'
import { parseRateLimit } from 'ratelimit-header-parser'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseHttpDate, toldPauseMs } from '#millrace/fetch/told-pause.js'
import { type Headers, headersWith, NOW_MS } from '../http/headers-support.js'

const told = (headers: Readonly<Record<string, string>>, nowMs = NOW_MS) =>
  toldPauseMs((name) => headers[name], nowMs)

const YEAR_MS = 366 * 86_400_000
const DATE = 'Tue, 14 Nov 2023 22:13:20 GMT' // 1_700_000_000 s

test('Retry-After is seconds, or a date of any of the three forms', () => {
  assert.is(told({ 'retry-after': '120' }), 120_000)
  assert.is(told({ 'retry-after': ' 0 ' }), 0)
  assert.is(told({ 'retry-after': '1.5' }), 1_500)
  const date = DATE
  for (const later of [
    'Tue, 14 Nov 2023 22:13:50 GMT',
    'Tuesday, 14-Nov-23 22:13:50 GMT',
    'Tue Nov 14 22:13:50 2023',
  ])
    assert.is(told({ 'retry-after': later, date }), 30_000, later)
})

test('a date is compared with the Date of the answer, so the clocks may differ', () => {
  const later = 'Tue, 14 Nov 2023 22:14:20 GMT'
  assert.is(told({ 'retry-after': later, date: DATE }, 0), 60_000)
  assert.is(told({ 'retry-after': later }, 1_700_000_030_000), 30_000)
  assert.is(told({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1700000007', date: DATE }, 0), 7_000)
})

test('a date in the past is no pause', () => {
  assert.is(told({ 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }), 0)
})

test('what is malformed or negative is not told', () => {
  const malformed = [
    '-5',
    '',
    'soon',
    '1e3',
    '0x10',
    '1 2',
    'NaN',
    '2023-11-14',
    'Tue, 14 Nov 2023 22:13:50 CET',
  ]
  for (const value of [...malformed, 'Tue, 99 Nov 2023 22:13:50 GMT', '5,5', '+5', 'Infinity'])
    assert.is(told({ 'retry-after': value }), undefined, value)
  for (const reset of ['-1', 'soon', '', '1e3'])
    assert.is(told({ 'ratelimit-remaining': '0', 'ratelimit-reset': reset }), undefined, reset)
  for (const field of [
    '"default";r=0;t=-1',
    '"default";r=0',
    '"default";r=x;t=5',
    'remaining=0, reset',
    '"a;r=0;t=5',
  ])
    assert.is(told({ ratelimit: field }), undefined, field)
  assert.is(told({ 'x-ratelimit-remaining': 'none', 'x-ratelimit-reset': '5' }), undefined)
})

test('a malformed Retry-After leaves the word to the quotas', () => {
  assert.is(told({ 'retry-after': 'soon', ratelimit: '"default";r=0;t=5' }), 5_000)
})

test('Retry-After comes before the quotas', () => {
  assert.is(told({ 'retry-after': '3', ratelimit: '"default";r=0;t=5' }), 3_000)
})

test('a pause of a year or more is cut to 366 days, which no timer and no block takes for another', () => {
  assert.is(told({ 'retry-after': `${366 * 86_400}` }), YEAR_MS)
  assert.is(told({ 'retry-after': '999999999999999999' }), YEAR_MS)
  assert.is(told({ 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }), YEAR_MS)
})

test('quotas with nothing left pause until the last of them is reset; others do not', () => {
  assert.is(told({ ratelimit: '"burst";r=0;t=1, "hourly";r=0;t=30, "daily";r=5;t=5000' }), 30_000)
  assert.is(told({ ratelimit: '"default";r=1;t=5' }), undefined)
  assert.is(told({ ratelimit: 'limit=10, remaining=1, reset=5' }), undefined)
  assert.is(told({ 'ratelimit-remaining': '1', 'ratelimit-reset': '5' }), undefined)
  assert.is(told({}), undefined)
})

test('each form of the drafts and of the time before them is read', () => {
  const forms: readonly Record<string, string>[] = [
    { ratelimit: '"default";r=0;t=5' },
    { ratelimit: 'default;r=0;t=5;pk=:eA==:' },
    { ratelimit: 'limit=10, remaining=0, reset=5' },
    { 'ratelimit-limit': '10, 10;w=60', 'ratelimit-remaining': '0', 'ratelimit-reset': '5' },
    { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '5' },
    { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1700000005' },
    { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1700000005000' },
    { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '1700000005' },
    { 'x-ratelimit-remaining': '3, 0', 'x-ratelimit-reset': '60, 5' }, // two limiters of one server
  ]
  for (const headers of forms) assert.is(told({ ...headers, date: DATE }), 5_000, JSON.stringify(headers))
})

test('what this server writes in each form is read as its decision says, and as ratelimit-header-parser reads it', () => {
  for (const standard of ['draft-11', 'draft-10', 'draft-8', 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
    const { limiter, written } = headersWith(standard)
    for (let left = 4; left >= 0; left--) {
      const decision = limiter.check('somebody')
      const headers: Headers = written(decision)
      const found = toldPauseMs((name) => headers.get(name), NOW_MS)
      assert.is(found !== undefined, left === 0, `${standard}, ${left} left`)
      if (found !== undefined) assert.ok(Math.abs(found - decision.resetMs) <= 1_000, `${standard}: ${found}`)
      if (standard === 'draft-7' || standard === 'draft-6') {
        const { remaining, reset } = parseRateLimit(Object.fromEntries(headers), { reset: 'seconds' })!
        assert.is(remaining, left)
        if (found !== undefined) assert.ok(Math.abs(reset!.getTime() - Date.now() - found) < 5_000)
      }
    }
    const refusal = limiter.check('somebody')
    const headers = written(refusal)
    assert.is(
      toldPauseMs((name) => headers.get(name), NOW_MS),
      refusal.retryAfterSeconds * 1_000,
    )
  }
})

test('of several rules of this server, the one with nothing left counts', () => {
  const clock = manualClock()
  const rules = [
    { name: 'burst', limit: 2, window: '1s' },
    { name: 'hourly', limit: 100, window: '1h' },
  ]
  const { written } = headersWith('draft-11', { rules, clock })
  const limiter = createLimiter({ rules, clock })
  limiter.check('somebody')
  const headers = written(limiter.check('somebody'))
  const found = toldPauseMs((name) => headers.get(name), NOW_MS)!
  assert.ok(found >= 1_000 && found <= 2_000, `${found}`)
})

test('dates are read only in the forms of HTTP', () => {
  assert.is(parseHttpDate(DATE), 1_700_000_000_000)
  for (const text of [
    '-5',
    '2001',
    '14 Nov 2023',
    'Tue, 14 Nov 2023 22:13:20',
    'Tue, 14 Nov 2023 22:13:20 +0100',
  ])
    assert.is(parseHttpDate(text), undefined, text)
})

test.run()
