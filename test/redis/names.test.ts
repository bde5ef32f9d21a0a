// run: once
// Names of keys on Redis: two different keys never share one, nor do two prefixes or rules.

import { randomInt } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { KeyNames } from '#millrace/remote/key-names.js'

const nameOf = (prefix: string, key: string, rule = 'default') => new KeyNames(prefix, [rule]).of(key)[0]!

const LONG = 'x'.repeat(64)
const KEYS = [
  ...[
    'a',
    'A',
    ' a',
    'a ',
    'a:b',
    '{a}',
    '{',
    '}',
    '}{',
    '}:default',
    '{}',
    '%',
    '%7B',
    '%7D',
    '%25',
    '%257B',
  ],
  ...['\0', 'a\0', 'a\0b', '\n', '\r\n', '*', '?', '[a]', '\\', 'é', 'e\u0301', '😀', '\ufffd', '%h', '%h%h'],
  ...['\ud800', '\udfff', '\udc00\ud800', 'a\ud800', '\ud801'], // lone surrogates
  ...[
    LONG,
    `${LONG}a`,
    `${LONG}b`,
    `${LONG}\ud800`,
    `${LONG}\ud801`,
    `${LONG}\ufffd`,
    '{'.repeat(64),
    '%7B'.repeat(64),
  ],
  ...['k'.repeat(65_536), 'k'.repeat(65_535)],
]

test('different keys have different names', () => {
  assert.is(new Set(KEYS.map((key) => nameOf('api', key))).size, new Set(KEYS).size)
})

test('a key that looks like the name of a long one is not that one', () => {
  for (const long of [`${LONG}a`, '\ud800', '{'.repeat(65)]) {
    const part = /\{(.*)\}/.exec(nameOf('api', long))![1]!
    assert.ok(part.startsWith('%h'))
    assert.is.not(nameOf('api', part), nameOf('api', long))
  }
})

test('a name is one hash tag, well-formed text and at most 350 characters long', () => {
  for (const key of KEYS) {
    const name = nameOf('p'.repeat(64), key, 'r'.repeat(65))
    assert.ok(name.isWellFormed())
    assert.ok(name.length <= 350, `${name.length}`)
    // What a Cluster hashes: from the first { to the next }.
    const tag = name.slice(name.indexOf('{') + 1, name.indexOf('}', name.indexOf('{')))
    assert.ok(tag.length > 0)
    assert.is(name, `mr:1:${'p'.repeat(64)}:{${tag}}:${name.slice(name.lastIndexOf(':') + 1)}`)
  }
})

test('neither a prefix nor a rule takes the place of a part of a key', () => {
  const parts = ['a', 'a:', ':a', 'a:b', ':', '%', 'b']
  const names = new Set<string>()
  for (const prefix of parts) {
    for (const key of [...parts, '}:a', 'a}:a', '{a', 'a:{a}']) {
      for (const rule of [...parts, '}:a', '{a}:a']) names.add(nameOf(prefix, key, rule))
    }
  }
  assert.is(names.size, parts.length * (parts.length + 4) * (parts.length + 2))
})

test('random keys of tricky characters have different names', () => {
  const alphabet = ['{', '}', '%', '2', '5', '7', 'B', 'D', 'h', ':', '\0', '\ud800', '\udc00', '\ufffd']
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
