import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { started, until } from './command.js'
import { fileOf, linesOf, many, newFolder } from './stores.js'

const text = linesOf(many(5_000)) // more than a pipe holds

test('a closed pipe ends export without an error', async () => {
  const store = ['-s', `lmdb:${join(newFolder(), 'limits')}`]
  assert.is((await ran(['config', 'import', fileOf(text), ...store])).code, 0)
  const { child, ended } = started(['export', ...store])
  child.stdout!.once('data', () => child.stdout!.destroy())
  const { code, err } = await ended
  assert.equal([code, err], [0, ''])
})

test('Ctrl-C while standard input is read stores nothing, and leaves no file behind', async () => {
  const [temporary, store] = [newFolder(), join(newFolder(), 'limits')]
  const { child, ended } = started(['import', '-', '-s', `lmdb:${store}`], { TMPDIR: temporary })
  child.stdin!.write(text)
  await until(() => readdirSync(temporary).length > 0)
  child.kill('SIGINT')
  assert.equal(await ended, { code: 130, out: '', err: 'millrace: stopped: nothing was imported\n' })
  assert.equal(readdirSync(temporary), [])
  assert.not(existsSync(store))
})

test.run()
