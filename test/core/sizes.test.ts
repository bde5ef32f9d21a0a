// run: also-long

import { inspect } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { formatSize, parseSize } from '#millrace/core/sizes.js'
import fc from '../fast-check.js'

test('a size is a number, or a number and a suffix: KB is 1,000, and KiB is 1,024', () => {
  const sizes: [unknown, number][] = [
    [1, 1],
    [1e9, 1_000_000_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['5', 5],
    ['1B', 1],
    ['64KB', 64_000],
    ['64kB', 64_000],
    ['64KiB', 65_536],
    ['3MB', 3_000_000],
    ['3MiB', 3_145_728],
    ['10GB', 10_000_000_000],
    ['10GiB', 10_737_418_240],
    ['2TB', 2_000_000_000_000],
    ['2TiB', 2_199_023_255_552],
    ['1.5GB', 1_500_000_000],
    ['0.5KiB', 512],
    ['1.1KB', 1_100],
    ['0.000001TB', 1_000_000],
    ['007B', 7],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ]
  for (const [text, size] of sizes) assert.is(parseSize(text), size, `${text}`)
})

test('fractions of a byte, other spellings, 0 and more than 2^53 - 1 are not sizes', () => {
  const values = [
    0,
    -1,
    0.5,
    2 ** 53,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    5n,
    null,
    undefined,
    {},
    [5],
    true,
    '',
    '0',
    '0KB',
    '-1KB',
    '+1KB',
    '1e3',
    '0.5B',
    '1.0001KB',
    '1 KB',
    ' 1KB',
    '1KB\n',
    '1kb',
    '1Kb',
    '1mB',
    '1gb',
    '1K',
    '1kiB',
    '1PB',
    '1bytes',
    '.5KB',
    '5.KB',
    '1,000',
    '9007199254740992',
    '10000TB',
    '9'.repeat(1_000_000),
  ]
  for (const value of values) assert.is(parseSize(value), undefined, inspect(value).slice(0, 50))
})

test('a formatted size is parsed as the same number', () => {
  assert.equal([1, 999, 1_000, 5_000, 1_500_000, 2e9, 3e12].map(formatSize), [
    '1B',
    '999B',
    '1KB',
    '5KB',
    '1500KB',
    '2GB',
    '3TB',
  ])
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.integer({ min: 0, max: 4 }), (digits, thousands) => {
      const size = Math.floor(digits / 1e12) * 1_000 ** thousands
      if (size > 0) assert.is(parseSize(formatSize(size)), size)
    }),
  )
})

test.run()
