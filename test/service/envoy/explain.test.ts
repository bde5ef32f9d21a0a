// `millrace config check`: which rule a request meets, and why.
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { MAIN } from '../command-line.js'
import { inFolder } from '../folder.js'

const FILE = `domain: test
descriptors:
  - key: user
    rate_limit: { name: user, unit: minute, unit_multiplier: 5, requests_per_unit: 2 }
    shadow_mode: true
    detailed_metric: true
  - key: path
    value: /a*
    share_threshold: true
    descriptors:
      - { key: method, value: GET, rate_limit: { window: 90s, granularity: 45s, requests_per_unit: 7, replaces: [{ name: user }] } }
      - { key: method }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: plan, rate_limit: { unit: month, requests_per_unit: 9, algorithm: fixed-window, align: calendar, time_zone: Asia/Tokyo } }
`
const check = (folder: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [MAIN, 'config', 'check', 'a.yaml', ...args],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  )
  return { status, lines: stdout.split('\n').slice(0, -1), stderr }
}

const CASES: readonly (readonly [descriptor: string, ...lines: string[]])[] = [
  [
    'user=al\\,ice',
    'test: user=al,ice',
    '  user=al,ice: the descriptor of any value, a.yaml:3',
    '  rule: user, a.yaml:4',
    '  limit: 2 in any 5m, by sliding-window',
    '  shadow_mode: it admits in any case',
    '  counts by: ["test","user","al,ice"]',
    '  metrics show: user=al,ice',
  ],
  [
    'plan=gold',
    'test: plan=gold',
    '  plan=gold: the descriptor of any value, a.yaml:14',
    '  rule: plan, a.yaml:14',
    '  limit: 9 in each month of Asia/Tokyo, by fixed-window',
    '  counts by: ["test","plan","gold"]',
  ],
  [
    'path=/ab,method=GET',
    'test: path=/ab, method=GET',
    '  path=/ab: the descriptor of the values /a*, a.yaml:7',
    '  method=GET: the descriptor of this value, a.yaml:11',
    '  rule: path_/a*.method_GET, a.yaml:11',
    '  limit: 7 in any 90s, by sliding-window, in buckets of 45s',
    '  counts by: ["test","path","/a*","method","GET"]',
  ],
  [
    'path=/ab,method=PUT',
    'test: path=/ab, method=PUT',
    '  path=/ab: the descriptor of the values /a*, a.yaml:7',
    '  method=PUT: the descriptor of any value, a.yaml:12',
    '  no limit: the descriptor has no rate_limit',
  ],
  [
    'path=/ab',
    'test: path=/ab',
    '  path=/ab: the descriptor of the values /a*, a.yaml:7',
    '  no limit: limits are on the levels below it',
  ],
  [
    'user=a,more=b',
    'test: user=a, more=b',
    '  user=a: the descriptor of any value, a.yaml:3',
    '  more=b: no descriptor of this key and value',
    '  no limit: the request has more entries than the file has levels',
  ],
  [
    'path=/b',
    'test: path=/b',
    '  path=/b: no descriptor of this key and value',
    '  no limit: the list has no descriptor for an entry',
  ],
  [
    'free=x',
    'test: free=x',
    '  free=x: the descriptor of any value, a.yaml:13',
    '  rule: free, a.yaml:13',
    '  limit: unlimited',
  ],
]

test('each descriptor is followed to its rule, or to why it has none', () =>
  inFolder({ 'a.yaml': FILE }, async (folder) => {
    const args = CASES.flatMap(([descriptor]) => ['--descriptor', descriptor])
    const alone = CASES.filter(([descriptor]) => !descriptor.includes('GET')).flatMap(([each]) => [
      '--descriptor',
      each,
    ])
    assert.equal(check(folder, ...alone), {
      status: 0,
      lines: CASES.filter(([descriptor]) => !descriptor.includes('GET')).flatMap(([, ...lines]) => lines),
      stderr: '',
    })
    const { lines } = check(folder, ...args)
    assert.ok(
      lines.includes('  replaced by: path_/a*.method_GET, a.yaml:11: it is not charged'),
      lines.join('\n'),
    )
    assert.equal(check(folder, '--descriptor', CASES[1]![0]).lines, CASES[1]!.slice(1))
  }))

test('what is wrong ends with 2, in one line', () =>
  inFolder({ 'a.yaml': FILE, 'b.yaml': 'domain: other', 'c.yaml': 'domain: [x]' }, async (folder) => {
    for (const [args, message] of [
      [[], /required option '--descriptor <key=value,\.\.\.>' not specified/],
      [['--descriptor', 'user'], /^millrace: --descriptor: expected key=value,key=value, got "user"\n$/],
      [
        ['--descriptor', 'user=a', '--domain', 'no'],
        /^millrace: domain: expected one of the files: test; got "no"\n$/,
      ],
      [
        ['b.yaml', '--descriptor', 'user=a'],
        /^millrace: domain: expected one of the files: test, other; got none\n$/,
      ],
      [
        ['c.yaml', '--descriptor', 'user=a'],
        /^millrace: c\.yaml:1: domain: expected a text .*, got a list\n$/,
      ],
      [['none.yaml', '--descriptor', 'user=a'], /^millrace: none\.yaml: expected a file or a directory/],
    ] as const) {
      const { status, stderr } = check(folder, ...args)
      assert.is(status, 2, stderr)
      assert.match(stderr, message)
    }
    assert.is(check(folder, 'b.yaml', '--domain', 'test', '--descriptor', 'user=a').status, 0)
  }))

test.run()
