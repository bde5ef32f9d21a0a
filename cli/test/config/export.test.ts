import { join } from 'node:path'
import { Readable } from 'node:stream'
import { lmdbConfig } from 'millrace/config/lmdb'
import { countedBarLine } from 'millrace-cli/dist/config/progress-bar.js'
import { run } from 'millrace-cli/dist/program.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Recorded, ran } from '../streams.js'
import { fileOf, linesOf, many, newFolder } from './stores.js'

const CLEAR = '\u001b[2K'
/** More than a page. */
const TEXT = linesOf(many(12_000))
const store = `lmdb:${join(newFolder(), 'limits')}`

test.before(async () => {
  assert.is((await ran(['config', 'import', fileOf(TEXT), '-s', store])).code, 0)
})

/** Exports into a pipe. With `columns`, standard error is a terminal of this width. */
async function exported(args: string[], columns?: number) {
  const [stdout, stderr] = [new Recorded(), new Recorded(columns)]
  const code = await run(['config', 'export', ...args], { stdin: Readable.from([]), stdout, stderr })
  return { code, out: stdout.text, err: stderr.text }
}

test('a terminal shows a bar while the policies go into a pipe', async () => {
  const { code, out, err } = await exported(['-s', store], 60)
  assert.is(code, 0)
  assert.ok(out === TEXT, 'the policies are whole')
  assert.match(err, /^[^\n]*counting policies[^\n]*\u{2588}{25}\u{2591}{5} 83 %, 10,000 of 12,000/u)
  assert.not.match(err, '\n')
  assert.ok(err.endsWith(CLEAR), 'the bar is gone')
})

test('a narrow terminal shows the figures alone, and a narrower one as much of them as it has room for', async () => {
  const { err } = await exported(['-s', store], 26)
  assert.match(err, '83 %, 10,000 of 12,000')
  assert.not.match(err, /[\u2588\u2591]/)
  assert.match((await exported(['-s', store], 15)).err, `83 %, 10,000 \u2026${'\u001b'}`)
})

test('with a prefix the bar is of the policies with that prefix', async () => {
  const { err } = await exported(['-s', store, '--prefix', 'user:0000'], 60)
  assert.match(err, ' 100 %, 100 of 100')
})

test('pipes get the policies and nothing else, and so does a terminal', async () => {
  assert.equal(await exported(['-s', store, '--prefix', 'user:00001']), {
    ...{ code: 0, err: '' },
    out: TEXT.split('\n')
      .slice(10, 20)
      .map((line) => `${line}\n`)
      .join(''),
  })
  const { code, out, err } = await ran(['config', 'export', '-s', store], [], 60)
  assert.equal([code, err], [0, ''])
  assert.ok(out === TEXT, 'only the policies')
})

test('a store without policies has a bar without NaN', async () => {
  const path = join(newFolder(), 'limits')
  await lmdbConfig({ path }).close()
  const { code, out, err } = await exported(['-s', `lmdb:${path}`], 60)
  assert.equal([code, out], [0, ''])
  assert.match(err, ' 100 %, 0 of 0')
})

test('policies that are added meanwhile do not make more than 100 %', () => {
  assert.is(countedBarLine(7, 10, 17), '70 %, 7 of 10')
  assert.is(countedBarLine(10, 10, 17), '100 %, 10 of 10')
  assert.is(countedBarLine(1_001, 10, 24), '100 %, 1,001 of 1,001')
})

test.run()
