// The store on dynalite: the contract, and how its items look to others.
import {
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { MillraceError } from 'millrace'
import { type ConfigChange, type DynamoConfigOptions, dynamoConfig } from 'millrace/config/dynamodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testStore } from '../conformance/config-stores.js'
import { clientOptions, type Dynalite, startDynalite } from './dynalite.js'

/** Far longer than a test takes. */
const LONG_MS = 60_000

const MINUTE = { limit: 100, window: '1m' } as const
const BOTH = {
  rules: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'hourly', limit: 1000, window: '1h' },
  ],
} as const

let server: Dynalite
let client: DynamoDBClient
test.before(async () => {
  server = await startDynalite()
  client = new DynamoDBClient(clientOptions(server.port))
})
test.after(async () => {
  client.destroy()
  await server.stop()
})

let tables = 0

async function makeTable(): Promise<string> {
  const table = `limits-${++tables}`
  const store = dynamoConfig({ client, table, deadlineMs: LONG_MS })
  await store.createTable()
  await store.close()
  return table
}

testStore(test, async () => {
  const table = await makeTable()
  return {
    open: () => dynamoConfig({ table, ...clientOptions(server.port), deadlineMs: LONG_MS }),
    async plant(key, text) {
      const Item = { key: { S: key }, policy: { S: text } }
      await client.send(new PutItemCommand({ TableName: table, Item }))
    },
    remove: async () => {},
  }
})

test('options are checked by name', () => {
  const table = 'limits'
  const refused: readonly [object | undefined, RegExp][] = [
    [undefined, /^options: /],
    [{}, /^table: expected 3 to 255/],
    [{ table: 'a/b' }, /^table: /],
    [{ table, tabel: 'a' }, /^options: expected only table, listIndex, client/],
    [{ table, client: {} }, /^client: expected a DynamoDBClient/],
    [{ table, client, region: 'eu-central-1' }, /^region: expected no such option beside client/],
    [{ table, client, endpoint: 'http://127.0.0.1' }, /^endpoint: .*beside client/],
    [{ table, region: '' }, /^region: /],
    [{ table, endpoint: '127.0.0.1:8000' }, /^endpoint: expected a URL/],
    [{ table, credentials: 'key' }, /^credentials: /],
    [{ table, deadlineMs: Number.NaN }, /^deadlineMs: /],
  ]
  for (const [options, text] of refused)
    try {
      dynamoConfig(options as DynamoConfigOptions)
      assert.unreachable(String(text))
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_OPTION')
      assert.match((error as MillraceError).message, text)
    }
})

test('an item has the policy as a map, and keeps the attributes of others', async () => {
  const TableName = await makeTable()
  const store = dynamoConfig({ client, table: TableName, deadlineMs: LONG_MS })
  const Key = { key: { S: 'a' } }
  const { version } = await store.put('a', BOTH)
  const { Item } = await client.send(new GetItemCommand({ TableName, Key }))
  assert.equal(Item!.version, { N: String(version) })
  assert.equal(Item!.policy?.M?.rules?.L?.[0]?.M?.limit, { N: '10' })
  const update = { UpdateExpression: 'SET note = :note', ExpressionAttributeValues: { ':note': { S: 'x' } } }
  await client.send(new UpdateItemCommand({ TableName, Key, ...update }))
  await store.put('a', MINUTE, { ifVersion: version })
  assert.equal((await client.send(new GetItemCommand({ TableName, Key }))).Item!.note, { S: 'x' })
})

test('items of others: maps, and types that are no policy', async () => {
  const TableName = await makeTable()
  const store = dynamoConfig({ client, table: TableName, deadlineMs: LONG_MS })
  const plant = (key: string, attributes: object) =>
    client.send(new PutItemCommand({ TableName, Item: { key: { S: key }, ...attributes } }))
  const plain = { M: { time_window_sec: { N: '1' }, capacity: { N: '5' } } }
  await plant('plain', { policy: plain })
  assert.equal(await store.get('plain'), { key: 'plain', policy: { limit: 5, window: 1000 }, version: 0 })
  await plant('counted', { policy: plain, version: { N: '7' } })
  assert.is((await store.get('counted'))?.version, 7)
  await store.put('counted', MINUTE, { ifVersion: 7 })
  await store.put('plain', MINUTE, { ifVersion: 0 })
  const wrong = {
    none: {},
    bytes: { policy: { B: Buffer.from('x') } },
    set: { policy: { SS: ['x'] } },
    version: { policy: plain, version: { S: 'x' } },
    text: { policy: { S: 'no JSON' } },
    later: { policy: { M: { format: { N: '2' } } } },
  }
  for (const [key, attributes] of Object.entries(wrong)) {
    await plant(key, attributes)
    try {
      await store.get(key)
      assert.unreachable(key)
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_POLICY', `${key}: ${error}`)
      assert.match((error as MillraceError).message, new RegExp(`^${key}: `))
    }
  }
  const listed = await store.list()
  assert.is(listed.filter((each) => 'error' in each).length, Object.keys(wrong).length)
  for (const key of Object.keys(wrong)) await store.put(key, MINUTE)
  assert.is((await store.list()).filter((each) => 'error' in each).length, 0)
})

test('find reads more keys than one request may have, and the same key twice', async () => {
  const store = dynamoConfig({ client, table: await makeTable(), deadlineMs: LONG_MS })
  await store.put('last', MINUTE)
  const many = Array.from({ length: 250 }, (_, i) => `none ${i}`)
  assert.is((await store.find([...many, ...many, 'last', 'last']))?.key, 'last')
})

test('createTable leaves a table that is there, and refuses one with another key', async () => {
  const table = await makeTable()
  const store = dynamoConfig({ client, table, deadlineMs: LONG_MS })
  await store.put('a', MINUTE)
  await store.createTable()
  assert.equal((await store.get('a'))?.policy, MINUTE)
  const command = new CreateTableCommand({
    TableName: 'other-key',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  })
  await client.send(command)
  try {
    await dynamoConfig({ client, table: 'other-key' }).createTable()
    assert.unreachable()
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.match((error as MillraceError).message, /another key/)
  }
  try {
    await dynamoConfig({ client, table, listIndex: 'sorted' }).createTable()
    assert.unreachable()
  } catch (error) {
    assert.match((error as MillraceError).message, /has no index sorted/)
  }
})

test('only own changes are told, and the store says so', async () => {
  const table = await makeTable()
  const [store, other] = [
    dynamoConfig({ client, table, deadlineMs: LONG_MS }),
    dynamoConfig({ client, table, deadlineMs: LONG_MS }),
  ]
  assert.is(store.watchDelayMs, Number.POSITIVE_INFINITY)
  const seen: ConfigChange[] = []
  store.watch((change) => void seen.push(change))
  await other.put('others', MINUTE)
  await store.put('own', MINUTE)
  await store.delete('own')
  assert.equal(seen, [{ keys: ['own'] }, { keys: ['own'] }])
})

test('a client that was handed in stays open', async () => {
  const table = await makeTable()
  await dynamoConfig({ client, table, deadlineMs: LONG_MS }).close()
  const store = dynamoConfig({ client, table, deadlineMs: LONG_MS })
  await store.put('a', MINUTE)
  assert.equal((await store.get('a'))?.policy, MINUTE)
})

test.run()
