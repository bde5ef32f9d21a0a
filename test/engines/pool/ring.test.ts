// run: modules
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PoolRequest } from '#millrace/engines/pool/request.js'
import { RingClient } from '#millrace/engines/pool/ring-client.js'
import { type RingHandler, RingServer } from '#millrace/engines/pool/ring-server.js'
import { ASLEEP, ENDED, kindOf, REQUESTED, STATE } from '#millrace/engines/pool/ring-transport.js'
import { Threads } from '#millrace/engines/pool/threads.js'
import { ACCEPTED, COMPLETED, NUMBER, Op, REPLIED } from '#millrace/memory/request-ring.js'
import { assertIsError, resolved, settled, until } from '../../limiter/support.js'

const LONG_MS = 60_000

const ENGINE = { ruleName: 'default' }

const handlerOf = (handle: (slot: number) => number): RingHandler => ({
  handle,
  handleMany: (from) => from,
  beforeSleep() {},
})

function enqueue(client: RingClient): PoolRequest {
  const request = new PoolRequest(ENGINE, Op.PENALIZE, 1, 2, 1)
  client.enqueue(request)
  return request
}

/** A worker, a ring, and the run of a server that has replied once. */
async function startServer(idleMs: number, maxThreads = 1) {
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20 }).share()
  const threads = new Threads({ minThreads: 1, maxThreads, resourceLimits: undefined })
  const client = new RingClient(1, ENGINE)
  const { words, buffer: ring } = client.memory
  const request = enqueue(client)
  assert.ok(client.publish(), 'no server runs yet')
  const task = { id: client.id, ring, limiter, idleMs, generation: client.generation }
  const run = threads.run(task, () => client.cancelStart(task.generation))
  await until(() => client.readReplies() > 0, 'the reply')
  await resolved(request.promise)
  return { threads, client, task, run, state: () => kindOf(Atomics.load(words, STATE)) }
}

test('an idle server sleeps; a request wakes it, and so does close', async () => {
  const { threads, client, run, state } = await startServer(LONG_MS)
  await until(() => state() === ASLEEP, 'sleep')
  const request = enqueue(client)
  assert.not(client.publish(), 'the server only sleeps')
  await until(() => client.readReplies() > 0, 'the reply of the woken server')
  await resolved(request.promise)
  await until(() => state() === ASLEEP, 'sleep again')
  client.close()
  await resolved(run)
  assert.is(state(), ENDED)
  await threads.close()
})

test('a server ends after idleMs without a request', async () => {
  const { threads, run, state } = await startServer(1)
  await resolved(run)
  assert.is(state(), ENDED)
  await threads.close()
})

test('a server whose start was cancelled leaves the ring alone; the start of a running server is not cancelled', () => {
  const client = new RingClient(1, ENGINE)
  const answers: number[] = []
  const run = (generation: number) =>
    new RingServer(client.memory, generation, 1).run(handlerOf((slot) => answers.push(slot)))
  enqueue(client)
  assert.ok(client.publish())
  assert.ok(client.cancelStart(1))
  run(1)
  assert.equal(answers, [])
  assert.ok(client.publish(), 'the client must start another server')
  run(1)
  assert.equal(answers, [])
  run(2)
  assert.is(answers.length, 1)
  assert.not(client.cancelStart(2))
})

test('threads that die at start-up in a row leave a working thread alone', async () => {
  const { threads, client, task, run } = await startServer(LONG_MS, 2)
  const end = (thread: Worker) => void thread.terminate()
  process.on('worker', end)
  const other = new RingClient(2, ENGINE)
  enqueue(other)
  assert.ok(other.publish())
  const lost = await settled(
    threads.run({ ...task, id: 2, ring: other.memory.buffer }, () => other.cancelStart(other.generation)),
  )
  process.off('worker', end)
  assertIsError((lost as PromiseRejectedResult).reason, 'ERR_MILLRACE_NO_THREADS', 'engine')
  const request = enqueue(client)
  client.publish()
  await until(() => client.readReplies() > 0, 'the reply of the working thread')
  await resolved(request.promise)
  client.close()
  await resolved(run)
  await threads.close()
})

for (const when of ['before', 'meanwhile'] as const) {
  test(`closing waits for a thread that broke ${when} and has not exited, and leaves none`, async () => {
    const living = new Set<Worker>()
    const meet = (thread: Worker) => {
      living.add(thread)
      thread.once('exit', () => living.delete(thread))
    }
    process.on('worker', meet)
    const { threads, client, run } = await startServer(LONG_MS)
    client.close()
    await resolved(run)
    const [thread] = living
    const end = thread!.terminate.bind(thread)
    thread!.terminate = async () => 0 // as one that takes its time
    if (when === 'before') thread!.emit('error', new Error('broken'))
    let isClosed = false
    const closed = threads.close().then(() => {
      isClosed = true
    })
    if (when === 'meanwhile') thread!.emit('error', new Error('broken'))
    // Time enough for all others to end.
    for (let i = 0; i < 5; i++) await once(new Worker('', { eval: true }), 'exit')
    const wasClosed = isClosed
    await end()
    await resolved(closed)
    await once(new Worker('', { eval: true }), 'exit')
    process.off('worker', meet)
    assert.equal([...living], [])
    assert.not(wasClosed)
  })
}

test('a pending wait for a reply resolves with the next reply, if the worker died just before its wake-up', async () => {
  const client = new RingClient(1, ENGINE)
  const { words } = client.memory
  const request = enqueue(client)
  assert.ok(client.publish())
  const woken = client.waitForReply()!
  // The worker published a reply and read WAITING, but died before it woke the client.
  words[ACCEPTED] = 1
  words[COMPLETED] = 1
  Atomics.store(words, REPLIED, 1)
  client.readReplies()
  client.failInFlight(new Error('the end'))
  await resolved(request.promise)
  enqueue(client)
  assert.ok(client.publish())
  new RingServer(client.memory, client.generation, 1).run(handlerOf(() => 1))
  await resolved(woken)
})

test('of a worker that died, finished replies that it had not published count; only the request in flight is lost', async () => {
  const client = new RingClient(1, ENGINE)
  const { words, doubles } = client.memory
  const [done, lost, left] = [enqueue(client), enqueue(client), enqueue(client)]
  assert.ok(client.publish())
  doubles[client.memory.slot(0) / 2 + NUMBER] = 7
  words[ACCEPTED] = 2
  words[COMPLETED] = 1
  client.publishFinished()
  assert.is(client.readReplies(), 1)
  assert.is(await resolved(done.promise), 7)
  assert.is(client.failInFlight(new Error('the end')), 1)
  assert.is((await settled(lost.promise)).status, 'rejected')
  assert.ok(client.publish(), 'the client must start the next server')
  const answers: number[] = []
  new RingServer(client.memory, client.generation, 1).run(handlerOf((slot) => answers.push(slot)))
  assert.equal(answers, [client.memory.slot(2)])
  assert.is(client.readReplies(), 1)
  await resolved(left.promise)
})

test('a server that resumes late does not repeat what its successor has handled', () => {
  const client = new RingClient(1, ENGINE)
  const { memory } = client
  const { words } = memory
  const answers: string[] = []
  const serverOf = (generation: number) => new RingServer(memory, generation, 1)
  enqueue(client)
  assert.ok(client.publish())
  const first = serverOf(1)
  const { load } = Atomics
  // The first server stops between its end and its last read of REQUESTED, while a second one begins and
  // ends.
  let isHeldUp = false
  Atomics.load = ((array: Int32Array, index: number) => {
    if (array === words && index === REQUESTED && kindOf(load(words, STATE)) === ENDED && !isHeldUp) {
      isHeldUp = true
      enqueue(client)
      assert.ok(client.publish())
      serverOf(2).run(handlerOf((slot) => answers.push(`second: ${slot}`)))
    }
    return load(array, index)
  }) as typeof load
  try {
    first.run(handlerOf((slot) => answers.push(`first: ${slot}`)))
  } finally {
    Atomics.load = load
  }
  assert.ok(isHeldUp)
  assert.equal(answers, [`first: ${memory.slot(0)}`, `second: ${memory.slot(1)}`])
})

test.run()
