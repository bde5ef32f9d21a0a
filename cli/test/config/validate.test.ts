// `millrace config validate --store`: all that is wrong in a store is named, and the exit codes are those of the page.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { ran } from '../streams.js'
import { fileOf, newFolder } from './stores.js'

const calendar = { limit: 5, algorithm: 'fixed-window', align: 'calendar' }
const GOOD = { limit: 5, window: '1m' }
const MONTHLY = { ...calendar, period: 'month', timeZone: 'Asia/Tokyo' }
/** Documents that are no policies, and what their faults are about. */
const BAD: readonly (readonly [document: unknown, about: RegExp])[] = [
  [{ limit: -1, window: '1m' }, /: limit: expected/],
  [{ limit: 5 }, /: window: expected/],
  [{ limit: 5, window: 'soon' }, /: window: expected/],
  [7, /: document: expected/],
  [{ limit: 5, window: '1m', lmit: 6 }, /lmit/],
  [{ rules: [] }, /: rules: expected/],
  [{ ...calendar, period: 'month', timeZone: 'Asia/Tokio' }, /: timeZone: expected a time zone/],
  [{ ...calendar, period: 'hour' }, /: period: expected 'day' or/],
  [{ ...calendar, period: 'day', window: '1d' }, /: window: expected nothing beside/],
  [{ limit: 5, window: '1d', period: 'day' }, /: period: expected nothing/],
]
const validated = (path: string, ...options: string[]) =>
  ran(['config', 'validate', '--store', `file:${path}`, ...options])

const documents = fc.array(fc.option(fc.nat({ max: BAD.length - 1 }), { nil: undefined, freq: 2 }), {
  minLength: 1,
  maxLength: 8,
})
const asYaml = (policies: Record<string, unknown>) =>
  Object.entries(policies)
    .map(([key, policy]) => `"${key}": ${JSON.stringify(policy)}\n`)
    .join('')
const TEXTS = {
  json: (policies: Record<string, unknown>) => JSON.stringify(policies, undefined, 1),
  yaml: asYaml,
}

for (const [ending, textOf] of Object.entries(TEXTS)) {
  test(`each document of a ${ending} file that is no policy is named, with its place, and no other`, () =>
    fc.assert(
      fc.asyncProperty(documents, async (faults) => {
        const entries = faults.map((bad, i) => [
          `key:${i}`,
          bad === undefined ? [GOOD, MONTHLY][i % 2] : BAD[bad]![0],
        ])
        const path = fileOf(textOf(Object.fromEntries(entries)), `policies.${ending}`)
        const { code, out, err } = await validated(path)
        const lines = out.split('\n').slice(0, -1)
        const wrong = faults.flatMap((bad, i) =>
          bad === undefined ? [] : [[`key:${i}`, BAD[bad]![1]] as const],
        )
        if (wrong.length === 0) {
          assert.equal([code, lines, err], [0, [`all ${faults.length} documents are policies`], ''])
          return
        }
        assert.is(code, 1)
        assert.is(err, `millrace: ${wrong.length} of ${faults.length} documents are no policies\n`)
        assert.is(lines.length, wrong.length)
        for (const [i, [key, about]] of wrong.entries()) {
          assert.ok(lines[i]!.startsWith(`${path}:`), lines[i])
          assert.match(lines[i]!.slice(path.length), new RegExp(`^:\\d+:\\d+: ${key}: `))
          assert.match(lines[i]!, about)
        }
        const json = await validated(path, '--json')
        assert.equal(
          json.out
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line).key),
          wrong.map(([key]) => key),
        )
      }),
      { numRuns: 10 },
    ))
}

const bad = JSON.stringify({ a: { limit: -1, window: '1m' } })
const place = () => newFolder()

/** What is validated, the exit code, and what the command says. */
const CASES: Record<string, readonly [url: () => string, code: number, said: RegExp]> = {
  'policies only': [
    () => `file:${fileOf(JSON.stringify({ a: GOOD }), 'a.json')}`,
    0,
    /^all 1 documents are policies/,
  ],
  'an empty file of policies': [() => `file:${fileOf('{}', 'a.json')}`, 0, /^all 0 documents/],
  'a wrong document': [
    () => `file:${fileOf(bad, 'a.json')}`,
    1,
    /a\.json:1:7: a: limit: .*1 of 1 documents/s,
  ],
  'a file that is no JSON': [
    () => `file:${fileOf('{"a": ', 'a.json')}`,
    1,
    /JSON: .*has no policies that can be read/s,
  ],
  'a key twice': [
    () => `file:${fileOf('a: {}\na: {}\n', 'a.yaml')}`,
    1,
    /2:1: YAML: expected each name only once/,
  ],
  'a file that is no text': [() => `file:${fileOf(Buffer.from([0xff, 0xfe]), 'a.json')}`, 1, /in UTF-8/],
  'a server that does not answer': [() => 'redis://127.0.0.1:1', 1, /ECONNREFUSED/],
  'a file that does not exist': [() => `file:${join(place(), 'a.json')}`, 2, /a store that exists/],
  'a folder in place of a file': [
    () => `file:${folderAt('a.json')}`,
    2,
    /readable file in UTF-8, got "EISDIR"/,
  ],
  'a file with another ending': [() => `file:${fileOf('{}', 'a.toml')}`, 2, /ends in .json, .yaml or .yml/],
  'a folder without a database': [() => `lmdb:${folderAt('limits')}`, 2, /a store that exists/],
  'a file that is no database': [() => `lmdb:${fileOf('{}', 'a.mdb')}`, 1, /an LMDB database/],
  'no URL of a store': [() => 'nonsense', 2, /^millrace: --store: expected lmdb:PATH/],
}

function folderAt(name: string): string {
  const path = join(place(), name)
  mkdirSync(path)
  return path
}

for (const [what, [url, expected, said]] of Object.entries(CASES)) {
  test(`validate of ${what} exits with ${expected}`, async () => {
    const { code, out, err } = await ran(['config', 'validate', '--store', url()])
    assert.is(code, expected, `${out}${err}`)
    assert.match(`${out}${err}`, said)
  })
}

test('validate does not wait for a file to change, and reads it each time', async () => {
  const path = fileOf(bad, 'a.json')
  assert.is((await validated(path)).code, 1)
  writeFileSync(path, '{}')
  assert.is((await validated(path)).code, 0)
  rmSync(path)
  assert.is((await validated(path)).code, 2)
})

test.run()
