// A file of policies: the contract of every store, and how its text changes.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MillraceError } from 'millrace'
import { fileConfig } from 'millrace/config/file'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testStore } from '../conformance/config-stores.js'
import { root } from '../package/root.js'
import { filePlace, withFile } from './file-place.js'

for (const name of ['limits.json', 'limits.yaml'])
  testStore(
    (claim, act) => test(`${name}: ${claim}`, act),
    async () => filePlace(name),
  )

const SLOW = { limit: 1, window: '1m' } as const

test('the plain form and rules, from the beginning', async () => {
  const text =
    '{ "user:*": { "limit": 5, "window": "1s" }, "user:1": { "time_window_sec": 1, "capacity": 5 } }'
  await withFile(text, async (store) => {
    const policy = { limit: 5, window: 1000 }
    assert.equal(store.findNow(['user:1', 'user:*']), { key: 'user:1', policy, version: 0 })
    assert.is(store.findNow(['user:2', 'user:*'])?.key, 'user:*')
  })
})

test('JSON keeps its order and its lines, also with keys like numbers', async () => {
  const text = `{
  "z": {"limit": 1,
        "window": "1s"},
  "42": { "limit": 2, "window": "1s" },

  "7": { "limit": 3, "window": "1s" }
}
`
  await withFile(text, async (store, { text: now }) => {
    const { version } = await store.put('42', SLOW)
    const line = `"42": { "format": 1, "version": ${version}, "limit": 1, "window": "1m" }`
    assert.is(now(), text.replace(/"42".*\}/, line))
    await store.delete('7')
    await store.delete('z')
    assert.is(now(), `{\n  ${line}\n}\n`)
    const { version: next } = await store.put('a"', SLOW)
    const added = `"a\\"": { "format": 1, "version": ${next}, "limit": 1, "window": "1m" }`
    assert.is(now(), `{\n  ${line},\n  ${added}\n}\n`)
    await store.delete('42')
    await store.delete('a"')
    assert.is(now(), '{}\n')
  })
})

test('YAML keeps comments; what others have by an alias stays', async () => {
  const text = `# plans
pro: &pro # the best
  limit: 5 # a second
  window: 1s
user:1: *pro
0x10: { limit: 3, window: 1s }
# free of charge
free: { limit: 1, window: 1s } # few
`
  await withFile(
    text,
    async (store, { text: now, open }) => {
      assert.equal(store.findNow(['0x10'])?.policy, { limit: 3, window: '1s' })
      const { version } = await store.put('pro', { limit: 7, window: '1s' })
      await store.delete('0x10')
      await store.put('new:*', SLOW)
      for (const part of [
        '# plans\n',
        '# the best\n',
        'limit: 7 # a second\n',
        '# free of charge\n',
        '# few\n',
      ])
        assert.ok(now().includes(part), part)
      assert.ok(now().includes(`version: ${version}`))
      assert.not.ok(now().includes('0x10'))
      const other = open()
      assert.equal(other.findNow(['user:1'])?.policy, { limit: 5, window: '1s' })
      assert.equal(other.findNow(['pro'])?.policy, { limit: 7, window: '1s' })
      await other.close()
    },
    'limits.yml',
  )
})

test('a change keeps the mode of the file and a symbolic link, and leaves no other file', async () => {
  await withFile('{}', async (store, { path, folder }) => {
    chmodSync(path, 0o640)
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.put(`key:${i}`, SLOW)))
    assert.is(statSync(path).mode & 0o777, 0o640)
    assert.equal(readdirSync(folder), ['limits.json'])
    assert.is((await store.list()).length, 20)
  })
})

test('two stores that write different keys at once lose none', async () => {
  await withFile('{}', async (store, { open }) => {
    const other = open()
    await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 ? store : other).put(`key:${i}`, SLOW)))
    for (const each of [store, other]) assert.is((await each.list()).length, 40)
    await other.close()
  })
})

test('bad options are refused by name', () => {
  for (const options of [undefined, null, {}, { path: '' }, { path: 'limits.toml' }, { path: 7 }])
    assert.throws(
      () => fileConfig(options as never),
      (error: unknown) => error instanceof MillraceError && error.code === 'ERR_MILLRACE_INVALID_OPTION',
    )
  assert.throws(
    () => fileConfig({ path: 'a.json', pat: 1 } as never),
    /options: expected only path .did you mean path.., got "pat"/,
  )
})

test('without the package yaml, YAML is refused by its name, and JSON works', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-no-yaml-'))
  try {
    cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true })
    const script = `
      const { fileConfig } = require('./dist/entries/config/file.js')
      require('node:fs').writeFileSync('a.json', '{}')
      fileConfig({ path: 'a.json' })
      try { fileConfig({ path: 'a.yaml' }) } catch (error) { console.log(error.code, error.message) }
    `
    const said = execFileSync(process.execPath, ['-e', script], { cwd: folder, encoding: 'utf8' })
    assert.match(said, /^ERR_MILLRACE_MISSING_PEER .*npm install yaml/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()
