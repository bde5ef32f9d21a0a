// Faults of a MongoDB server. They are made by the stand-in, also where MONGODB_URL names a server.
import { MillraceError } from 'millrace'
import { mongoConfig } from 'millrace/config/mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange, ConfigStore } from '#millrace/config/config-store.js'
import { poll } from '../redis/poll.js'
import { type Kind, StandIn } from './mongo-stand-in/stand-in.js'

const MINUTE = { limit: 100, window: '1m' }
const HOUR = { limit: 1000, window: '1h' }
const DEADLINE = '200ms'

const unhandled: unknown[] = []
process.on('unhandledRejection', (error) => unhandled.push(error))

/** Runs a test with a stand-in and stores on it, which are ended afterwards. */
async function withStandIn(
  kind: Kind,
  act: (standIn: StandIn, open: (deadline?: string) => ConfigStore) => Promise<void>,
  isUp = true,
): Promise<void> {
  const standIn = await StandIn.onFreePort(kind)
  if (isUp) await standIn.listen()
  const stores: ConfigStore[] = []
  try {
    await act(standIn, (deadline = DEADLINE) => {
      stores.push(mongoConfig({ url: standIn.url, deadline }))
      return stores.at(-1)!
    })
  } finally {
    for (const store of stores) await store.close()
    await standIn.stop()
  }
  assert.equal(standIn.refused, [])
}

/** Watches, and resolves when the watch has begun. */
async function watched(
  store: ConfigStore,
): Promise<{ changes: ConfigChange[]; knows(key: string): boolean }> {
  const changes: ConfigChange[] = []
  store.watch((change) => void changes.push(change))
  await poll(() => changes.some(isAny), 'the beginning of the watch')
  changes.length = 0
  return { changes, knows: (key) => changes.some(({ keys }) => keys?.includes(key)) }
}

const isAny = ({ keys, error }: ConfigChange) => keys === undefined && error === undefined
const errorsIn = (changes: readonly ConfigChange[]) => changes.flatMap(({ error }) => error ?? [])

async function fails(act: () => Promise<unknown>, text?: RegExp): Promise<void> {
  try {
    await act()
  } catch (error) {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.instance((error as MillraceError).cause, Error)
    if (text !== undefined) assert.match(String((error as MillraceError).cause), text)
    return
  }
  assert.unreachable('expected ERR_MILLRACE_CONFIG_STORE')
}

for (const kind of ['replica set', 'standalone'] as const) {
  test(`${kind}: down at start, then up`, () =>
    withStandIn(
      kind,
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
    ))

  test(`${kind}: down while running, then back`, () =>
    withStandIn(kind, async (standIn, open) => {
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
    }))

  test(`${kind}: slower than the deadline`, () =>
    withStandIn(kind, async (standIn, open) => {
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
    }))

  test(`${kind}: a write that the majority does not acknowledge in time`, () =>
    withStandIn(kind, async (standIn, open) => {
      const store = open()
      const writeConcernError = {
        code: 64,
        codeName: 'WriteConcernTimeout',
        errmsg: 'waiting for replication',
      }
      await store.put('other', MINUTE)
      standIn.onCommand = (name) => (name === 'insert' ? { writeConcernError } : undefined)
      await fails(() => store.put('a', MINUTE), /waiting for replication/)
    }))

  test(`${kind}: after close nothing is left`, () =>
    withStandIn(kind, async (standIn, open) => {
      const store = open()
      await watched(store)
      const end = store.watch(() => {})
      end()
      await store.close()
      await poll(() => standIn.connections === 0 && standIn.streams === 0, 'the end of all connections')
    }))
}

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
    assert.is(standIn.cutStreams(), 1)
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

test('a change stream that falls silent is noticed', () =>
  withStandIn('replica set', async (standIn, open) => {
    const store = open()
    const { changes } = await watched(store)
    standIn.delayMs = 60_000
    await poll(() => errorsIn(changes).length > 0, 'the error')
    standIn.delayMs = 0
    await poll(() => changes.some(isAny), 'the watch')
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

test('standalone: more changes than the log keeps', () =>
  withStandIn('standalone', async (standIn, open) => {
    const [store, other] = [open('5s'), open('5s')]
    const { changes, knows } = await watched(store)
    let read = () => {}
    const held = new Promise<undefined>((resolve) => {
      read = () => resolve(undefined)
    })
    standIn.onCommand = (name, { filter }) => (name === 'find' && filter.last ? held : undefined)
    await Promise.all(Array.from({ length: 250 }, (_, i) => other.put(`key:${i}`, MINUTE)))
    standIn.onCommand = () => undefined
    read()
    await poll(() => changes.some(isAny), 'that anything may have changed')
    await other.put('a', MINUTE)
    await poll(() => knows('a'), 'a')
  }))

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
