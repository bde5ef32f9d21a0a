// run: once
// Names of keys on Memcached: fit for the protocol, and never shared by two keys, prefixes, rules or windows.
import { randomInt } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { blockName, CounterNames, counterName } from '#millrace/memcached/counter-names.js'

const nameOf = (prefix: string, key: string, rule = 'default') => new CounterNames(prefix, [rule]).of(key)[0]!

const LONG = 'x'.repeat(64)
const KEYS = [
  ...[
    'a',
    ' a',
    'a ',
    'a b',
    'a\tb',
    'a:b',
    '{a}',
    '%',
    '%h',
    '%7B',
    '\0',
    'a\0',
    '\n',
    '\r\n',
    '\x7f',
    '\x80',
  ],
  ...['é', 'e\u0301', '😀', '\ufffd', '\ud800', '\udfff', '\ud801', 'block', ':block', '60000:1'],
  ...[LONG, `${LONG}a`, `${LONG}b`, 'é'.repeat(64), 'k'.repeat(65_536), 'k'.repeat(65_535)],
]

test('different keys have different names, whatever the prefix and the rule', () => {
  const names = new Set<string>()
  const [prefixes, rules] = [
    ['a', 'é', 'a b', 'p'.repeat(64)],
    ['r', 'a b', 'é', ':block', 'r'.repeat(65)],
  ] as const
  for (const prefix of prefixes)
    for (const rule of rules) for (const key of KEYS) names.add(nameOf(prefix, key, rule))
  assert.is(names.size, prefixes.length * rules.length * KEYS.length)
})

test('a name has at most 250 bytes, and neither spaces nor control characters', () => {
  for (const prefix of ['p'.repeat(64), 'é'.repeat(64), 'a b'])
    for (const key of KEYS)
      for (const rule of ['default', 'r'.repeat(65), '{'.repeat(60)]) {
        const base = nameOf(prefix, key, rule)
        for (const name of [counterName(base, 366 * 86_400_000, Date.now()), blockName(base)])
          assert.match(name, /^[!-~]{1,250}$/)
      }
})

test('the counters of different windows, and the block, have different names', () => {
  const base = nameOf('p', 'k')
  const names = [
    counterName(base, 1_000, 12),
    counterName(base, 1_000, 13),
    counterName(base, 100, 12),
    blockName(base),
  ]
  assert.is(new Set(names).size, names.length)
})

test('random keys of tricky characters have different names', () => {
  const alphabet = ['{', '}', '%', '2', '5', 'h', ':', ' ', '\0', '\ud800', '\udc00', 'é', '\ufffd']
  const keyOf = new Map<string, string>()
  for (let i = 0; i < 20_000; i++) {
    const length = i % 10 === 0 ? randomInt(60, 70) : randomInt(1, 6)
    const key = Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
    const name = nameOf('api', key)
    assert.is(keyOf.get(name) ?? key, key)
    keyOf.set(name, key)
  }
})

test.run()
