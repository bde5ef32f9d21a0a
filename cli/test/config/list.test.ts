import { memoryConfig } from 'millrace/config/memory'
import { policyTable } from 'millrace-cli/dist/config/policy-table.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ran } from '../streams.js'
import { fileOf, linesOf, many, onStores } from './stores.js'

const POLICIES = {
  'user:*': {
    rules: [
      { name: '10/1s', limit: 10, window: '1s' },
      { name: 'hourly', limit: 1000, window: '1h' },
    ],
  },
  'user:241531': { time_window_sec: 1, capacity: 5, granularity_sec: 0.1 },
  'user:42': { limit: '10GB', unit: '64KB', window: '1d', edge: 'smooth', shadow: true, countRefused: false },
}
const VERSION = /\d{16}/g

onStores('list is a table of the keys, their policies and versions', async (on, url) => {
  await on('import', fileOf(linesOf(POLICIES)))
  const { code, out, err } = await ran(['config', 'list', '-s', url], [], 80)
  assert.equal([code, err], [0, ''])
  assert.is(
    out.replace(VERSION, '1764072882000000'),
    `┌─────────────┬─────────────────────────────────────────┬──────────────────┐
│ key         │ policy                                  │          version │
├─────────────┼─────────────────────────────────────────┼──────────────────┤
│ user:*      │ 10/1s                                   │ 1764072882000000 │
│             │ hourly: 1000/1h                         │                  │
│ user:241531 │ 5/1s, granularity 100ms                 │ 1764072882000000 │
│ user:42     │ 10GB/1d, unit 64KB, edge smooth, shadow │ 1764072882000000 │
└─────────────┴─────────────────────────────────────────┴──────────────────┘
`,
  )
})

onStores(
  'a narrower terminal gets no versions, and the narrowest no table; nothing is cut off',
  async (on, url) => {
    await on(
      'import',
      fileOf(linesOf({ ...POLICIES, [`key:${'x'.repeat(50)}`]: { limit: 5, window: '1m' } })),
    )
    const at = async (columns?: number) => (await ran(['config', 'list', '-s', url], [], columns)).out
    assert.is(
      await at(40),
      `key:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  xxxxxxxxxxxxxx
  5/1m
user:*
  10/1s
  hourly: 1000/1h
user:241531
  5/1s, granularity 100ms
user:42
  10GB/1d, unit 64KB, edge smooth,
    shadow
`,
    )
    assert.match(await at(100), '│ key  ')
    assert.not.match(await at(100), 'version')
    assert.match(await at(119), 'version')
    assert.is(await at(), await at(160))
    for (const columns of [20, 40, 80, 160])
      for (const line of (await at(columns)).split('\n')) assert.ok(line.length <= columns, line)
  },
)

onStores('list goes by prefix and limit, and tells that there is more', async (on) => {
  await on('import', fileOf(linesOf({ ...many(120), 'team:1': { limit: 5, window: '1m' } })))
  const keys = async (...options: string[]) =>
    (await on('list', '--json', ...options)).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).key)
  assert.equal(await keys('--prefix', 'team:'), ['team:1'])
  assert.is((await keys()).length, 100)
  assert.equal(await keys('-p', 'user:', '-n', '2'), ['user:000000', 'user:000001'])
  assert.match((await on('list')).out, /\nThe first 100 policies. --limit lists more, export writes all.\n$/)
  assert.not.match((await on('list', '-n', '121')).out, 'The first')
  assert.equal(await on('list', '-p', 'none'), {
    ...{ code: 0, err: '' },
    out: 'no policies of keys that begin with none\n',
  })
  assert.is((await on('list', '-p', 'none', '--json')).out, '')
})

onStores('what is printed never has control characters', async (on) => {
  await on('import', fileOf(linesOf({ '\u001b[2Jé': { limit: 5, window: '1m', name: '\u001b]0;x' } })))
  for (const command of ['list', 'export']) assert.not.match((await on(command)).out, '\u001b')
  assert.match((await on('list')).out, '│ \\u001b[2J\\u00e9 │ \\u001b]0;x: 5/1m │')
  assert.not.match((await on('get', '\u001b[2Jé')).out, '\u001b')
  assert.not.match((await on('delete', '\u001b[2Jé')).out, '\u001b')
})

test('a document that is no policy has its error in the table', async () => {
  const store = memoryConfig({ a: { limit: 5, window: '1m' } })
  const error = await store.put('b', { limit: -1, window: '1m' }).catch((error) => error)
  assert.match(
    policyTable([...(await store.list()), { key: 'b', error }], 200),
    '│ b   │ no policy: limit: expected',
  )
})

test.run()
