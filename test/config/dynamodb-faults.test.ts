// The store while DynamoDB is down, slow, throttles or loses a reply: named errors, bounded retries, no change twice.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { MillraceError } from 'millrace'
import { type DynamoConfigOptions, type DynamoConfigStore, dynamoConfig } from 'millrace/config/dynamodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freePort } from '../redis/ports.js'
import { startProxy } from '../redis/proxy.js'
import { clientOptions, type Dynalite, startDynalite } from './dynalite.js'
import { type Front, firstOf, startFront, THROTTLED } from './dynamodb-front.js'

/** Far longer than a test takes. */
const LONG_MS = 60_000

const MINUTE = { limit: 100, window: '1m' } as const
const HOUR = { limit: 5, window: '1h' } as const

let server: Dynalite
let front: Front
let client: DynamoDBClient
test.before(async () => {
  server = await startDynalite()
  front = await startFront(server.port)
  client = new DynamoDBClient({ ...clientOptions(front.port), maxAttempts: 3 })
})
test.after(async () => {
  client.destroy()
  await front.stop()
  await server.stop()
})

let tables = 0

/** A store behind the front, with a client of its own and one that was handed in. No test reaches its deadline. */
async function scene(act: (store: DynamoConfigStore) => Promise<void>): Promise<void> {
  await sceneWith({ client }, act)
  await sceneWith(clientOptions(front.port), act)
}

async function sceneWith(
  options: Partial<DynamoConfigOptions>,
  act: (store: DynamoConfigStore) => Promise<void>,
): Promise<void> {
  const store = dynamoConfig({ ...options, table: `faults-${++tables}`, deadlineMs: LONG_MS })
  await store.createTable()
  front.actions.length = 0
  try {
    await act(store)
  } finally {
    front.disturb = undefined
    await store.close()
  }
}

async function refused(act: () => Promise<unknown>, text: RegExp): Promise<void> {
  try {
    await act()
    assert.unreachable(`expected an error like ${text}`)
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE', String(error))
    assert.match((error as MillraceError).message, text)
    assert.instance((error as MillraceError).cause, Error)
  }
}

test('down at the start, there later, down again: named errors, and success in between', async () => {
  const port = await freePort()
  const store = dynamoConfig({ table: 'limits', ...clientOptions(port), deadlineMs: LONG_MS })
  const calls = [() => store.get('a'), () => store.put('a', MINUTE), () => store.list()]
  for (const act of [...calls, () => store.createTable()]) await refused(act, /^dynamodb: .*ECONNREFUSED/)
  const late = await startDynalite(port)
  await refused(() => store.get('a'), /no table limits: createTable/)
  await store.createTable()
  await store.put('a', MINUTE)
  await late.stop()
  for (const act of calls) await refused(act, /^dynamodb: .*(ECONNREFUSED|ECONNRESET|socket hang up)/)
  await store.close()
})

test('a server that hangs: calls settle by their deadline', async () => {
  const proxy = await startProxy(server.port)
  const store = dynamoConfig({ table: 'hangs-1', ...clientOptions(proxy.port), deadlineMs: 150 })
  try {
    const patient = dynamoConfig({ client, table: 'hangs-1', deadlineMs: LONG_MS })
    await patient.createTable()
    await patient.put('a', MINUTE)
    proxy.hold()
    for (const act of [() => store.get('a'), () => store.put('a', HOUR), () => store.list()])
      await refused(act, /no reply of DynamoDB within 150 ms/)
    proxy.release()
    assert.equal((await patient.get('a'))?.policy, MINUTE, 'as the put has not been sent')
  } finally {
    await store.close()
    proxy.close()
  }
})

test('a throttled request is sent again, and its error is named if it stays throttled', () =>
  sceneWith(clientOptions(front.port), async (store) => {
    await store.put('a', MINUTE)
    front.disturb = firstOf('BatchGetItem', ({ reply }) => reply(400, THROTTLED))
    assert.equal((await store.get('a'))?.policy, MINUTE)
    front.disturb = ({ reply }) => reply(400, THROTTLED)
    front.actions.length = 0
    await refused(() => store.get('a'), /provisioned throughput/)
    assert.is(front.actions.length, 5, 'the attempts')
  }))

test('a request that stays throttled until the deadline is named so', () =>
  sceneWith({ ...clientOptions(front.port) }, async () => {
    const store = dynamoConfig({ table: 'throttled', ...clientOptions(front.port), deadlineMs: 250 })
    front.disturb = ({ reply }) => reply(400, THROTTLED)
    await refused(() => store.get('a'), /within 250 ms: ProvisionedThroughputExceeded/)
    await store.close()
  }))

test('keys that a batch leaves unread are read again', () =>
  scene(async (store) => {
    await store.put('a', MINUTE)
    const table = `faults-${tables}`
    front.disturb = firstOf('BatchGetItem', async ({ body, forward, reply }) => {
      const { Keys, ConsistentRead } = JSON.parse(body).RequestItems[table]
      const some = { RequestItems: { [table]: { Keys: Keys.slice(1), ConsistentRead } } }
      const answered = JSON.parse(await forward(JSON.stringify(some)))
      const UnprocessedKeys = { [table]: { Keys: Keys.slice(0, 1), ConsistentRead } }
      reply(200, JSON.stringify({ ...answered, UnprocessedKeys }))
    })
    front.actions.length = 0
    assert.is((await store.find(['a', 'b']))?.key, 'a')
    assert.equal(front.actions, ['BatchGetItem', 'BatchGetItem'])
  }))

test('a batch that is never read ends by the deadline', async () => {
  const store = dynamoConfig({ client, table: 'unread', deadlineMs: 500 })
  front.disturb = ({ body, reply }) => {
    reply(200, JSON.stringify({ Responses: {}, UnprocessedKeys: JSON.parse(body).RequestItems }))
  }
  try {
    await refused(() => store.get('a'), /no success of DynamoDB within 500 ms/)
    await refused(() => store.put('a', MINUTE), /no success of DynamoDB within 500 ms/)
  } finally {
    front.disturb = undefined
  }
})

test('the reply to a put is lost: it is made once, and it is no conflict', () =>
  scene(async (store) => {
    const { version } = await store.put('a', MINUTE)
    front.disturb = firstOf('UpdateItem', async ({ forward, cut }) => {
      await forward()
      cut()
    })
    const next = await store.put('a', HOUR, { ifVersion: version })
    assert.is(
      front.actions.filter((action) => action === 'UpdateItem').length,
      3,
      'of two puts, one sent twice',
    )
    assert.equal(await store.get('a'), next)
  }))

test('the reply to a deletion is lost: it is a deletion all the same', () =>
  scene(async (store) => {
    const { version } = await store.put('a', MINUTE)
    front.disturb = firstOf('DeleteItem', async ({ forward, cut }) => {
      await forward()
      cut()
    })
    assert.is(await store.delete('a', { ifVersion: version }), true)
    assert.is(await store.get('a'), undefined)
  }))

test('a request that is lost is made once; a change by another store in the meantime is a conflict', () =>
  scene(async (store) => {
    const { version } = await store.put('a', MINUTE)
    const other = dynamoConfig({ table: `faults-${tables}`, ...clientOptions(server.port) })
    front.disturb = firstOf('UpdateItem', async ({ cut }) => {
      await other.put('a', HOUR)
      cut()
    })
    try {
      await store.put('a', { limit: 1, window: '1s' }, { ifVersion: version })
      assert.unreachable()
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_CONFLICT')
    }
    assert.equal((await store.get('a'))?.policy, HOUR)
    await other.close()
  }))

test('replies that are no replies of DynamoDB are named', () =>
  scene(async (store) => {
    for (const [status, body] of [
      [200, 'no JSON'],
      [500, '<html>'],
      [403, JSON.stringify({ __type: 'AccessDeniedException', message: 'not allowed' })],
    ] as const) {
      front.disturb = ({ reply }) => reply(status, body)
      await refused(() => store.get('a'), /^dynamodb: /)
      await refused(() => store.put('a', MINUTE), /^dynamodb: /)
    }
  }))

test.run()
