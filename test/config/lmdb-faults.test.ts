// Files that are no LMDB store, disks that are full, and files that are taken away.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'lmdb'
import { MillraceError } from 'millrace'
import { type ConfigChange, type LmdbConfigOptions, lmdbConfig, type Policy } from 'millrace/config/lmdb'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'

const CHILD = fileURLToPath(new URL('./lmdb-child.js', import.meta.url))
const MINUTE: Policy = { limit: 100, window: '1m' }
const NOBODY = 65_534

const test = suite<{ folder: string; path: string }>()
test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  context.path = join(context.folder, 'limits')
})
test.after.each(({ folder }) => rmSync(folder, { recursive: true }))

function refuses(act: () => unknown, code: string, text: RegExp): void {
  assert.throws(act, (error: unknown) => {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, code)
    assert.match((error as MillraceError).message, text)
    return true
  })
}

const refusesToOpen = (path: string, text: RegExp) =>
  refuses(() => lmdbConfig({ path }), 'ERR_MILLRACE_CONFIG_STORE', text)

test('options are checked by name', () => {
  const refusesOptions = (options: unknown, text: RegExp) =>
    refuses(() => lmdbConfig(options as LmdbConfigOptions), 'ERR_MILLRACE_INVALID_OPTION', text)
  refusesOptions(undefined, /options: expected \{ path \}/)
  refusesOptions({}, /path: expected the path of a folder/)
  refusesOptions({ path: '' }, /path/)
  refusesOptions({ path: 'a\0b' }, /path/)
  refusesOptions(
    { path: 'x', mapsize: 1 },
    /only path, mapSize, pollMs \(did you mean mapSize\?\), got "mapsize"/,
  )
  for (const mapSize of [0, 1.5, Number.NaN, '1gb']) refusesOptions({ path: 'x', mapSize }, /mapSize/)
  for (const pollMs of [0, -1, Number.NaN, 60_001, '50']) refusesOptions({ path: 'x', pollMs }, /pollMs/)
})

test('what is no LMDB database is refused, and may be replaced', async ({ folder, path }) => {
  const file = join(folder, 'limits.mdb')
  writeFileSync(file, 'garbage '.repeat(2_000))
  refusesToOpen(file, /path: expected an LMDB database of data format 2.*, got ".*limits\.mdb"/)
  writeFileSync(file, 'too short')
  refusesToOpen(file, /an LMDB database of data format 2/)
  mkdirSync(path)
  writeFileSync(join(path, 'data.mdb'), '{ "user:*": {} }'.repeat(1_000))
  refusesToOpen(path, /an LMDB database of data format 2/)
  rmSync(file)
  const store = lmdbConfig({ path: file })
  await store.put('a', MINUTE)
  await store.close()
  const whole = readFileSync(file)
  writeFileSync(file, whole.subarray(0, 5_000))
  refusesToOpen(file, /an LMDB database of 8192 bytes or more/)
  whole[28] = 1
  writeFileSync(file, whole)
  refusesToOpen(file, /an LMDB database of data format 2/)
})

test('an LMDB database with an entry in the place of policies is refused', async ({ path }) => {
  const root = open({ path, overlappingSync: false, keyEncoding: 'binary' })
  await root.put(Buffer.from('policies\0'), 'of another program')
  await root.close()
  refusesToOpen(path, /an LMDB database of policies \(MDB_INCOMPATIBLE/)
})

test('a path in no folder, or in a file, is refused', ({ folder }) => {
  refusesToOpen(join(folder, 'none', 'limits'), /a path in a folder that exists: .*none/)
  writeFileSync(join(folder, 'file'), '')
  refusesToOpen(join(folder, 'file', 'limits'), /a path in a folder/)
})

test('a path without permission is refused', ({ folder, path }) => {
  chmodSync(folder, 0o555)
  const isRoot = process.getuid!() === 0
  if (isRoot) process.seteuid!(NOBODY)
  try {
    refusesToOpen(path, /a path that this process may read and write/)
  } finally {
    if (isRoot) process.seteuid!(0)
    chmodSync(folder, 0o755)
  }
})

test('a file that is taken away, or replaced: no write is acknowledged, and watch tells it', async ({
  path,
}) => {
  const store = lmdbConfig({ path, pollMs: 5 })
  await store.put('a', MINUTE)
  const seen: ConfigChange[] = []
  store.watch((change) => void seen.push(change))
  const refusesToPut = async (text: RegExp) => {
    const error = await store.put('a', MINUTE).catch((error) => error)
    assert.is(error.code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.match(error.message, text)
  }
  const away = `${path}-away`
  renameSync(path, away)
  await poll(() => seen.length > 0, 'the error')
  assert.match(seen[0]!.error!.message, /got "a file that was removed"/)
  await refusesToPut(/close the store, and open it again/)
  const other = lmdbConfig({ path })
  await refusesToPut(/got "another file"/)
  await other.close()
  rmSync(path, { recursive: true })
  renameSync(away, path)
  await poll(() => seen.length > 1, 'that it is back')
  assert.equal(seen.slice(1), [{}])
  assert.equal((await store.get('a'))?.policy, MINUTE)
  await store.put('a', MINUTE)
  await store.close()
})

test('a full disk: each write is refused by name, and what was acknowledged is there', async ({ path }) => {
  // A process may not make the file larger than 2 MiB: 4,096 blocks of 512 bytes.
  const script = `trap '' XFSZ; ulimit -f 4096; exec "$0" "$@"`
  const output = execFileSync('sh', ['-c', script, process.execPath, CHILD, 'fill', path], { stdio: 'pipe' })
  const { acknowledged, told, read, message } = JSON.parse(String(output))
  assert.ok(acknowledged > 0 && read)
  assert.equal(told, Array(3).fill('ERR_MILLRACE_CONFIG_STORE'))
  assert.match(message, /lmdb: expected a configuration store that answers/)
  assert.not.match(message, /Commit failed/)
  const store = lmdbConfig({ path })
  const keys = new Set((await store.list({ limit: 10_000 })).map(({ key }) => key))
  for (let i = 0; i < acknowledged; i++) assert.ok(keys.has(`key:${i}`), `key:${i}`)
  await store.put('after', MINUTE)
  await store.close()
})

test.run()
