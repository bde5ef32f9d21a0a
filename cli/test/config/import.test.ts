import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { gzipSync } from 'node:zlib'
import { KeyLines } from 'millrace-cli/dist/config/key-lines.js'
import { barLine } from 'millrace-cli/dist/config/progress-bar.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { fileOf, linesOf, many, onStores } from './stores.js'

const MINUTE = { limit: 5, window: '1m' }
const GOOD = linesOf(many(300))
const lines = (text: string): string[] => text.split('\n').slice(0, -1)

onStores('what export writes, import reads: all policies, or those of a prefix', async (on) => {
  const text = linesOf({
    ...many(300),
    'z:*': {
      rules: [
        { limit: 1, window: '1s', name: 'a' },
        { limit: 9, window: '1m', name: 'b' },
      ],
    },
    '键"\\,{': { limit: 5, window: 250, algorithm: 'token-bucket', burst: 9 },
  })
  const imported = await on('import', fileOf(text))
  assert.equal(imported, { code: 0, out: '302 policies imported\n', err: '' })
  assert.equal(await on('export'), { code: 0, out: text, err: '' })
  assert.is(
    (await on('export', '--prefix', 'user:00001')).out,
    lines(text)
      .slice(10, 20)
      .map((line) => `${line}\n`)
      .join(''),
  )
})

onStores('import takes the lines of list, the plain form, and objects over many lines', async (on) => {
  await on('import', fileOf('{ "user:241531": { "time_window_sec": 1, "capacity": 5 } }'))
  const listed = (await on('list', '--json')).out
  await on('import', fileOf(`${JSON.stringify({ a: MINUTE, b: MINUTE }, undefined, 2)}\n${listed}`))
  assert.is(
    (await on('export')).out,
    linesOf({ a: MINUTE, b: MINUTE, 'user:241531': { limit: 5, window: 1000 } }),
  )
})

onStores('import takes standard input and gzipped files', async (on, url) => {
  const { code, out } = await ran(['config', 'import', '-', '-s', url], [GOOD.slice(0, 100), GOOD.slice(100)])
  assert.equal([code, out], [0, '300 policies imported\n'])
  assert.is((await on('export')).out, GOOD)
  assert.is((await on('import', fileOf(gzipSync(GOOD)))).code, 0)
  assert.is((await ran(['config', 'import', '-', '-s', url], [gzipSync(GOOD)])).code, 0)
  assert.is((await on('export')).out, GOOD)
  const { code: failed, err } = await on('import', fileOf(gzipSync(GOOD).subarray(0, 100), 'cut.gz'))
  assert.is(failed, 2)
  assert.match(err, /cut.gz: damaged or truncated gzip data\n$/)
})

onStores('an import replaces the policies of its keys, and no others', async (on) => {
  await on('import', fileOf(linesOf({ a: MINUTE, b: MINUTE })))
  await on('import', fileOf(linesOf({ b: { limit: 9, window: '1h' } })))
  assert.is((await on('export')).out, linesOf({ a: MINUTE, b: { limit: 9, window: '1h' } }))
})

/** A file with errors in the middle, and what is right in it. */
const all = lines(GOOD)
const BAD = [
  ...all.slice(0, 150),
  '{"key":"x","policy":{"limit":-1,"window":"1m"}}',
  ...all.slice(150),
  all[7],
  '{"y"',
  '',
].join('\n')
const ERRORS = [
  /^:151: x: limit: expected an integer from 1 to .*, got -1$/,
  /^:303: expected JSON, got \{"y" \(.*\)$|^:303: expected the end of this object/,
  /^:302: expected each key once, got "user:000007", which is in line 8 already$/,
]

onStores('if a line is wrong import stores nothing, and names each by its number', async (on) => {
  await on('import', fileOf(linesOf({ 'user:000000': MINUTE })))
  const path = fileOf(BAD)
  const { code, out, err } = await on('import', path)
  assert.equal([code, out], [1, ''])
  const printed = lines(err)
  assert.is(printed.length, 4)
  for (const [i, error] of ERRORS.entries()) assert.match(printed[i]!.replace(path, ''), error)
  assert.is(printed[3], `millrace: 3 errors in ${path}: nothing was imported`)
  assert.is((await on('export')).out, linesOf({ 'user:000000': MINUTE }))
})

onStores('with --partial import stores what is right, of keys that are there twice the first', async (on) => {
  const path = fileOf(`${BAD}${linesOf({ 'user:000009': { limit: 99, window: '1m' } })}`)
  const { code, out, err } = await on('import', path, '--partial')
  assert.equal([code, out], [1, '300 policies imported\n'])
  assert.match(err, `millrace: 4 errors in ${path}: what is wrong was left out\n`)
  assert.is((await on('export')).out, GOOD)
})

test('an import without a right line makes no store', async () => {
  const path = fileOf('{"a":1}\n')
  const { code, err } = await ran(['config', 'import', path, '-s', `lmdb:${path}.limits`])
  assert.is(code, 1)
  assert.match(err, `1 error in ${path}: nothing was imported`)
  assert.equal(readdirSync(new URL('.', `file:${path}`)), ['policies.jsonl'])
})

test('of many errors only the first are printed, and validate prints all', async () => {
  const path = fileOf('{"a":1}\n'.repeat(1_200))
  const { err } = await ran(['config', 'import', path, '-s', `lmdb:${path}.limits`])
  assert.equal(lines(err).slice(49), [
    `${path}:50: a: document: expected a policy as an object, got 1`,
    'and 1,150 more',
    `millrace: 1,200 errors in ${path}: nothing was imported`,
  ])
  const { code, out } = await ran(['config', 'validate', path])
  assert.equal([code, lines(out).length], [1, 1_200])
})

test('validate checks a file as import does, and prints JSON on request', async () => {
  const path = fileOf(BAD)
  const { code, out, err } = await ran(['config', 'validate', path])
  assert.is(code, 1)
  for (const [i, error] of ERRORS.entries()) assert.match(lines(out)[i]!.replace(path, ''), error)
  assert.is(err, `millrace: 3 errors in ${path}, beside 300 policies\n`)
  const json = await ran(['config', 'validate', path, '--json'])
  assert.equal(
    lines(json.out).map((line) => JSON.parse(line).line),
    [151, 303, 302],
  )
  assert.equal(await ran(['config', 'validate', '-'], [GOOD]), {
    code: 0,
    out: 'all 300 are policies\n',
    err: '',
  })
})

test('a terminal gets a progress bar, and the text is whole without it', async () => {
  assert.is(barLine(0.5, 'checked 5', 41), `${'█'.repeat(12)}${'░'.repeat(12)} 50 %, checked 5`)
  assert.is(barLine(1, 'checked 5', 200), `${'█'.repeat(30)} 100 %, checked 5`)
  assert.is(barLine(0, 'checked 5', 20), '0 %, checked 5')
  for (let width = 1; width < 200; width++)
    for (const part of [0, 0.2, 1])
      assert.ok(barLine(part, '', width).length < Math.max(width, 8), String(width))
  const path = fileOf(linesOf(many(3_000)))
  const { code, out, err } = await ran(['config', 'import', path, '-s', `lmdb:${path}.limits`], [], 60)
  assert.equal([code, out], [0, '3,000 policies imported\n'])
  assert.match(err, /[█░]+ \d+ %, (?:checked [\d,]+|[\d,]+ of 3,000)/)
  assert.ok(err.endsWith('\u001b[2K'), 'the bar is gone')
})

test('keys that are there twice are found among more than fit in memory, and no file is left', () => {
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith('millrace-keys-'))
  const keys = new KeyLines()
  const keyAt = (i: number) => `${'键'.repeat(490)}${i}\u2028`
  for (let i = 0; i < 20_000; i++) keys.add(keyAt(i), i + 1, i)
  const spilt = readdirSync(tmpdir()).filter(
    (name) => name.startsWith('millrace-keys-') && !before.includes(name),
  )
  assert.ok(spilt.length > 0)
  for (const i of [3, 19_999, 3]) keys.add(keyAt(i), i + 1_000_000, i + 20_000)
  assert.equal(
    [...keys.duplicates()].sort((a, b) => a.firstLine - b.firstLine),
    [
      { key: keyAt(3), line: 1_000_003, firstLine: 4, place: 20_003 },
      { key: keyAt(3), line: 1_000_003, firstLine: 4, place: 20_003 },
      { key: keyAt(19_999), line: 1_019_999, firstLine: 20_000, place: 39_999 },
    ],
  )
  keys.close()
  for (const name of spilt) assert.not(readdirSync(tmpdir()).includes(name))
})

test.run()
