// LMDB stores of several processes and threads on one file.
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type ConfigChange, lmdbConfig, type SyncConfigStore } from 'millrace/config/lmdb'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'

const CHILD = fileURLToPath(new URL('./lmdb-child.js', import.meta.url))
const THREAD = new URL('./lmdb-thread.js', import.meta.url)
const run = promisify(execFile)

const test = suite<{ path: string; store: SyncConfigStore }>()
test.before.each((context) => {
  context.path = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  context.store = lmdbConfig({ path: context.path, pollMs: 5 })
})
test.after.each(async ({ path, store }) => {
  await store.close()
  rmSync(path, { recursive: true })
})

test('no change by ifVersion is lost between processes', async ({ path, store }) => {
  await Promise.all([1, 2, 3].map(() => run(process.execPath, [CHILD, 'increment', path])))
  assert.equal((await store.get('counter'))?.policy, { limit: 90, window: '1m' })
})

test('get has what another process has stored, also after a look-up in the same turn', async ({
  path,
  store,
}) => {
  assert.is(store.findNow(['by:child']), undefined)
  execFileSync(process.execPath, [CHILD, 'put', path])
  assert.equal((await store.get('by:child'))?.policy, { limit: 7, window: '1m' })
  assert.is((await store.list()).length, 1)
})

test('watch tells which keys another process has changed', async ({ path, store }) => {
  const seen: ConfigChange[] = []
  store.watch((change) => void seen.push(change))
  await run(process.execPath, [CHILD, 'put', path])
  await poll(() => seen.length > 0, 'the change')
  assert.equal(seen, [{ keys: ['by:child'] }])
})

test('a watch keeps no process alive', async ({ path }) => {
  const { stdout } = await run(process.execPath, [CHILD, 'watch', path])
  assert.is(stdout, 'watched\n')
})

test('threads of a process share the file, and end with or without closing it', async ({ path, store }) => {
  const threads = ['closes', 'ends'].map((name) => new Worker(THREAD, { workerData: { path, name } }))
  const own = Array.from({ length: 20 }, (_, i) => store.put(`own:${i}`, { limit: 1, window: '1m' }))
  const codes = await Promise.all(threads.map(async (thread) => (await once(thread, 'exit'))[0]))
  await Promise.all(own)
  assert.equal(codes, [0, 0])
  assert.is((await store.list()).length, 60)
  await store.put('after', { limit: 1, window: '1m' })
})

test('a thread that is terminated while it writes holds up nobody', async ({ path, store }) => {
  for (let i = 0; i < 5; i++) {
    const thread = new Worker(THREAD, { workerData: { path, name: 'terminated' } })
    await once(thread, 'message')
    await thread.terminate()
    await store.put('after', { limit: 1 + i, window: '1m' })
  }
  assert.equal((await store.get('after'))?.policy, { limit: 5, window: '1m' })
})

test.run()
