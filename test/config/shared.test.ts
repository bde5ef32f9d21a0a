// One limit over threads, pools and processes, each with a view of its own of the configuration store.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, type Limiter, manualClock, openLimiter, type Policy } from 'millrace'
import { lmdbConfig } from 'millrace/config/lmdb'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { test as withAddon } from '../native/addon-test.js'
import { poll } from '../redis/poll.js'
import type { Admitted } from './attached-worker.js'

const DEFAULT: Policy = { limit: 2, window: '1m' }
const HOURLY: Policy = { limit: 5, window: '1h' }
const worker = new URL('./attached-worker.js', import.meta.url)

const admit = (limiter: Limiter, key: string) => {
  let count = 0
  while (limiter.check(key).allowed) count++
  return count
}

async function inFolder(act: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'))
  try {
    await act(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('attached limiters count one key once, in windows that came after they were attached', async () => {
  const config = memoryConfig()
  const clock = manualClock(1_000_000)
  const first = createLimiter({ config, default: DEFAULT, maxKeys: 1_000, clock })
  const others = [1, 2].map(() => attachLimiter(structuredClone(first.share()), { config }))
  await config.put('a', HOURLY)
  await config.put('b', { limit: 4, window: '2h' })
  assert.is(others[0]!.check('a').remaining, 4)
  assert.is(first.check('a').remaining, 3)
  assert.is(others[1]!.check('b').remaining, 3) // this thread meets the windows in another order
  assert.is(others[1]!.check('a').remaining, 2)
  assert.is(first.check('b').remaining, 2)
  assert.is(others[0]!.usage('b'), 2)
  await config.put('a', { limit: 9, window: '2h' })
  assert.is(admit(others[0]!, 'a'), 6)
  assert.is(admit(first, 'a'), 0)
  assert.is(admit(others[1]!, 'a'), 0)
  for (const limiter of [...others, first]) await limiter.close()
})

test('a limiter with a store is attached with a store, and one without without', async () => {
  const config = memoryConfig()
  const limiter = createLimiter({ config, default: DEFAULT, maxKeys: 10, onMiss: 'refuse' })
  assertRaises(() => attachLimiter(limiter.share()), 'ERR_MILLRACE_INVALID_OPTION', 'config')
  const plain = createLimiter({ limit: 1, window: '1m', maxKeys: 10 })
  assertRaises(() => attachLimiter(plain.share(), { config }), 'ERR_MILLRACE_INVALID_OPTION', 'config')
  const share = limiter.share()
  assertRaises(
    () =>
      attachLimiter(
        { ...share, policies: { ...share.policies!, space: new SharedArrayBuffer(8) } },
        { config },
      ),
    'ERR_MILLRACE_INVALID_SHARE',
    'shared.policies',
  )
})

test('threads with stores of their own learn of a change, and of a new window', async () =>
  inFolder(async (folder) => {
    const path = join(folder, 'policies')
    const config = lmdbConfig({ path })
    const limiter = createLimiter({ config, default: DEFAULT, maxKeys: 1_000 })
    await config.put('a', { limit: 7, window: '1m' })
    const thread = new Worker(worker, { workerData: { share: limiter.share(), path } })
    const ask = async (key: string): Promise<Admitted> => {
      thread.postMessage(key)
      return (await once(thread, 'message'))[0]
    }
    await once(thread, 'message')
    limiter.check('a', 3)
    assert.equal(await ask('a'), { key: 'a', count: 4, limit: 7, usage: 7 })
    await config.put('a', { limit: 9, window: '2h' })
    await poll(async () => (await ask('a')).limit === 9, 'the new window in the other thread')
    assert.is(limiter.usage('a'), 9)
    assert.is(admit(limiter, 'a'), 0)
    await thread.terminate()
    await limiter.close()
    await config.close()
  }))

withAddon('processes with one file have one limit in each window of policies', async () =>
  inFolder(async (folder) => {
    const [path, file] = [join(folder, 'policies'), join(folder, 'counts')]
    const config = lmdbConfig({ path })
    await config.put('a', HOURLY)
    const limiter = await openLimiter({ config, default: DEFAULT, maxKeys: 1_000, shared: { file } })
    const child = fork(worker, [path, file])
    const ask = async (key: string): Promise<Admitted> => {
      child.send(key)
      return (await once(child, 'message'))[0]
    }
    await once(child, 'message')
    assert.equal(await ask('x'), { key: 'x', count: 2, limit: 2, usage: 2 })
    assert.is(admit(limiter, 'x'), 0)
    limiter.check('a', 3)
    assert.equal(await ask('a'), { key: 'a', count: 2, limit: 5, usage: 5 })
    await config.put('a', { limit: 8, window: '2h' })
    await poll(async () => (await ask('a')).limit === 8, 'the new window in the other process')
    assert.is(limiter.usage('a'), 8)
    assert.is(
      readdirSync(folder).filter((name) => name.startsWith('counts.')).length,
      2,
      'a file for each window',
    )
    child.disconnect()
    await once(child, 'exit')
    await limiter.close()
    const again = await openLimiter({ config, default: DEFAULT, maxKeys: 1_000, shared: { file } })
    assert.is(again.usage('a'), 8, 'counts survive the processes')
    await again.close()
    await config.close()
  }),
)

test('a pool decides by policies, also in windows that are new', async () => {
  const config = memoryConfig({ a: HOURLY, 'user:*': { limit: 3, window: '1m' } })
  const limiter = createLimiter({
    config,
    default: DEFAULT,
    maxKeys: 1_000,
    engine: 'pool',
    pool: { maxThreads: 1 },
  })
  const inline = attachLimiter(limiter.share(), { config })
  await limiter.ready()
  assert.is((await limiter.check('a', 2)).remaining, 3)
  assert.is(inline.check('a').remaining, 2)
  assert.is((await limiter.check('user:1')).limit, 3)
  assert.is((await limiter.check('x')).limit, 2)
  const decision = await limiter.check('a')
  assert.is(await limiter.refund(decision), 1)
  assert.is(await limiter.usage('a'), 3)
  const batch = await limiter.checkMany(['a', 'x', 'x', 'user:1'], [3, 1, 1, 2], { remaining: true })
  assert.equal(
    [[...batch.allowed], [...batch.remaining!]],
    [
      [0, 1, 0, 1],
      [2, 0, 0, 0],
    ],
  )
  await config.put('a', { limit: 9, window: '2h' })
  assert.is((await limiter.check('a')).remaining, 5)
  const reservation = await limiter.reserve('a', 2)
  await reservation.cancel()
  assert.is((await limiter.peek('a')).remaining, 5)
  assert.is(await limiter.block('a', '1h'), true)
  await config.put('a', { limit: 10, window: '3h' })
  assert.is((await limiter.check('a', 0)).allowed, false)
  assert.is(await limiter.unblock('a'), true)
  assert.is((await limiter.stats()).config?.windows, 4)
  await limiter.clear('a')
  assert.is(await limiter.usage('a'), 0)
  const handle = limiter.handle('user:1')
  assert.is((await limiter.check(handle)).allowed, false)
  await inline.close()
  await limiter.close()
})

test.run()
