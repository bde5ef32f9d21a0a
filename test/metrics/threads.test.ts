// run: own
// The main thread has the numbers of all threads: sums of what each has decided, the largest of what they share.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createLimiter, type Limiter } from 'millrace'
import { register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { of, scrape, sum } from './scrape.js'
import type { ThreadData } from './thread.js'

const RULES = { limit: 1, window: '1h' } as const
const DECISIONS = 'millrace_decisions_total'

interface Thread {
  readonly gate: Int32Array<SharedArrayBuffer>
  readonly worker: Worker
  /** Sends an order, and waits for an answer. */
  ask(order: unknown): Promise<void>
}

async function startThread(limiter: Limiter, by: ThreadData['by'] = 'register'): Promise<Thread> {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const workerData: ThreadData = { share: limiter.share(), by, gate }
  const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData })
  await once(worker, 'message')
  const ask = async (order: unknown): Promise<void> => {
    worker.postMessage(order)
    await once(worker, 'message')
  }
  return { gate, worker, ask }
}

const total = async (registry: Registry): Promise<number> => sum(of(await scrape(registry), DECISIONS))

test('the main thread adds up what threads have decided, and takes the largest of what they share', async () => {
  const limiter = createLimiter(RULES)
  const registry = new Registry()
  const early = await startThread(limiter)
  register({ api: limiter }, registry)
  const late = await startThread(limiter, 'observe')
  limiter.check('key 0')
  await early.ask(10)
  await late.ask(10)
  await poll(async () => (await total(registry)) === 21, 'the sums of three threads')
  const series = await scrape(registry)
  assert.is(series.get(`${DECISIONS}{limiter=api,outcome=admitted,store=memory}`), 10)
  assert.is(series.get(`${DECISIONS}{limiter=api,outcome=refused,store=memory}`), 11)
  assert.is(series.get('millrace_table_keys{limiter=api}'), 10)
  assert.is(sum(of(series, 'millrace_shared_decisions_total')), 21)

  early.worker.postMessage('leave')
  await once(early.worker, 'exit')
  assert.is(await total(registry), 21, 'what a thread had counted stays')
  await late.ask(5)
  await late.ask('end')
  late.worker.postMessage('leave')
  await once(late.worker, 'exit')
  assert.is(await total(registry), 26, 'a thread sends its last numbers when it ends the registration')
})

test('a thread that stands still is left out until it answers again, and counts once', async () => {
  const limiter = createLimiter(RULES)
  const registry = new Registry()
  register({ api: limiter }, registry)
  const thread = await startThread(limiter)
  const before = await total(registry)
  await thread.ask(3)
  await poll(async () => (await total(registry)) - before === 3, 'the counts of the thread')
  await thread.ask(2)
  await thread.ask('stand still')
  assert.is((await total(registry)) - before, 3, 'the numbers that it sent last')
  Atomics.store(thread.gate, 0, 1)
  Atomics.notify(thread.gate, 0)
  await once(thread.worker, 'message')
  await poll(async () => (await total(registry)) - before === 5, 'the new counts of the thread')
  await thread.worker.terminate()
  assert.is((await total(registry)) - before, 5)
})

test.run()
