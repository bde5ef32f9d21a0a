import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PoolRequest } from '#millrace/engines/request.js'
import { RingClient } from '#millrace/engines/ring-client.js'
import { type RingHandler, RingServer } from '#millrace/engines/ring-server.js'
import { ASKED, ASLEEP, ENDED, kindOf, STATE } from '#millrace/engines/ring-transport.js'
import { Threads } from '#millrace/engines/threads.js'
import { ANSWERED, BEGUN, DONE, NUMBER, Op } from '#millrace/memory/request-ring.js'
import { assertIsError, resolved, settled, until } from '../../limiter/support.js'

const LONG_MS = 60_000

const ENGINE = { ruleName: 'default' }

const answeringBy = (answer: (slot: number) => number): RingHandler => ({
  answer,
  answerMany: (from) => from,
  rest() {},
})

function enqueue(client: RingClient): PoolRequest {
  const request = new PoolRequest(ENGINE, Op.PENALIZE, 1, 2, 1)
  client.put(request)
  return request
}

/** A thread, a ring, and the run of an answerer that has answered once. */
async function answering(idleMs: number, maxThreads = 1) {
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20 }).share()
  const threads = new Threads({ minThreads: 1, maxThreads, resourceLimits: undefined })
  const client = new RingClient(1, ENGINE)
  const { words, buffer: ring } = client.memory
  const request = enqueue(client)
  assert.ok(client.send(), 'nobody answers yet')
  const task = { id: client.id, ring, limiter, idleMs, start: client.starts }
  const run = threads.run(task, () => client.giveUp(task.start))
  await until(() => client.settle() > 0, 'the answer')
  await resolved(request.promise)
  return { threads, client, task, run, state: () => kindOf(Atomics.load(words, STATE)) }
}

test('an answerer without work sleeps; it is woken by a request, or to end', async () => {
  const { threads, client, run, state } = await answering(LONG_MS)
  await until(() => state() === ASLEEP, 'sleep')
  const request = enqueue(client)
  assert.not(client.send(), 'it is only asleep')
  await until(() => client.settle() > 0, 'the answer of one that slept')
  await resolved(request.promise)
  await until(() => state() === ASLEEP, 'sleep again')
  client.close()
  await resolved(run)
  assert.is(state(), ENDED)
  await threads.close()
})

test('an answerer that has slept for long ends by itself', async () => {
  const { threads, run, state } = await answering(1)
  await resolved(run)
  assert.is(state(), ENDED)
  await threads.close()
})

test('an answerer that comes after it was given up leaves the ring alone; one that has come is not given up', () => {
  const client = new RingClient(1, ENGINE)
  const answers: number[] = []
  const come = (start: number) =>
    new RingServer(client.memory, start, 1).run(answeringBy((slot) => answers.push(slot)))
  enqueue(client)
  assert.ok(client.send())
  assert.ok(client.giveUp(1))
  come(1)
  assert.equal(answers, [])
  assert.ok(client.send(), 'another is to be started')
  come(1)
  assert.equal(answers, [])
  come(2)
  assert.is(answers.length, 1)
  assert.not(client.giveUp(2))
})

test('threads that end while they start, one after another, do not end one that is at work', async () => {
  const { threads, client, task, run } = await answering(LONG_MS, 2)
  const end = (thread: Worker) => void thread.terminate()
  process.on('worker', end)
  const other = new RingClient(2, ENGINE)
  enqueue(other)
  assert.ok(other.send())
  const lost = await settled(
    threads.run({ ...task, id: 2, ring: other.memory.buffer }, () => other.giveUp(other.starts)),
  )
  process.off('worker', end)
  assertIsError((lost as PromiseRejectedResult).reason, 'ERR_MILLRACE_NO_THREADS', 'engine')
  const request = enqueue(client)
  client.send()
  await until(() => client.settle() > 0, 'the answer of the one that was at work')
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
    const { threads, client, run } = await answering(LONG_MS)
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

test('who waits for an answer hears of the next one, where a thread died that was just going to tell', async () => {
  const client = new RingClient(1, ENGINE)
  const { words } = client.memory
  const request = enqueue(client)
  assert.ok(client.send())
  const told = client.nextAnswer()!
  // The last that a thread does: it has seen that somebody waits, and told nobody.
  words[BEGUN] = 1
  words[DONE] = 1
  Atomics.store(words, ANSWERED, 1)
  client.settle()
  client.failInFlight(new Error('the end'))
  await resolved(request.promise)
  enqueue(client)
  assert.ok(client.send())
  new RingServer(client.memory, client.starts, 1).run(answeringBy(() => 1))
  await resolved(told)
})

test('of a thread that died, what it had done and not shown is an answer; only what it was at is lost', async () => {
  const client = new RingClient(1, ENGINE)
  const { words, doubles } = client.memory
  const [done, lost, left] = [enqueue(client), enqueue(client), enqueue(client)]
  assert.ok(client.send())
  doubles[client.memory.slot(0) / 2 + NUMBER] = 7
  words[BEGUN] = 2
  words[DONE] = 1
  client.recover()
  assert.is(client.settle(), 1)
  assert.is(await resolved(done.promise), 7)
  assert.is(client.failInFlight(new Error('the end')), 1)
  assert.is((await settled(lost.promise)).status, 'rejected')
  assert.ok(client.send(), 'the next one is to be started')
  const answers: number[] = []
  new RingServer(client.memory, client.starts, 1).run(answeringBy((slot) => answers.push(slot)))
  assert.equal(answers, [client.memory.slot(2)])
  assert.is(client.settle(), 1)
  await resolved(left.promise)
})

test('an answerer that wakes late does not answer again what its successor has answered', () => {
  const client = new RingClient(1, ENGINE)
  const { memory } = client
  const { words } = memory
  const answers: string[] = []
  const answererOf = (start: number) => new RingServer(memory, start, 1)
  enqueue(client)
  assert.ok(client.send())
  const first = answererOf(1)
  const { load } = Atomics
  // Between its end and its last look for requests, it is held up so long that another one comes and goes.
  let isHeldUp = false
  Atomics.load = ((array: Int32Array, index: number) => {
    if (array === words && index === ASKED && kindOf(load(words, STATE)) === ENDED && !isHeldUp) {
      isHeldUp = true
      enqueue(client)
      assert.ok(client.send())
      answererOf(2).run(answeringBy((slot) => answers.push(`second: ${slot}`)))
    }
    return load(array, index)
  }) as typeof load
  try {
    first.run(answeringBy((slot) => answers.push(`first: ${slot}`)))
  } finally {
    Atomics.load = load
  }
  assert.ok(isHeldUp)
  assert.equal(answers, [`first: ${memory.slot(0)}`, `second: ${memory.slot(1)}`])
})

test.run()
