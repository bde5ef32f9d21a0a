// run: modules
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { type ConfigChange, lmdbConfig, type Policy, type SyncConfigStore } from 'millrace/config/lmdb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ChangeLog, LOG_LENGTH, MOST_LOGGED_KEYS } from '#millrace/config/stores/lmdb/lmdb-changes.js'
import { testStore } from '../conformance/config-stores.js'

testStore(test, async () => {
  const path = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  return {
    open: () => lmdbConfig({ path, pollMs: 5 }),
    async plant(key, text) {
      const root = open({ path, overlappingSync: false })
      await root
        .openDB({ name: 'policies', keyEncoding: 'binary', encoding: 'string' })
        .put(Buffer.from(key), text)
      await root.close()
    },
    async remove() {
      rmSync(path, { recursive: true })
    },
  }
})

const MINUTE: Policy = { limit: 100, window: '1m' }

async function onFile(act: (path: string, open: (pollMs?: number) => SyncConfigStore) => Promise<void>) {
  const path = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  const opened: SyncConfigStore[] = []
  const openStore = (pollMs = 60_000) => {
    opened.push(lmdbConfig({ path, pollMs }))
    return opened.at(-1)!
  }
  try {
    await act(path, openStore)
  } finally {
    for (const store of opened) await store.close()
    rmSync(path, { recursive: true })
  }
}

test('the log tells which keys have changed, unless there were too many', () =>
  onFile(async (_, openStore) => {
    const watching = openStore()
    const other = openStore()
    const seen: ConfigChange[] = []
    watching.watch((change) => void seen.push(change))
    /** It looks at the log after a write of its own, and does not by itself. */
    const look = async () => {
      seen.length = 0
      await watching.put('own', MINUTE)
      return seen
    }
    await other.put('a', MINUTE)
    await other.put('b', MINUTE)
    await other.delete('a')
    await other.putMany!([
      { key: 'c', policy: MINUTE },
      { key: 'd', policy: MINUTE },
    ])
    assert.equal(await look(), [{ keys: ['a', 'b', 'c', 'd', 'own'] }])
    await other.putMany!(entriesOf(MOST_LOGGED_KEYS))
    const [all] = await look()
    assert.is(all!.keys!.length, MOST_LOGGED_KEYS + 1)
    await other.putMany!(entriesOf(MOST_LOGGED_KEYS + 1))
    assert.equal(await look(), [{}])
  }))

test('the log has the latest changes', () =>
  onFile(async (path) => {
    const root = open({ path, overlappingSync: false })
    const log = new ChangeLog(root.openDB({ name: 'changes', encoding: 'json' }))
    root.transactionSync(() => {
      for (let i = 1; i <= LOG_LENGTH + 2; i++) log.add([`key:${i}`])
    })
    const revision = LOG_LENGTH + 2
    assert.equal(log.since(revision), { revision, keys: [] })
    assert.equal(log.since(LOG_LENGTH), { revision, keys: [`key:${revision - 1}`, `key:${revision}`] })
    assert.is(log.since(2).keys!.length, LOG_LENGTH)
    assert.is(log.since(1).keys, undefined)
    assert.is(log.since(revision + 1).keys, undefined, 'an older file was put in the place')
    await root.close()
  }))

const entriesOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ key: `key:${i}`, policy: MINUTE }))

test('a store may be opened while another one of this thread writes, and closed: its writes are made', () =>
  onFile(async (_, openStore) => {
    const first = openStore()
    const writes = Array.from({ length: 50 }, (_, i) => first.put(`key:${i}`, MINUTE))
    await Promise.resolve() // they have read, and are about to replace
    const second = openStore()
    await second.put('second', MINUTE)
    await first.close()
    const results = await Promise.allSettled(writes)
    const made = results.filter(({ status }) => status === 'fulfilled').length
    assert.is((await second.list()).length, made + 1)
    for (const result of results)
      if (result.status === 'rejected') assert.is(result.reason.code, 'ERR_MILLRACE_CLOSED')
  }))

test('a path with an extension is a file, one without it a folder, unless there is something else', () =>
  onFile(async (path) => {
    const file = join(path, 'limits.mdb')
    await lmdbConfig({ path: file }).close()
    assert.ok(statSync(file).isFile())
    const folder = join(path, 'limits.d')
    mkdirSync(folder)
    await lmdbConfig({ path: folder, mapSize: 2 ** 24 }).close()
    assert.ok(statSync(join(folder, 'data.mdb')).isFile())
  }))

test.run()
