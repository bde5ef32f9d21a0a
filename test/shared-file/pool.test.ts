// run: modules
import { closeSync, openSync, readFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
import { type AsyncLimiter, createLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { neededAddon } from '#millrace/native/addon.js'
import { assertIsError, assertRaises, settled } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

/** The same value as in piscina. */
const workerThreads: typeof import('node:worker_threads') = createRequire(import.meta.url)(
  'node:worker_threads',
)

const at = folder()

const pooled = (file: string, limit: number) =>
  createLimiter({
    limit,
    window: '1h',
    maxKeys: 100,
    shared: { file },
    engine: 'pool',
    pool: { minThreads: 2 },
  })

test('pools with one file share a limit, also when their threads start again', async () => {
  const file = at('pools')
  const one = pooled(file, 1_000)
  const other = pooled(file, 1_000)
  const keys = ['a', 'b', 'c']
  const pending = Array.from({ length: 600 }, (_, i) =>
    keys.map((key) => (i % 2 === 0 ? one : other).check(key)),
  )
  const admitted = (await Promise.all(pending.flat())).filter(({ allowed }) => allowed).length
  assert.is(admitted, 1_800)
  const batch = await other.checkMany(Array(600).fill('b'))
  assert.is(
    batch.allowed.reduce((sum, one) => sum + one, 0),
    400,
  )
  await Promise.all([one.close(), other.close()])
  const later = pooled(file, 1_000)
  assert.equal([await later.usage('a'), (await later.check('b')).allowed], [600, false])
  await later.close()
})

if (process.platform === 'linux')
  test('a closed pool maps its file in no thread, and answers earlier requests', async () => {
    const file = at('closed')
    const mappings = () => readFileSync('/proc/self/maps', 'utf8').split(file).length - 1
    const limiter = pooled(file, 5)
    await limiter.ready()
    assert.is(mappings(), 3)
    const [decision, waiting] = [limiter.check('a', 5), settled(limiter.wait('a', { cost: 5 }))]
    const [stats, refunded] = [limiter.stats(), limiter.refund('a', 2)]
    await limiter.close()
    assert.is(mappings(), 0)
    assert.is((await decision).remaining, 0)
    assert.is((await stats).allowed, 1)
    assert.is(await refunded, 2)
    assertIsError(((await waiting) as PromiseRejectedResult).reason, 'ERR_MILLRACE_CLOSED', 'limiter')
  })

/** Threads started by the pools of this process. */
const threads = new Set<Worker>()
process.on('worker', (thread) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})

test('a batch with a lost part rejects, and says that the rest may be charged', async () => {
  const file = at('gone')
  const limiter = pooled(file, 5)
  assert.ok((await limiter.check('a')).allowed) // decided by one thread; the other has never opened the file
  renameSync(file, `${file}.away`)
  const keys = Array.from({ length: 90 }, (_, i) => `${i}`)
  const { reason } = (await settled(limiter.checkMany(keys))) as PromiseRejectedResult
  assert.is(assertIsError(reason, 'ERR_MILLRACE_NO_THREADS', 'engine').mayBeCharged, true)
  renameSync(`${file}.away`, file)
  const used = await Promise.all(keys.map((key) => limiter.usage(key)))
  const charged = used.reduce((sum, one) => sum + one)
  assert.ok(charged > 0 && charged < 90, `${charged} of 90`)
  await limiter.close()
})

test('a decision whose refund failed can be refunded later', async () => {
  const file = at('gone for a while')
  const limiter = createLimiter({ limit: 5, window: '1h', maxKeys: 100, shared: { file }, engine: 'pool' })
  const decision = await limiter.check('a', 3)
  renameSync(file, `${file}.away`)
  await Promise.all([...threads].map((thread) => thread.terminate()))
  const { reason } = (await settled(limiter.refund(decision))) as PromiseRejectedResult
  assert.is(assertIsError(reason, 'ERR_MILLRACE_NO_THREADS', 'engine').mayBeCharged, false)
  renameSync(`${file}.away`, file)
  assert.is(await limiter.refund(decision), 3)
  assert.is(await limiter.usage('a'), 0)
  await limiter.close()
})

const RULES = [
  { name: 'minute', limit: 500, window: '1m' },
  { name: 'hourly', limit: 900, window: '1h' },
]
const severalIn = (file: string) =>
  createLimiter({ rules: RULES, maxKeys: 100, shared: { file }, engine: 'pool', pool: { minThreads: 2 } })

test('pools with one file share several rules, all or nothing, and so does a limiter without a pool', async () => {
  const file = at('several rules')
  const [one, other] = [severalIn(file), severalIn(file)]
  const usages = (limiter: AsyncLimiter) =>
    Promise.all(RULES.map(({ name }) => limiter.usage('a', undefined, { rule: name })))
  const decisions = await Promise.all(Array.from({ length: 600 }, (_, i) => [one, other][i % 2]!.check('a')))
  assert.is(decisions.filter(({ allowed }) => allowed).length, 500)
  assert.equal(await usages(one), [500, 500])
  await one.update('minute', { limit: 2_000 })
  const batch = await other.checkMany(Array(600).fill('a'))
  assert.is(
    batch.allowed.reduce((sum, each) => sum + each, 0),
    400,
  )
  assert.is((await one.check('a')).rule, 'hourly')
  const inline = createLimiter({ rules: RULES, maxKeys: 100, shared: { file } })
  assert.equal([inline.check('a').rule, inline.rules.map(({ limit }) => limit)], ['minute', [500, 900]])
  await Promise.all([one.close(), other.close(), inline.close()])
  const later = severalIn(file)
  assert.equal(await usages(later), [900, 900])
  await later.close()
})

test('a decision of several rules whose refund failed can be refunded later, in all of them', async () => {
  const file = at('several rules, gone for a while')
  const limiter = severalIn(file)
  const decision = await limiter.check('a', 3)
  renameSync(file, `${file}.away`)
  await Promise.all([...threads].map((thread) => thread.terminate()))
  const { reason } = (await settled(limiter.refund(decision))) as PromiseRejectedResult
  assert.is(assertIsError(reason, 'ERR_MILLRACE_NO_THREADS', 'engine').mayBeCharged, false)
  renameSync(`${file}.away`, file)
  assert.is(await limiter.refund(decision), 3)
  for (const { name } of RULES) assert.is(await limiter.usage('a', undefined, { rule: name }), 0)
  await limiter.close()
})

test('a pool whose threads cannot start releases the lock of the file', () => {
  const file = at('without threads')
  const { Worker } = workerThreads
  workerThreads.Worker = class {
    constructor() {
      throw new Error('no more threads')
    }
  } as never
  try {
    assertRaises(() => pooled(file, 5), 'ERR_MILLRACE_NO_THREADS', 'engine')
  } finally {
    workerThreads.Worker = Worker
  }
  const descriptor = openSync(file, 'r+')
  assert.is(neededAddon('shared', file).files!.lock(descriptor, true), 'alone')
  closeSync(descriptor)
})

test.run()
