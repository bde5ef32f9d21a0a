// Faults of a MongoDB server. They are made by the stand-in, also where MONGODB_URL names a server.
import { mongoConfig } from 'millrace/config/mongodb'
import { MongoClient } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange, ConfigStore } from '#millrace/config/config-store.js'
import { poll } from '../redis/poll.js'
import type { StandIn } from './mongo-stand-in/stand-in.js'
import { errorsIn, fails, HOUR, isAny, MINUTE, watched, withStandIn } from './mongodb-stage.js'

console.log('note: mongodb: the stand-in, not a MongoDB server, also if MONGODB_URL is set')

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
const isNone = (found: unknown) => found === undefined
const unhandled: unknown[] = []
process.on('unhandledRejection', (error) => unhandled.push(error))

/** Runs a test on a replica set and on a standalone, at the same time. */
function onBoth(
  name: string,
  act: (standIn: StandIn, open: (deadline?: string) => ConfigStore) => Promise<void>,
  isUp = true,
): void {
  test(name, async () => {
    const run = (kind: 'replica set' | 'standalone') =>
      withStandIn(kind, act, isUp).catch((error: Error) => {
        error.message = `${kind}: ${error.message}`
        throw error
      })
    await Promise.all([run('replica set'), run('standalone')])
  })
}

onBoth(
  'down at start, then up',
  async (standIn, open) => {
    const store = open()
    const changes: ConfigChange[] = []
    store.watch((change) => void changes.push(change))
    await fails(() => store.get('a'))
    await fails(() => store.put('a', MINUTE))
    await fails(() => store.list())
    await poll(() => changes.length > 0, 'the error')
    await standIn.listen()
    await poll(() => changes.some(isAny), 'the watch')
    assert.is(errorsIn(changes).length, 1)
    assert.is(errorsIn(changes)[0]!.code, 'ERR_MILLRACE_CONFIG_STORE')
    await store.put('a', MINUTE)
    assert.equal((await store.get('a'))?.policy, MINUTE)
  },
  false,
)

onBoth('down while running, then back', async (standIn, open) => {
  const [store, other] = [open(), open()]
  await store.put('a', MINUTE)
  const { changes, knows } = await watched(store)
  await standIn.stop()
  await fails(() => store.get('a'))
  await fails(() => store.put('a', HOUR))
  await poll(() => changes.length > 0, 'the error')
  await standIn.listen()
  await poll(() => changes.some(isAny), 'the watch')
  assert.is(errorsIn(changes).length, 1)
  await other.put('b', MINUTE)
  await poll(() => knows('b'), 'a change after it')
  assert.equal((await store.get('a'))?.policy, MINUTE)
})

onBoth('slower than the deadline', async (standIn, open) => {
  const store = open('50ms')
  await poll(
    () =>
      store.put('a', MINUTE).then(
        () => true,
        () => false,
      ),
    'the connection',
  )
  standIn.delayMs = 300
  await fails(() => store.get('a'), /no answer within 50 ms/)
  await fails(() => store.put('a', HOUR), /no answer within 50 ms/)
  standIn.delayMs = 0
  await poll(
    () =>
      store.put('a', HOUR).then(
        () => true,
        () => false,
      ),
    'the answer',
  )
  assert.equal((await store.get('a'))?.policy, HOUR)
})

onBoth('a write that the majority does not acknowledge in time', async (standIn, open) => {
  const store = open()
  const writeConcernError = {
    code: 64,
    codeName: 'WriteConcernTimeout',
    errmsg: 'waiting for replication',
  }
  await store.put('other', MINUTE)
  standIn.onCommand = (name) => (name === 'insert' ? { writeConcernError } : undefined)
  await fails(() => store.put('a', MINUTE), /waiting for replication/)
})

onBoth('after close nothing is left', async (standIn, open) => {
  const store = open()
  await watched(store)
  const end = store.watch(() => {})
  end()
  await store.close()
  await poll(() => standIn.connections === 0 && standIn.streams === 0, 'the end of all connections')
})

test('replica set: the reply to a write is lost, and the driver repeats it', () =>
  withStandIn('replica set', async (standIn, open) => {
    const store = open('2s')
    await store.put('a', MINUTE)
    standIn.loseReplyOf = 'insert'
    const { version } = await store.put('b', HOUR, { ifVersion: null })
    assert.equal(await store.get('b'), { key: 'b', policy: HOUR, version })
  }))

test('standalone: the reply to a write is lost, which is an error though it was made', () =>
  withStandIn('standalone', async (standIn, open) => {
    const store = open('2s')
    await store.put('a', MINUTE)
    standIn.loseReplyOf = 'insert'
    await fails(() => store.put('b', HOUR))
    assert.equal((await store.get('b'))?.policy, HOUR)
  }))

test('a change stream that is cut off is resumed where it was', () =>
  withStandIn('replica set', async (standIn, open) => {
    const [store, other] = [open('5s'), open('5s')]
    const { changes, knows } = await watched(store)
    await other.put('a', MINUTE)
    await poll(() => knows('a'), 'a')
    await poll(() => standIn.cutStreams() === 1, 'the stream to wait again')
    await other.put('b', MINUTE)
    await other.delete('a')
    await poll(() => knows('b'), 'b')
    assert.equal(
      changes.flatMap(({ keys }) => keys ?? ['any']),
      ['a', 'b', 'a'],
    )
  }))

test('a change stream whose history is gone begins anew', () =>
  withStandIn('replica set', async (standIn, open) => {
    const [store, other] = [open('5s'), open('5s')]
    const { changes, knows } = await watched(store)
    standIn.forgetHistory()
    await other.put('a', MINUTE)
    await poll(() => changes.some(isAny), 'the new watch')
    assert.is(errorsIn(changes).length, 1)
    assert.match(errorsIn(changes)[0]!.message, /configuration store that answers/)
    assert.match(String(errorsIn(changes)[0]!.cause), /resume/i)
    await other.put('b', MINUTE)
    await poll(() => knows('b'), 'b')
  }))

test('standalone: a change is told when it has been made, however long after it was logged', () =>
  withStandIn('standalone', async (standIn, open) => {
    const [store, other] = [open('5s'), open('5s')]
    await other.put('before', MINUTE)
    const { changes, knows } = await watched(store)
    let write = () => {}
    const held = new Promise<undefined>((resolve) => {
      write = () => resolve(undefined)
    })
    standIn.onCommand = (name) => (name === 'insert' ? held : undefined)
    const put = other.put('late', MINUTE)
    await poll(() => (standIn.counts.get('insert') ?? 0) >= 2, 'the insertion')
    const polls = standIn.counts.get('find')!
    await poll(() => standIn.counts.get('find')! > polls + 6, 'several polls')
    assert.not(knows('late'))
    write()
    await put
    await poll(() => knows('late'), 'the change')
    assert.equal(errorsIn(changes), [])
  }))

test('standalone: a log of garbage', () =>
  withStandIn('standalone', async (standIn, open) => {
    const [store, other] = [open(), open()]
    await other.put('before', MINUTE)
    const { changes, knows } = await watched(store)
    const client = new MongoClient(standIn.url)
    const garbage = { last: { a: 1 }, recent: [7, null, { id: 5 }, { id: 'x', key: 'a', version: 'y' }] }
    const writeConcern = { w: 'majority', journal: true } as const
    const log = client.db().collection<{ _id: string }>('policies.changes')
    await log.replaceOne({ _id: 'changes' }, garbage, { writeConcern })
    await client.close()
    await poll(() => changes.some(isAny), 'that anything may have changed')
    await other.put('a', MINUTE) // what is new in the log can't be told from what was there
    await poll(() => changes.filter(isAny).length === 2, 'it again')
    await other.put('b', MINUTE)
    await poll(() => knows('b'), 'b')
    assert.equal(errorsIn(changes), [])
  }))

onBoth('close while the server is down, and while a request is under way', async (standIn, open) => {
  const [store, other] = [open('5s'), open('5s')]
  await watched(store)
  await other.put('a', MINUTE)
  standIn.delayMs = 60_000
  const pending = other.get('a')
  const ended = fails(() => pending)
  await other.close()
  await ended
  await standIn.stop()
  await store.close()
  standIn.delayMs = 0
})

onBoth('several keys are found in one request', async (standIn, open) => {
  const store = open()
  await store.put('c', MINUTE)
  const before = standIn.counts.get('find')!
  assert.is((await store.find(['a', 'b', 'c', 'd', 'a']))?.key, 'c')
  assert.is(standIn.counts.get('find'), before + 1)
})

onBoth('a write that was given up is not sent later', async (standIn) => {
  const client = new MongoClient(standIn.url) // which waits for a server for 30 seconds
  const store = mongoConfig({ client, deadline: '200ms' })
  try {
    const answers = () => store.get('a').then(isNone, () => false)
    await poll(answers, 'the connection')
    let stopped: Promise<void> | undefined
    standIn.onCommand = (name, command) => {
      if (name === 'find' && command.find === 'policies') stopped ??= nextTurn().then(() => standIn.stop())
      return undefined
    }
    await fails(() => store.put('a', MINUTE))
    await stopped
    standIn.onCommand = () => undefined
    await standIn.listen()
    await poll(answers, 'an answer')
    assert.is(standIn.counts.get('insert'), undefined)
  } finally {
    await store.close()
    await client.close()
  }
})

onBoth(
  'a client that was handed in: within the deadline while it is down, then connected',
  async (standIn) => {
    await standIn.stop()
    const client = new MongoClient(standIn.url) // which waits for 30 seconds
    const store = mongoConfig({ client, deadline: '200ms' })
    await fails(() => store.get('a'), /no answer within 200 ms/)
    await standIn.listen()
    await poll(() => store.get('a').then(isNone, () => false), 'an answer')
    await client.close()
    store.watch(() => {})
    await fails(() => store.get('a'), /connected/)
    await poll(() => standIn.connections === 0, 'the end of the connections')
    await fails(() => store.get('a'), /connected/)
    assert.is(standIn.connections, 0, 'nobody has opened it again')
    await store.close()
  },
)

test('a client whose first connection has failed is connected again', () =>
  withStandIn(
    'standalone',
    async (standIn) => {
      const client = new MongoClient(standIn.url, { serverSelectionTimeoutMS: 20 })
      const store = mongoConfig({ client, deadline: '2s' })
      await fails(() => store.get('a'), /ECONNREFUSED/)
      await standIn.listen()
      await poll(() => store.get('a').then(isNone, () => false), 'an answer')
      await store.close()
      await client.close()
    },
    false,
  ))

test('a listener that throws does not end the watch', () =>
  withStandIn('replica set', async (_, open) => {
    const [store, other] = [open(), open()]
    const thrown: unknown[] = []
    const seen: ConfigChange[] = []
    const onThrown = (error: unknown) => void thrown.push(error)
    process.on('uncaughtException', onThrown)
    store.watch((change) => {
      seen.push(change)
      throw new RangeError('of the listener')
    })
    await poll(() => seen.length > 0, 'the beginning')
    await other.put('a', MINUTE)
    await poll(() => seen.some(({ keys }) => keys?.includes('a')), 'a')
    await poll(() => thrown.length >= 2, 'its errors')
    process.off('uncaughtException', onThrown)
    assert.ok(thrown.every((error) => error instanceof RangeError))
    assert.equal(errorsIn(seen), [])
  }))

test('no rejection was left unhandled', () => {
  assert.equal(unhandled, [])
})

test.run()
