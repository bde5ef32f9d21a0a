// Files that are wrong are refused with their file and line.
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { engine } from '../engine.js'
import { inFolder } from '../folder.js'
import { withEnvoy } from './stage.js'

const LIMIT = 'rate_limit: { unit: day, requests_per_unit: 1 }'
const around = (limit: string) => `domain: a\ndescriptors:\n  - key: k\n    rate_limit: { ${limit} }\n`

/** Texts, and what is said of each after the name of the file. */
const WRONG: readonly (readonly [text: string, message: RegExp])[] = [
  ['', /^:1: expected an object with domain, descriptors, got nothing$/],
  ['[1]', /^:1: expected an object with domain, descriptors, got a list$/],
  ['descriptors: []', /^:1: expected the field domain, got none$/],
  ['domain: ""', /^:1: domain: expected a text that is not empty, got ""$/],
  ['domain: a\ndomains: b', /^:2: expected one of domain, descriptors, got the field "domains"$/],
  ['domain: a\n\ndomain: b', /^:3: Map keys must be unique$/],
  ['domain: a\ndescriptors: {}', /^:2: descriptors: expected a list, got an object$/],
  ['domain: a\ndescriptors:\n  - 7', /^:3: descriptors\[0\]: expected an object with key, .*, got 7$/],
  ['domain: a\ndescriptors:\n  - value: x', /^:3: descriptors\[0\]: expected the field key, got none$/],
  ['domain: a\ndescriptors:\n  - key: [x]', /^:3: descriptors\[0\]\.key: expected a text .*, got a list$/],
  [
    `domain: a\ndescriptors:\n  - { key: k, ${LIMIT} }\n  - { key: other, ${LIMIT} }\n  - { key: k }`,
    /^:5: descriptors\[2\]: expected a key and value that no other descriptor of the list has, got "k" again, which is at .*:3$/,
  ],
  [
    'domain: a\ndescriptors:\n  - key: k\n    shadow_mode: yes',
    /^:4: descriptors\[0\]\.shadow_mode: expected true or false, got "yes"$/,
  ],
  [
    'domain: a\ndescriptors:\n  - key: k\n    ratelimit: {}',
    /^:4: descriptors\[0\]: expected one of key, value, rate_limit, .*, got the field "ratelimit"$/,
  ],
  [
    'domain: a\ndescriptors:\n  - key: k\n    quota_mode: true',
    /^:4: descriptors\[0\]: expected no quota_mode, because there are no quota buckets, got the field "quota_mode"$/,
  ],
  [
    'domain: a\ndescriptors:\n  - { key: k, value: x, share_threshold: true }',
    /^:3: descriptors\[0\]\.share_threshold: expected a value with a \* beside share_threshold: true, got x$/,
  ],
  [
    around('unit: fortnight, requests_per_unit: 1'),
    /^:4: descriptors\[0\]\.rate_limit\.unit: expected one of second, minute, hour, day, month, year, week, got "fortnight"$/,
  ],
  [
    around('requests_per_unit: 1'),
    /^:4: descriptors\[0\]\.rate_limit: expected a unit \(second, .*\) or a window, got neither$/,
  ],
  [around('unit: day'), /^:4: descriptors\[0\]\.rate_limit: expected the field requests_per_unit, got none$/],
  [
    around('unit: day, requests_per_unit: "3"'),
    /requests_per_unit: expected a whole number from 0 to 4194302, got "3"$/,
  ],
  [
    around('unit: day, requests_per_unit: -1'),
    /requests_per_unit: expected a whole number from 0 to 4194302, got -1$/,
  ],
  [
    around('unit: day, requests_per_unit: 4194303'),
    /requests_per_unit: expected a whole number from 0 to 4194302/,
  ],
  [
    around('unit: day, requests_per_unit: 1, unit_multiplier: 0'),
    /unit_multiplier: expected a whole number from 1 to 4294967295, got 0$/,
  ],
  [
    around('unit: day, unlimited: true'),
    /unit: expected no unit and no window beside unlimited: true, got "day"$/,
  ],
  [around('unit: day, window: 1m, requests_per_unit: 1'), /unit: expected either unit or window, got "day"$/],
  [
    around('window: 1 minute, requests_per_unit: 1'),
    /window: expected a duration with its unit, .*, got "1 minute"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, shadow_mode: true'),
    /rate_limit: expected shadow_mode beside rate_limit, not in it, got the field "shadow_mode"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, replaces: [{ }]'),
    /replaces\[0\]: expected the name of a limit, got none$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, replaces: [x]'),
    /replaces\[0\]: expected an object with name, got "x"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, name: n, replaces: [{ name: n }]'),
    /replaces\[0\]\.name: expected the name of another limit, got "n"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, algorithm: sliding'),
    /algorithm: expected one of sliding-window, .*, got "sliding"$/,
  ],
  [around('unit: day, requests_per_unit: 1, granularity: 7m'), /rate_limit\.granularity: expected /],
  [
    around('unit: day, requests_per_unit: 1, align: calendar'),
    /rate_limit\.align: expected nothing beside algorithm: 'sliding-window'/,
  ],
  [
    around('unit: hour, requests_per_unit: 1, algorithm: fixed-window, align: calendar'),
    /unit: expected one of day, week, month, year beside align: calendar, got "hour"$/,
  ],
  [
    around('window: 1d, requests_per_unit: 1, algorithm: fixed-window, align: calendar'),
    /window: expected a unit beside align: calendar, got "1d"$/,
  ],
  [
    around('unit: day, unit_multiplier: 2, requests_per_unit: 1, algorithm: fixed-window, align: calendar'),
    /unit_multiplier: expected no unit_multiplier beside align: calendar, got 2$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, algorithm: fixed-window, align: first'),
    /align: expected calendar, or no align, got "first"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, time_zone: UTC'),
    /time_zone: expected no time_zone without align: calendar, got "UTC"$/,
  ],
  [
    around('unit: day, requests_per_unit: 1, algorithm: fixed-window, align: calendar, time_zone: Berlin'),
    /rate_limit\.timeZone: expected a time zone .*, got "Berlin"$/,
  ],
  ['domain: a\ndescriptors:\n  - key: {', /^:\d: /],
  ['domain: a\n---\ndomain: b', /^:2: /],
]

for (const [text, message] of WRONG)
  test(`refused: ${JSON.stringify(text)}`, () =>
    inFolder({ 'limits.yaml': text }, async (folder) => {
      const file = `${folder}/limits.yaml`
      const error = await engine({ envoyConfig: [file] }).catch((reason: Error) => reason)
      assert.instance(error, Error)
      const told = (error as Error).message
      assert.ok(told.startsWith(file), told)
      assert.match(told.slice(file.length), message)
      assert.not.match(told, /\n/)
    }))

test('a descriptor of two files is refused with both places', () =>
  inFolder(
    {
      'a.yaml': `domain: a\ndescriptors: [{ key: k, value: v }]`,
      'b.yaml': `domain: a\ndescriptors:\n  - { key: k, value: v }`,
    },
    async (folder) => {
      const error = await engine({ envoyConfig: [folder] }).catch((reason: Error) => reason)
      assert.match((error as Error).message, /b\.yaml:3: .* got "k_v" again, which is at .*a\.yaml:2$/)
    },
  ))

test('a directory without files, and a file that is not there, are refused by name', () =>
  inFolder({ 'notes.txt': '' }, async (folder) => {
    for (const [path, message] of [
      [folder, /expected a file whose name ends in \.yaml or \.yml, got none/],
      [`${folder}/none.yaml`, /none\.yaml: expected a file or a directory that can be read: ENOENT/],
    ] as const) {
      const error = await engine({ envoyConfig: [path] }).catch((reason: Error) => reason)
      assert.match((error as Error).message, message)
    }
  }))

test('options that contradict are refused by name', () =>
  inFolder({ 'a.yaml': 'domain: a' }, async (folder) => {
    const envoyConfig = [folder]
    for (const [options, message] of [
      [{ grpcPort: 0, limit: '1/1m' }, /^grpcPort: expected envoyConfig beside it$/],
      [{ envoyConfig, envoyHeaders: ['one'] }, /^envoyHeaders: expected three names/],
      [{ envoyConfig, envoyHeaders: ['a', 'b', 'c d'] }, /^envoyHeaders: expected three names/],
      [
        { envoyConfig, counts: 'memcached://127.0.0.1:1' },
        /^envoyDecide: expected each with counts in Memcached/,
      ],
      [
        { envoyConfig, counts: 'redis://127.0.0.1:1', onOutage: 'local', nodes: 2 },
        /^envoyDecide: expected each beside onOutage: local/,
      ],
      [{}, /^limit: expected a limit .* or envoyConfig, got none$/],
    ] as const) {
      const error = await engine(options as never).catch((reason: Error) => reason)
      assert.match((error as Error).message, message)
    }
  }))

test('texts, numbers and anchors are read as YAML has them, and an empty value is none', () =>
  withEnvoy(
    `
domain: test
descriptors:
  - key: code
    value: 0404
    rate_limit: &limit { unit: Minute, requests_per_unit: 1 }
  - key: "true"
    value: true
    rate_limit: *limit
  - key: empty
    value:
    rate_limit: { <<: *limit, requests_per_unit: 3 }
`,
    {},
    async ({ ask }) => {
      const limitOf = async (key: string, value: string) =>
        (await ask([key, value])).statuses[0]!.current_limit?.requests_per_unit
      assert.equal(await limitOf('code', '0404'), 1)
      assert.equal(await limitOf('code', '404'), undefined)
      assert.equal(await limitOf('true', 'true'), 1)
      assert.equal(await limitOf('empty', 'anything'), 3)
    },
  ))

test('aliases that multiply are refused, and deep lists too', () =>
  inFolder({}, async (folder) => {
    const lines = ['domain: a', 'descriptors:', '  - &a0 { key: k0 }']
    let deep = '{ key: k }'
    for (let i = 0; i < 70; i++) deep = `{ key: k, descriptors: [${deep}] }`
    for (let i = 1; i < 12; i++)
      lines.push(
        `  - &a${i}`,
        `    key: k${i}`,
        `    descriptors: [${Array(10)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
      )
    for (const [text, message] of [
      [lines.join('\n'), /again, which is at|expected at most 1000000 values/],
      [`domain: a\ndescriptors: [${deep}]`, /expected at most 64 levels of descriptors/],
    ] as const) {
      writeFileSync(`${folder}/a.yaml`, text)
      const error = await engine({ envoyConfig: [folder] }).catch((reason: Error) => reason)
      assert.match((error as Error).message, message)
    }
    assert.ok(readFileSync(`${folder}/a.yaml`).length < 10_000)
  }))

test.run()
