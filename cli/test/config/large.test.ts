// run: full, also-long
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lmdbConfig } from 'millrace/config/lmdb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { started, until } from './command.js'
import { fileOf, linesOf, many, newFolder, onStores } from './stores.js'

const LINES = process.env.MILLRACE_TESTS === 'long' ? 100_000 : 20_000
const WRONG = 0.7 * LINES
const inCommas = (count: number) => count.toLocaleString('en-US')
const SHOWN = inCommas(LINES)

onStores(`${SHOWN} lines are imported, exported and validated`, async (on) => {
  const text = linesOf(many(LINES))
  assert.equal(await on('import', fileOf(text)), { code: 0, out: `${SHOWN} policies imported\n`, err: '' })
  assert.is((await on('export')).out, text)
  assert.equal(await on('validate'), { code: 0, out: `all ${SHOWN} documents are policies\n`, err: '' })
})

onStores(`one wrong line among ${SHOWN} keeps all of them out`, async (on) => {
  const lines = linesOf(many(LINES)).split('\n')
  lines[WRONG] = '{"key":"a","policy":{"limit":5}}'
  const path = fileOf(lines.join('\n'))
  const { code, err } = await on('import', path)
  assert.is(code, 1)
  assert.match(err, `${path}:${WRONG + 1}: a: window: expected`)
  assert.is((await on('import', path, '--partial')).out, `${inCommas(LINES - 1)} policies imported\n`)
})

test('a closed pipe ends list and validate without an error', async () => {
  const store = ['-s', `lmdb:${join(newFolder(), 'limits')}`]
  await ran(['config', 'import', fileOf(linesOf(many(10_000))), ...store])
  for (const args of [
    ['list', '--json', '-n', '10000', ...store],
    ['validate', fileOf('{"a":1}\n'.repeat(20_000))],
  ]) {
    const { child, ended } = started(args)
    child.stdout!.once('data', () => child.stdout!.destroy())
    const { code, err } = await ended
    assert.equal([code, err], [0, ''], args[0])
  }
})

test('a slow reader gets every line of export', async () => {
  const text = linesOf(many(20_000))
  const store = ['-s', `lmdb:${join(newFolder(), 'limits')}`]
  await ran(['config', 'import', fileOf(text), ...store])
  const { child, out, ended } = started(['export', ...store])
  child.stdout!.pause()
  await until(() => child.stdout!.readableLength > 0)
  child.stdout!.resume()
  assert.equal(await ended, { code: 0, out: text, err: '' })
  assert.is(out(), text)
})

test('Ctrl-C during an import leaves the store whole, with as many policies as it tells', async () => {
  const [path, store] = [fileOf(linesOf(many(300_000))), join(newFolder(), 'limits')]
  const { child, ended } = started(['import', path, '-s', `lmdb:${store}`])
  await until(() => existsSync(store))
  const reader = lmdbConfig({ path: store })
  await until(async () => (await reader.list({ limit: 1 })).length > 0)
  child.kill('SIGINT')
  const { code, out, err } = await ended
  await reader.close()
  assert.equal([code, out], [130, ''])
  const [, written] = /^millrace: stopped: ([\d,]+) of 300,000 policies were imported\n$/.exec(err)!
  assert.equal(await ran(['config', 'validate', '-s', `lmdb:${store}`]), {
    ...{ code: 0, err: '' },
    out: `all ${written} documents are policies\n`,
  })
})

test.run()
