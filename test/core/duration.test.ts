// run: also-long

import { inspect } from 'node:util'
import { MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { formatDuration, parseDuration } from '#millrace/core/duration.js'
import fc from '../fast-check.js'

test('a number is a duration in milliseconds, a string is a number with its unit', () => {
  const durations: [unknown, number][] = [
    [1, 1],
    [0.25, 0.25],
    [Number.MIN_VALUE, Number.MIN_VALUE],
    ['250ms', 250],
    ['1s', 1_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['365d', 31_536_000_000],
    ['0.5s', 500],
    ['1.25m', 75_000],
    ['007s', 7_000],
  ]
  for (const [text, ms] of durations) assert.is(parseDuration(text, 'window'), ms, `${text}`)
})

test('a value that is not a positive finite duration is refused with the option’s name and the given code', () => {
  const values = [
    0,
    -0,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    undefined,
    null,
    true,
    1n,
    {},
    [1],
    new Date(5),
    '',
    '1',
    's',
    '0s',
    '-1s',
    '+1s',
    ' 1s',
    '1s ',
    '1 s',
    '1S',
    '1sec',
    '1w',
    '1y',
    '1_000ms',
    '1,5s',
    '.5s',
    '1.s',
    '1e3ms',
    '0x10ms',
    '1s1ms',
    'Infinityms',
    '1s\n',
    '١s',
    `${'9'.repeat(400)}d`,
  ]
  for (const value of values) {
    for (const code of ['ERR_MILLRACE_INVALID_DURATION', 'ERR_MILLRACE_INVALID_RULE'] as const) {
      try {
        parseDuration(value, 'granularity', code)
        assert.unreachable(`accepted ${inspect(value)}`)
      } catch (error) {
        assert.instance(error, MillraceError, inspect(value))
        const { code: raised, option, value: given, message } = error as MillraceError
        assert.equal([raised, option], [code, 'granularity'])
        assert.ok(Object.is(given, value))
        assert.match(message, "'15m'")
      }
    }
  }
})

test('durations are formatted in the largest unit that gives a whole number', () => {
  const shown: [number, string][] = [
    [1, '1ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_500, '1500ms'],
    [60_000, '1m'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [5_400_000, '90m'],
    [86_400_000, '1d'],
    [36 * 3_600_000, '36h'],
    [0.5, '0.5ms'],
    [1_000 / 3, '333.333ms'],
  ]
  for (const [ms, text] of shown) assert.is(formatDuration(ms), text)
})

test('a formatted duration of whole milliseconds parses to the same number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 48 }), (ms) => {
      assert.is(parseDuration(formatDuration(ms), 'window'), ms)
    }),
  )
})

test.run()
