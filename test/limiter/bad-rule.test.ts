// run: typescript, modules
import { inspect } from 'node:util'
import { createLimiter, type Duration, type ErrorCode, type LimiterOptions, MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { assertRaises, assertSame, limiterWith } from './support.js'

type OptionName = keyof LimiterOptions

function assertRefused(option: OptionName, values: unknown[], code: ErrorCode): void {
  for (const value of values) {
    const act = () => limiterWith({ [option]: value })
    const error = assertRaises(act, code, option, inspect(value))
    assertSame(error.value, value)
  }
}

test('a limit that is not an integer from 1 to 2^22 - 2 is refused', () => {
  const values = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 5n, 2 ** 22 - 1, undefined, null, {}]
  assertRefused('limit', values, 'ERR_MILLRACE_INVALID_RULE')
})

test('the smallest and the largest limit are accepted', () => {
  for (const limit of [1, 2 ** 22 - 2]) {
    const { limiter } = limiterWith({ limit })
    assert.ok(limiter.check('key', limit).allowed)
    assert.not(limiter.check('key').allowed)
  }
})

test('countRefused and shadow are true or false', () => {
  for (const option of ['countRefused', 'shadow'] as const)
    assertRefused(option, ['true', 1, 0, null, {}], 'ERR_MILLRACE_INVALID_RULE')
})

test('a range sum is refused for a window of up to 256 granules, which needs none', () => {
  for (const rangeSum of ['blocks', 'fenwick'] as const) {
    for (const granules of [60, 256]) {
      const act = () => limiterWith({ window: granules * 1_000, granularity: '1s', rangeSum })
      assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'rangeSum').expected, `${granules}`)
    }
    assert.ok(limiterWith({ window: 257_000, granularity: '1s', rangeSum }).limiter.check('key').allowed)
  }
})

const NO_DURATIONS = [
  '0s',
  '-1m',
  '1 hour',
  'abc',
  '',
  '1',
  '1M',
  '1e3ms',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  0,
  -5,
  null,
  {},
  [60_000],
  60_000n,
  true,
]

test('a window that is not a duration of 1 ms to 10,000 years is refused', () => {
  const values = [...NO_DURATIONS, undefined, 0.5, '0.9ms', '4000000d']
  assertRefused('window', values, 'ERR_MILLRACE_INVALID_RULE')
})

test('a granularity that is not a positive duration is refused', () => {
  assertRefused('granularity', NO_DURATIONS, 'ERR_MILLRACE_INVALID_RULE')
})

test('a granularity larger than the window is refused, and the error names the window', () => {
  const act = () => limiterWith({ window: '90s', granularity: '2m' })
  const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
  assert.match(message, '90s')
  assert.not.throws(() => limiterWith({ window: '90s', granularity: '90s' }))
})

const TOO_FINE: [Duration, LimiterOptions['granularity'], string][] = [
  ['30d', 1, '2500ms'],
  ['1d', '50ms', '90ms'],
  ['365d', '1s', '31250ms'],
]
for (const [window, granularity, least] of TOO_FINE) {
  test(`a window of ${window} in granules of ${granularity} is too fine: the error names ${least}, which is accepted`, () => {
    const act = () => limiterWith({ window, granularity: granularity! })
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
    assert.match(message, `such as ${least}:`)
    assert.match(message, '1048576')
    assert.not.throws(() => limiterWith({ window, granularity: least as '1s', maxKeys: 1 }))
  })
}

const UNEVEN: [Duration, LimiterOptions['granularity'], string][] = [
  ['1m', '7s', '7500ms'],
  ['1m', 11_000, '10s'],
  ['1m', '59s', '1m'],
  ['1h', '7m', '400s'],
  ['1d', '5h', '288m'],
  [1_000, 3, '2ms'],
  [97, 20, '1ms'],
  [7, 4, '1ms'],
  [1.5, 1, '0.75ms'],
]
for (const [window, granularity, nearest] of UNEVEN) {
  test(`granules of ${granularity} do not divide ${window}: the error names ${nearest}, which is accepted`, () => {
    const act = () => limiterWith({ window, granularity: granularity! })
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
    assert.match(message, `the nearest is ${nearest},`)
    assert.not.throws(() => limiterWith({ window, granularity: nearest as '1s' }))
  })
}

test('a sliding counter has no granularity, no edge and no range sum', () => {
  for (const more of [
    { granularity: '1s' },
    { edge: 'smooth' },
    { edge: 'strict' },
    { rangeSum: 'blocks' },
  ]) {
    const [option] = Object.keys(more)
    const options = { limit: 1, window: '1m', algorithm: 'sliding-counter', ...more } as LimiterOptions
    assertRaises(() => createLimiter(options), 'ERR_MILLRACE_INVALID_RULE', option as OptionName)
  }
})

test('an unknown algorithm, edge, onFull or engine, and an invalid name, are refused', () => {
  for (const option of ['algorithm', 'edge'] as const) {
    assertRefused(option, ['', 'STRICT', 'funnel', 1, null, {}], 'ERR_MILLRACE_INVALID_RULE')
  }
  assertRefused('name', ['', 5, null, {}, Symbol('rule')], 'ERR_MILLRACE_INVALID_RULE')
  for (const option of ['onFull', 'engine'] as const) {
    assertRefused(option, ['', 'EVICT', 'drop', 0, null, {}], 'ERR_MILLRACE_INVALID_OPTION')
  }
})

test('a maxKeys that is not an integer of 1 or more is refused', () => {
  const values = [0, -1, 1.5, '10', Number.NaN, Number.POSITIVE_INFINITY, null, 10n]
  assertRefused('maxKeys', values, 'ERR_MILLRACE_INVALID_OPTION')
})

test('an arena that cannot be allocated is refused with its size in bytes', () => {
  for (const maxKeys of [2 ** 40, Number.MAX_SAFE_INTEGER, 1e300]) {
    const error = assertRaises(() => limiterWith({ maxKeys }), 'ERR_MILLRACE_ARENA_TOO_LARGE', 'maxKeys')
    const bytes = Number(/needs (\S+) bytes/.exec(error.message)?.[1])
    assert.ok(bytes > maxKeys * 4 * 61, `${error.message}: the buckets alone are more`)
    assert.is(error.value, maxKeys)
  }
})

test('an unknown option is refused by name, and the error lists the known ones', () => {
  for (const name of ['limt', 'windowMs', 'maxkeys', 'toString', '__proto__x']) {
    const act = () => limiterWith({ [name]: 1 } as object)
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'options')
    assert.match(message, `"${name}"`)
    for (const known of ['limit', 'window', 'granularity', 'maxKeys', 'onFull', 'clock']) {
      assert.match(message, known)
    }
  }
})

test('options that are not an object are refused', () => {
  for (const options of [undefined, null, 5, 'limit', () => {}, []]) {
    try {
      createLimiter(options as never)
      assert.unreachable(`accepted ${inspect(options)}`)
    } catch (error) {
      assert.instance(error, MillraceError, inspect(options))
    }
  }
})

test('an error message never runs code of a value, and truncates long ones', () => {
  const trap = {
    toString: () => assert.unreachable('ran'),
    toJSON: () => assert.unreachable('ran'),
    [inspect.custom]: () => assert.unreachable('ran'),
  }
  assertRaises(() => limiterWith({ limit: trap as never }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
  const act = () => limiterWith({ window: 'x'.repeat(1_000_000) as never })
  assert.ok(assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'window').message.length < 300)
})

test('the error names the finest granularity as a bound: it is accepted, and nothing finer is', () => {
  for (const window of [1, 60_000, '1h', '365d', 1_000 / 3] as const) {
    const act = () => limiterWith({ window, granularity: 1e-9, maxKeys: 1 })
    const { expected } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
    const least = Number(/at least (\S+) in milliseconds/.exec(expected)?.[1])
    assert.is(checkRule({ limit: 1, window, granularity: least }).buckets, 2 ** 20, `${window}`)
    assert.throws(() => checkRule({ limit: 1, window, granularity: least * (1 - 1e-6) }), /at least/)
  }
})

test.run()
