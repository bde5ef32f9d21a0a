// run: also-full, also-long
// Unusual keys: each has its own cell and exactly its limit, and no call throws.

import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { assertRaises } from '../limiter/support.js'

const LIMIT = 3
const MOST = 65_536

const ODD = [
  ...[
    '\0',
    '\0\0',
    '\0\0\0\0',
    '\0'.repeat(256),
    '\0'.repeat(260),
    'a',
    'a\0',
    '\0a',
    'a\0b',
    'ab',
    'abcd',
    'abcd\0',
  ],
  ...['\r\n', '\n', '\r', 'a\r\nX-Admin: 1', 'a\nX-Admin: 1', ' ', '  ', '\t', 'a ', ' a'],
  ...[
    '\ud800',
    '\udbff',
    '\udc00',
    '\udfff',
    '\ufffd',
    'a\ud800',
    '\ud800a',
    '\udc00\ud800',
    '\u{1f600}',
    '\ud83d',
    '\ude00',
  ],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    '__defineGetter__',
    'then',
  ],
  ...['null', 'undefined', 'NaN', '0', '-0', 'true', 'false', '[object Object]', 'Infinity', '1e3', '1000'],
  ...[
    'caf\u00e9',
    'cafe\u0301',
    '\u212b',
    '\u00c5',
    'A\u030a',
    '\ufb01',
    'fi',
    '\u0130',
    'i',
    'I',
    '\u0131',
    '\u00df',
    'ss',
    'SS',
  ],
  ...[
    'a\u200b',
    'a\u200d',
    '\ufeffa',
    '\u202ea',
    'a\u00ad',
    '\u0430',
    '\uff41',
    '\u00ff',
    '\u0100',
    '\u00ff\u00ff',
  ],
  ...[
    '192.0.2.1',
    '192.0.2.10',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:192.0.2.1',
    '%00',
    '%0d%0a',
    '../..',
    "' OR 1=1 --",
  ],
  ...['x', 'y', 'ÿ', 'Ā'].map((last) => 'x'.repeat(MOST - 1) + last),
  ...['x', 'y', 'Ā'].map((first) => first + 'x'.repeat(MOST - 1)),
  ...['a', '\u0100'].flatMap((unit) => [254, 255, 256, 257, 65_535].map((length) => unit.repeat(length))),
]
const KEYS = [...new Set(ODD)]

function limiterFor(keys: number) {
  return createLimiter({
    limit: LIMIT,
    window: '1h',
    maxKeys: Math.max(20, 4 * keys),
    clock: manualClock(1e9),
  })
}

/** Uses all keys in turn, repeatedly, so that a shared cell would affect both keys. */
function assertEachHasItsLimit(keys: string[]): void {
  const limiter = limiterFor(keys.length)
  for (let unit = 0; unit < LIMIT + 2; unit++) {
    for (const key of keys) {
      const { allowed, remaining } = limiter.check(key)
      const expected = [unit < LIMIT, Math.max(0, LIMIT - 1 - unit)]
      assert.equal([allowed, remaining], expected, `${JSON.stringify(key.slice(0, 40))}, unit ${unit}`)
    }
  }
  const { keys: cells, evicted, noRoom } = limiter.stats()
  assert.equal([cells, evicted, noRoom], [keys.length, 0, 0])
}

test('NUL, line ends, lone surrogates, names of Object, 64 Ki characters, other normal forms: each key has its own limit', () => {
  assert.ok(KEYS.length > 90)
  assertEachHasItsLimit(KEYS)
})

test('keys that differ in one character at any position have separate limits', () => {
  for (const length of [1, 2, 3, 4, 5, 8, 255, 256, 1_000, MOST]) {
    for (const unit of ['a', '\u4e00']) {
      const places = [...new Set([0, 1, length >> 1, length - 2, length - 1])].filter(
        (at) => at >= 0 && at < length,
      )
      const changed = places.flatMap((at) =>
        ['\0', 'b', 'ÿ', 'Ā', '\udfff'].map(
          (other) => unit.repeat(at) + other + unit.repeat(length - at - 1),
        ),
      )
      assertEachHasItsLimit([...new Set([unit.repeat(length), ...changed])])
    }
  }
})

test('arbitrary strings have separate limits', () => {
  const unit = fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    fc.constantFrom('\0', 'a', 'ÿ', 'Ā', '\ud800', '\udc00', 'e\u0301', '\u00e9'),
  )
  const keys = fc.uniqueArray(fc.string({ unit, minLength: 1, maxLength: 12 }), {
    minLength: 2,
    maxLength: 60,
  })
  fc.assert(fc.property(keys, assertEachHasItsLimit), { numRuns: 300 })
})

test('every method accepts them: handles, batches, peeks, penalties, refunds, blocks', () => {
  const limiter = limiterFor(KEYS.length)
  const { allowed } = limiter.checkMany(KEYS)
  assert.is(
    allowed.reduce((sum, one) => sum + one, 0),
    KEYS.length,
  )
  for (const key of KEYS) {
    const name = JSON.stringify(key.slice(0, 40))
    assert.is(limiter.usage(limiter.handle(key)), 1, name)
    assert.is(limiter.peek(key).remaining, LIMIT - 1, name)
    assert.ok(limiter.penalize(key, 2), name)
    assert.not(limiter.check(limiter.handle(key)).allowed, name)
    assert.is(limiter.refund(key, 1), 1, name)
    assert.ok(limiter.block(key, '1m'), name)
    assert.not(limiter.check(key, 0).allowed, name)
    assert.ok(limiter.unblock(key), name)
    assert.is(limiter.check(key).remaining, 0, name)
    limiter.clear(key)
    assert.is(limiter.usage(key), 0, name)
  }
})

test('invalid keys of every type throw a named error and charge nothing', () => {
  const limiter = limiterFor(1)
  const noKeys = [
    '',
    'x'.repeat(MOST + 1),
    Object.create(null),
    { toString: () => 'a' },
    Symbol.iterator,
    0,
    null,
    ['a'],
  ]
  for (const key of noKeys) assertRaises(() => limiter.check(key as never), 'ERR_MILLRACE_INVALID_KEY', 'key')
  assert.is(limiter.stats().keys, 0)
})

test.run()
