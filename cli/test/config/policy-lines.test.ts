// run: also-long

import { type Entry, PolicyReader } from 'millrace-cli/dist/config/policy-lines.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

/** The entries of a text that comes in parts. */
function entriesOf(text: string, ends: number[] = []): Entry[] {
  const reader = new PolicyReader()
  const cuts = [0, ...ends.map((end) => end % (text.length + 1)).sort((a, b) => a - b), text.length]
  const parts = cuts.slice(1).map((end, i) => text.slice(cuts[i], end))
  return [...parts.flatMap((part) => reader.read(part)), ...reader.end()]
}

/** Each entry as `line key limit` or `line error`. */
const summary = (text: string, ends?: number[]): string[] =>
  entriesOf(text, ends).map((entry) =>
    entry.error === undefined
      ? `${entry.line} ${entry.key} ${JSON.stringify(entry.policy)}`
      : `${entry.line} ${entry.error}`,
  )

const MINUTE = '{"limit":5,"window":"1m"}'

test('a line is one policy, or several by their keys, in the present form or the plain one', () => {
  const text = [
    `{"key":"user:1","policy":${MINUTE}}`,
    '',
    '{ "user:241531": { "time_window_sec": 1, "capacity": 5 } }',
    `  {"policy":{"rules":[{"name":"a","limit":1,"window":"1s"}]},"key":"user:*","version":17}\r`,
    `{"a":${MINUTE}, "b" : ${MINUTE}}`,
    `{"key":${MINUTE}}`,
    '{}',
  ].join('\n')
  assert.equal(summary(`\ufeff${text}`), [
    `1 user:1 ${MINUTE}`,
    '3 user:241531 {"limit":5,"window":1000}',
    '4 user:* {"rules":[{"limit":1,"window":"1s","name":"a"}]}',
    `5 a ${MINUTE}`,
    `5 b ${MINUTE}`,
    `6 key ${MINUTE}`,
  ])
})

test('an object of many keys may go over many lines, and lines may follow', () => {
  const text = `{
  "user:1": ${MINUTE},
  "user:2":
  {
    "time_window_sec": 1,
    "capacity": 5
  },
  "odd \\" , } key": { "rules": [
    { "name": "a", "limit": 1, "window": "1s" },
    { "name": "b", "limit": 9, "window": "1m" }
  ] }
}
{"user:3":${MINUTE}}
`
  assert.equal(summary(text), [
    `2 user:1 ${MINUTE}`,
    '3 user:2 {"limit":5,"window":1000}',
    '8 odd " , } key {"rules":[{"limit":1,"window":"1s","name":"a"},{"limit":9,"window":"1m","name":"b"}]}',
    `13 user:3 ${MINUTE}`,
  ])
})

test('an object of one line may be longer than any line', () => {
  const keys = Array.from({ length: 30_000 }, (_, i) => `user:${i}`)
  const text = `{${keys.map((key) => `"${key}":${MINUTE}`).join(',')}}\n{"last":${MINUTE}}`
  assert.ok(text.length > 1 << 20)
  const entries = entriesOf(text, [1_000_000, 1_100_000])
  assert.equal(
    entries.map((entry) => entry.error ?? entry.key),
    [...keys, 'last'],
  )
  assert.is(entries.at(-1)!.line, 2)
})

test('each wrong line is an error with its number, and the lines after it are read', () => {
  const good = `{"good":${MINUTE}}`
  const mistakes: [string, RegExp][] = [
    ['{"key":"a","policy":{"limit":-1,"window":"1m"}}', /^a: limit: expected an integer .*, got -1$/],
    [
      '{"a":{"limit":5,"window":"1 minute"}}',
      /^a: window: expected milliseconds above 0 as a number, or one of '250ms'/,
    ],
    ['{"a":{"capacity":5}}', /^a: time_window_sec: expected a number of seconds above 0, got undefined/],
    ['{"key":"","policy":{"limit":1,"window":"1m"}}', /^key: expected a string of 1 to 512 characters/],
    ['{"key":"a"}', /^a: document: expected a policy as an object, got undefined/],
    [`{"key":"a","policy":${MINUTE},"limit":3}`, /^expected only key, policy, version, got "limit"/],
    ['{"key":"a","policy":{"limit":1', /^expected JSON, got \{"key":"a"/],
    ['{"a":{"limit":1', /^expected the end of this object, got "a":\{"limit":1$/],
    [`{"a":${MINUTE}`, /^expected the end of this object/],
    [`{"a:${MINUTE}}`, /^expected JSON, got \{"a:/],
    [`{"a":${MINUTE},}`, /^expected JSON/],
    [`{"a":${MINUTE}} {"b":${MINUTE}}`, /^expected JSON/],
    ['{"a":7}', /^a: document: expected a policy as an object, got 7/],
    ['"a"', /^expected \{"key": "user:1", .*, got "a"$/],
    ['[1]', /^expected \{"key": "user:1"/],
    ['user:1 100 1m', /^expected JSON, got user:1 100 1m/],
    ['\u001b[2J', /^expected JSON, got \\u001b\[2J/],
    ['}', /^expected JSON/],
    ['x'.repeat(3 << 20), /^expected \{"key".*…$/],
    [`{"${'x'.repeat(3 << 20)}":1}`, /^expected .*a member of more than 1048576 characters$/],
  ]
  for (const [line, message] of mistakes) {
    const found = entriesOf(`${good}\n${line}\n${good}\n`)
    assert.equal(
      found.map((entry) => [entry.line, entry.error === undefined]),
      [
        [1, true],
        [2, false],
        [3, true],
      ],
      line.slice(0, 80),
    )
    assert.match(found[1]!.error!, message)
    assert.not.match(found[1]!.error!, '\u001b')
  }
})

test('a wrong member of an object over many lines is an error with its line', () => {
  const text = `{
  "a": ${MINUTE},
  "b": { "limit": -1, "window": "1m" },
  "c": { "limit": 5 "window": "1m" },
  "d: ${MINUTE},
  "e": ${MINUTE},
}`
  const lines = summary(text)
  assert.is(lines[0], `2 a ${MINUTE}`)
  assert.match(lines[1]!, /^3 b: limit: expected/)
  assert.match(lines[2]!, /^4 expected JSON, got "c": \{ "limit": 5 "window"/)
  assert.match(lines[3]!, /^5 expected JSON, got "d: /)
  assert.match(lines.at(-1)!, /^7 expected a key and its policy, got nothing/)
  assert.match(summary('{\n"a": {\n')[0]!, /^2 expected the end of this object, got "a": \{$/)
})

test('how the text is cut into parts makes no difference', () => {
  const key = fc.oneof(
    fc.string({ minLength: 1, maxLength: 8 }),
    fc.constantFrom('键:1', '"{},:[]\\', '\n', '__proto__'),
  )
  const policy = fc.record({ limit: fc.integer({ min: 1, max: 9 }), window: fc.constantFrom('1s', '1m') })
  const space = fc.constantFrom(undefined, 2, '\t')
  const object = fc
    .tuple(fc.dictionary(key, policy, { minKeys: 1, maxKeys: 4 }), space)
    .map(([policies, indent]) => JSON.stringify(policies, undefined, indent))
  const one = fc.tuple(key, policy).map(([key, policy]) => JSON.stringify({ key, policy }))
  const texts = fc.array(fc.oneof(object, one), { maxLength: 6 }).map((all) => all.join('\n'))
  fc.assert(
    fc.property(texts, fc.array(fc.nat(), { maxLength: 9 }), (text, ends) => {
      const whole = summary(text)
      assert.equal(summary(text, ends), whole)
      assert.equal(summary(text.replaceAll('\n', '\r\n'), ends), whole)
      for (const entry of entriesOf(text))
        if (entry.error !== undefined) assert.match(entry.error, 'key: expected a')
    }),
  )
})

test.run()
