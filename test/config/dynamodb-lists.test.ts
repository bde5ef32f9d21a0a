// run: full, modules
// Lists of large tables on dynalite, by a scan and by an index, and the contract by an index.
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb'
import { dynamoConfig } from 'millrace/config/dynamodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { listAttributesOf } from '#millrace/config/stores/dynamodb/dynamodb-index.js'
import { testStore } from '../conformance/config-stores.js'
import { clientOptions, type Dynalite, startDynalite } from './dynalite.js'

const INDEX = { listIndex: 'sorted' }
const PATIENT = { deadlineMs: 60_000 }

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

async function makeTable(options: { listIndex?: string } = {}): Promise<string> {
  const table = `limits-${++tables}`
  const store = dynamoConfig({ client, table, ...PATIENT, ...options })
  await store.createTable()
  await store.close()
  return table
}

testStore(test, async () => {
  const table = await makeTable(INDEX)
  return {
    open: () => dynamoConfig({ table, ...INDEX, ...PATIENT, ...clientOptions(server.port) }),
    async plant(key, text) {
      const Item = { key: { S: key }, policy: { S: text }, ...listAttributesOf(key) }
      await client.send(new PutItemCommand({ TableName: table, Item }))
    },
    remove: async () => {},
  }
})

test('a list goes through a table of several megabytes', async () => {
  const TableName = await makeTable()
  const store = dynamoConfig({ client, table: TableName, ...PATIENT })
  const keys = Array.from({ length: 12 }, (_, i) => `key ${String(i).padStart(2, '0')}`)
  for (const key of keys) {
    const Item = { key: { S: key }, policy: { S: 'x'.repeat(390_000) } }
    await client.send(new PutItemCommand({ TableName, Item }))
  }
  assert.equal(
    (await store.list()).map(({ key }) => key),
    keys,
  )
  assert.equal([await store.count!(), await store.count!({ prefix: 'key 0' })], [12, 10])
  assert.equal(
    (await store.list({ after: 'key 03', limit: 2 })).map(({ key }) => key),
    ['key 04', 'key 05'],
  )
})

async function plantAll(TableName: string, keys: readonly string[]): Promise<void> {
  for (let at = 0; at < keys.length; at += 25) {
    const puts = keys
      .slice(at, at + 25)
      .map((key) => ({ PutRequest: { Item: { key: { S: key }, ...listAttributesOf(key) } } }))
    await client.send(new BatchWriteItemCommand({ RequestItems: { [TableName]: puts } }))
  }
}

for (const [kind, options] of Object.entries({ scan: {}, index: INDEX }))
  test(`by ${kind}: pages of any size have the smallest of hundreds of keys`, async () => {
    const table = await makeTable(options)
    const store = dynamoConfig({ client, table, ...options, ...PATIENT })
    const keys = Array.from({ length: 300 }, (_, i) => `${i % 3 ? 'user' : 'team'}:${(i * 7919) % 1009}`)
    await plantAll(table, keys)
    const sorted = [...keys].sort()
    for (const limit of [1, 7, 150, 299, 300, 301])
      assert.equal(
        (await store.list({ limit })).map(({ key }) => key),
        sorted.slice(0, limit),
      )
    const users = sorted.filter((key) => key.startsWith('user:'))
    const all: string[] = []
    for (let after: string | undefined; ; after = all.at(-1)) {
      const page = await store.list({ limit: 90, prefix: 'user:', ...(after !== undefined && { after }) })
      all.push(...page.map(({ key }) => key))
      if (page.length < 90) break
    }
    assert.equal(all, users)
    assert.equal(await store.list({ prefix: 'user:', after: 'zzz' }), [])
    assert.is((await store.list({ prefix: 'user:', after: 'aaa', limit: 500 })).length, users.length)
  })

test('an index sorts keys that are longer than its sort key may be', async () => {
  const table = await makeTable(INDEX)
  const store = dynamoConfig({ client, table, ...INDEX, ...PATIENT })
  const long = '键'.repeat(400) // 1,200 bytes
  const keys = Array.from({ length: 60 }, (_, i) => `${long}:${String((i * 37) % 60).padStart(2, '0')}`)
  await plantAll(table, [...keys, 'a', '龠'])
  const sorted = ['a', ...keys.toSorted(), '龠']
  for (const limit of [5, 40, 100])
    assert.equal(
      (await store.list({ limit })).map(({ key }) => key),
      sorted.slice(0, limit),
    )
  const rest = await store.list({ prefix: long, after: sorted[20]! })
  assert.equal(
    rest.map(({ key }) => key),
    sorted.slice(21, 61),
  )
})

test('a count by an index goes through partitions of several megabytes, and reads no table', async () => {
  const table = await makeTable(INDEX)
  const store = dynamoConfig({ client, table, ...INDEX, ...PATIENT })
  const keyAt = (i: number) => `${i}:${'键'.repeat(400)}`
  const { N: first } = listAttributesOf(keyAt(0)).listShard
  const all = Array.from({ length: 20_000 }, (_, i) => keyAt(i))
  const keys = all.filter((key) => listAttributesOf(key).listShard.N === first)
  await plantAll(table, keys)
  const send = client.send.bind(client)
  const sent: string[] = []
  client.send = ((command: object, ...more: []) => {
    sent.push(command.constructor.name)
    return send(command as never, ...more)
  }) as typeof client.send
  try {
    assert.is(await store.count!(), keys.length)
    assert.equal([...new Set(sent)], ['QueryCommand'])
    assert.ok(sent.length > 16, `one partition in several queries: ${sent.length}`)
  } finally {
    client.send = send
  }
})

test('a page by an index is full although the index has keys that were deleted', async () => {
  const table = await makeTable(INDEX)
  const store = dynamoConfig({ client, table, ...INDEX, ...PATIENT })
  const keys = Array.from({ length: 30 }, (_, i) => `key ${String(i).padStart(2, '0')}`)
  await plantAll(table, keys)
  const send = client.send.bind(client)
  let isDeleted = false
  // The keys go between the queries of the index and the read of their items.
  client.send = (async (command: object, ...more: []) => {
    if (command instanceof BatchGetItemCommand && !isDeleted) {
      isDeleted = true
      for (const key of keys.slice(0, 4))
        await send(new DeleteItemCommand({ TableName: table, Key: { key: { S: key } } }))
    }
    return send(command as never, ...more)
  }) as typeof client.send
  try {
    assert.equal(
      (await store.list({ limit: 10 })).map(({ key }) => key),
      keys.slice(4, 14),
    )
  } finally {
    client.send = send
  }
})

test.run()
