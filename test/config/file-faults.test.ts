// run: also-full
// Edits of a file of policies: however an editor saves, and with whatever mistakes.
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { MillraceError } from 'millrace'
import { fileConfig } from 'millrace/config/file'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange } from '#millrace/config/config-store.js'
import { poll } from '../redis/poll.js'
import { sized } from '../size.js'
import { filePlace, withFile } from './file-place.js'

const ONE = '{\n  "a": { "limit": 1, "window": "1s" },\n  "b": { "limit": 2, "window": "1s" }\n}\n'
const TWO = ONE.replace('"limit": 1', '"limit": 10')

const errorsIn = (told: readonly ConfigChange[]) => told.flatMap(({ error }) => (error ? [error] : []))

/** The error of a file with this text, at creation. */
async function errorOf(name: string, text: string): Promise<MillraceError> {
  const place = filePlace(name, text)
  try {
    await place.open().close()
  } catch (error) {
    assert.instance(error, MillraceError)
    return error as MillraceError
  } finally {
    await place.remove()
  }
  throw new Error(`no error in ${text}`)
}

for (const [how, save] of Object.entries<(path: string, text: string) => void>({
  'in place': (path, text) => writeFileSync(path, text),
  'by a rename over': (path, text) => {
    writeFileSync(`${path}~new`, text)
    renameSync(`${path}~new`, path)
  },
  'with a backup, as a new file': (path, text) => {
    renameSync(path, `${path}~`)
    writeFileSync(path, text)
  },
  'deleted and written again': (path, text) => {
    rmSync(path)
    writeFileSync(path, text)
  },
  'in parts': (path, text) => {
    const file = openSync(path, 'w')
    for (const part of text.match(/[\s\S]{1,7}/g)!) writeSync(file, part)
    closeSync(file)
  },
}))
  test(`a file saved ${how}: the keys that differ are told, and no error`, async () => {
    await withFile(ONE, async (store, { path }, told) => {
      save(path, TWO)
      await poll(() => told.length > 0, 'the change')
      assert.equal(told, [{ keys: ['a'] }])
      assert.equal(store.findNow(['a'])?.policy, { limit: 10, window: '1s' })
      save(path, ONE.replace(/,\n.*"b".*/, ''))
      await poll(() => told.length > 1, 'the second change')
      assert.equal([...told[1]!.keys!].sort(), ['a', 'b'])
      assert.is(store.findNow(['b']), undefined)
    })
  })

test('a change of the link that a ConfigMap of Kubernetes swaps is seen, and one of the file it leads to', async () => {
  await withFile('{}', async (_, { folder }) => {
    for (const [version, text] of [
      ['v1', ONE],
      ['v2', TWO],
    ] as const) {
      mkdirSync(join(folder, version))
      writeFileSync(join(folder, version, 'map.json'), text)
    }
    symlinkSync('v1', join(folder, '..data'))
    symlinkSync('..data/map.json', join(folder, 'map.json'))
    const store = fileConfig({ path: join(folder, 'map.json') })
    const told: ConfigChange[] = []
    store.watch((change) => void told.push(change))
    symlinkSync('v2', join(folder, '..next'))
    renameSync(join(folder, '..next'), join(folder, '..data'))
    await poll(() => told.length > 0, 'the swap')
    assert.equal(told, [{ keys: ['a'] }])
    await store.put('c', { limit: 3, window: '1s' })
    assert.is(readlinkSync(join(folder, 'map.json')), '..data/map.json')
    writeFileSync(join(folder, 'v2', 'map.json'), ONE)
    await poll(() => store.findNow(['c']) === undefined, 'the change behind the link')
    await store.close()
  })
})

test('a broken edit keeps the policies and tells the line; put refuses; a mended file is taken up', async () => {
  await withFile(ONE, async (store, { write, path, text }, told) => {
    const broken = TWO.replace('"1s" },', '"1s" }')
    write(broken)
    await poll(() => told.length > 0, 'the error')
    assert.is(errorsIn(told)[0]?.code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.ok(errorsIn(told)[0]!.message.startsWith(`${path}:3:3: JSON: expected a comma`))
    assert.equal((await store.get('a'))?.policy, { limit: 1, window: '1s' })
    try {
      await store.put('a', { limit: 5, window: '1s' })
      assert.unreachable()
    } catch (error) {
      assert.is(error, errorsIn(told)[0])
    }
    assert.is(text(), broken)
    write(TWO)
    await poll(() => told.length > 1, 'the mended file')
    assert.equal(told[1], { keys: ['a'] })
    assert.equal((await store.get('a'))?.policy, { limit: 10, window: '1s' })
    await store.put('a', { limit: 5, window: '1s' })
  })
})

test('an edit that is taken back after an error is told, too', async () => {
  await withFile(ONE, async (_, { write }, told) => {
    write('{')
    await poll(() => errorsIn(told).length === 1, 'the error')
    write(ONE)
    await poll(() => told.length === 2, 'that it is as before')
    assert.equal(told[1], { keys: [] })
  })
})

test('a deleted file is an error, and its policies stay until it is there again', async () => {
  await withFile(ONE, async (store, { write, path }, told) => {
    rmSync(path)
    await poll(() => told.length > 0, 'the error')
    assert.match(errorsIn(told)[0]!.message, /limits\.json: expected a readable file.*ENOENT/)
    assert.is(store.findNow(['a'])?.key, 'a')
    write(TWO)
    await poll(() => told.length > 1, 'the file')
    assert.equal(told[1], { keys: ['a'] })
  })
})

test('errors name the line and the column', async () => {
  for (const [name, text, code, message] of [
    [
      'a.json',
      '{\n  "a": { "limit": 1, "window": "1s" },\n  "a": 1 }',
      'CONFIG_STORE',
      /:3:3: JSON: expected each name/,
    ],
    [
      'a.json',
      '{ "a": { "limit": 1,\r\n "limit": 2 } }',
      'CONFIG_STORE',
      /:2:2: JSON: expected each name only once, got "limit"/,
    ],
    ['a.json', '', 'CONFIG_STORE', /:1:1: JSON: expected an object.*the end/],
    ['a.json', '[]', 'CONFIG_STORE', /:1:1: JSON: expected an object/],
    ['a.json', '{}\n{}', 'CONFIG_STORE', /:2:1: JSON: expected nothing/],
    ['a.json', '{ "a": 01 }', 'CONFIG_STORE', /:1:8: JSON: expected a value/],
    ['a.json', `{ "a": ${'['.repeat(100_000)}`, 'CONFIG_STORE', /JSON: expected at most 50 levels/],
    ['a.json', '{\n"a": {\n "limit": -1, "window": "1s" } }', 'INVALID_POLICY', /:3:2: a: limit: .*got -1/],
    [
      'a.json',
      '{ "a": { "limit": 1,\n"window": "1s", "brust": 3 } }',
      'INVALID_POLICY',
      /:2:17: a: policy: .*"brust"/,
    ],
    [
      'a.json',
      '{ "a": { "rules": [ { "limit": 1, "window": "1s", "name": "x" },\n{ "limit": 1, "window": 0, "name": "y" } ] } }',
      'INVALID_POLICY',
      /:2:15: a: rules\[1\]\.window/,
    ],
    ['a.json', '{\n "a": 5 }', 'INVALID_POLICY', /:2:2: a: document: .*got 5/],
    ['a.json', '{ "a:b:c:d:e:f:g:h:i:*": { "limit": 1, "window": "1s" } }', 'INVALID_KEY', /:1:3: key/],
    [
      'a.yaml',
      'a: { limit: 1, window: 1s }\na: { limit: 1, window: 1s }',
      'CONFIG_STORE',
      /:2:1: YAML: expected each name only once, got "a"/,
    ],
    ['a.yaml', 'a:\n  limit: 1\n  window: 1s\n  limit: 2', 'CONFIG_STORE', /:4:3: YAML: expected each name/],
    ['a.yaml', 'a: { limit: 1\nb: 2', 'CONFIG_STORE', /:2:\d+: YAML/],
    ['a.yaml', '# nothing\n', 'CONFIG_STORE', /YAML: expected a map.*an empty file/],
    ['a.yaml', 'a:\n  limit: 1\n  window: 1x', 'INVALID_POLICY', /:3:3: a: window/],
    [
      'a.yaml',
      'a:\n  rules:\n    - limit: 1\n      window: 1s\n      brust: 2',
      'INVALID_POLICY',
      /:5:7: a: rules/,
    ],
  ] as const) {
    const error = await errorOf(name, text)
    assert.is(error.code, `ERR_MILLRACE_${code}`, text)
    assert.match(error.message, message)
    assert.ok(error.message.includes(name))
  }
})

test('a file that was cut off at any byte is refused by name; of YAML, what is left may be whole', async () => {
  const json =
    '{ "ä": { "limit": 10, "window": "1s" },\n"b": { "rules": [{ "name": "x", "limit": 2, "window": "1m" }] } }'
  const yaml = 'ä: { limit: 10, window: 1s }\nb:\n  rules:\n    - name: x\n      limit: 2\n      window: 1m\n'
  const opened = { 'a.json': 0, 'a.yaml': 0 }
  for (const [name, text] of [
    ['a.json', json],
    ['a.yaml', yaml],
  ] as const) {
    const place = filePlace(name)
    const bytes = Buffer.from(text)
    for (let length = 0; length < bytes.length; length++) {
      writeFileSync(place.path, bytes.subarray(0, length))
      try {
        const store = place.open()
        opened[name]++
        await store.close()
      } catch (error) {
        assert.instance(error, MillraceError, `${name}, ${length} bytes`)
        assert.match((error as MillraceError).code, /_(CONFIG_STORE|INVALID_POLICY|INVALID_KEY)$/)
      }
    }
    await place.remove()
  }
  assert.is(opened['a.json'], 0)
  assert.ok(opened['a.yaml'] < yaml.length / 4, `${opened['a.yaml']} of ${yaml.length}`)
})

test('a file that is missing, or not in UTF-8, is refused at creation', async () => {
  assert.throws(
    () => fileConfig({ path: '/nowhere/limits.json' }),
    /nowhere.limits\.json: expected a readable file.*ENOENT/,
  )
  const place = filePlace()
  appendFileSync(place.path, Buffer.from([0xff]))
  assert.throws(() => place.open(), /UTF-8/)
  await place.remove()
})

const COUNT = sized({ quick: 3_000, full: 100_000 })

test(`${COUNT} policies: an edit of one tells one; put, delete and list`, async () => {
  const keys = Array.from({ length: COUNT }, (_, i) => `user:${i}`)
  const text = `{\n${keys.map((key, i) => `"${key}": { "limit": ${1 + (i % 9)}, "window": "1m" }`).join(',\n')}\n}`
  await withFile(text, async (store, { write, open }, told) => {
    write(text.replace('"user:77": { "limit": 6', '"user:77": { "limit": 60'))
    await poll(() => told.length > 0, 'the edit')
    assert.equal(told, [{ keys: ['user:77'] }])
    await store.put('user:500', { limit: 7, window: '1h' })
    await store.delete(`user:${COUNT - 1}`)
    const other = open()
    assert.equal(other.findNow(['user:77'])?.policy, { limit: 60, window: '1m' })
    assert.equal(other.findNow(['user:500'])?.policy, { limit: 7, window: '1h' })
    assert.is(other.findNow([`user:${COUNT - 1}`]), undefined)
    await other.close()
    let count = 0
    for (let after: string | undefined; ; ) {
      const page = await store.list(after === undefined ? { limit: 7_000 } : { limit: 7_000, after })
      count += page.length
      if (page.length < 7_000) break
      after = page.at(-1)!.key
    }
    assert.is(count, COUNT - 1)
  })
})

test.run()
