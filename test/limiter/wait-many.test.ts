// run: once, own, modules
// How many pending calls each change wakes. Each woken call tries once, and each try counts in
// `stats().denied`.
import { getActiveResourcesInfo } from 'node:process'
import { Worker } from 'node:worker_threads'
import { attachLimiter, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Waiter, WaitQueue } from '#millrace/engines/waits/wait-queue.js'
import { HEADER_WORDS } from '#millrace/memory/layout.js'
import { assertIsError, limiterWith, resolved, settled, turn, until } from './support.js'

const MANY = 5_000

/** A limiter of 5 a minute, and one pending call for each of many keys at their limit. */
function limiterWithMany(count: number) {
  const made = limiterWith({ maxKeys: 2 * count })
  const { limiter } = made
  const waits: Promise<PromiseSettledResult<unknown>>[] = []
  for (let i = 0; i < count; i++) {
    limiter.check(`key ${i}`, 5)
    waits.push(Promise.allSettled([limiter.wait(`key ${i}`)]).then(([outcome]) => outcome!))
  }
  assert.is(limiter.stats().denied, count, 'each has tried once')
  return { ...made, waits }
}

const CHANGES: Record<string, (limiter: Limiter, key: string, used: ReturnType<Limiter['check']>) => void> = {
  'a refund of a decision': (limiter, _, used) => limiter.refund(used),
  'a refund by key': (limiter, key) => limiter.refund(key, 1),
  clear: (limiter, key) => limiter.clear(key),
  unblock: (limiter, key) => limiter.unblock(key),
}
for (const [name, change] of Object.entries(CHANGES)) {
  test(`${name} makes none of ${MANY} calls for other keys try`, async () => {
    const { limiter } = limiterWithMany(MANY)
    const used = limiter.check('other', 5)
    change(limiter, 'other', used)
    for (let i = 0; i < 3; i++) await turn()
    assert.is(limiter.stats().denied, MANY)
    await limiter.close()
  })

  test(`${name} makes one of many calls for that key try`, async () => {
    const { limiter } = limiterWith()
    const used = limiter.check('key', 1)
    limiter.check('key', 4)
    limiter.block('key', '1d')
    for (let i = 0; i < 100; i++) void settled(limiter.wait('key', { cost: 5 }))
    const { denied } = limiter.stats()
    change(limiter, 'key', used)
    await turn()
    assert.is(limiter.stats().denied - denied, 1)
    await limiter.close()
  })
}

test('a changed limit makes every call try, at most 64 keys in one turn of the event loop', async () => {
  const { limiter } = limiterWithMany(1_000)
  let { denied } = limiter.stats()
  limiter.update('default', { limit: 4 })
  for (let tried = 0, turns = 0; tried < 1_000; turns++) {
    assert.ok(turns < 100, `${tried} have tried`)
    await Promise.resolve().then(() => {}) // calls woken in this turn try before the turn ends
    tried = limiter.stats().denied - 1_000
    assert.ok(limiter.stats().denied - denied <= 64, `${limiter.stats().denied - denied} in one turn`)
    denied = limiter.stats().denied
    await turn()
  }
  for (let i = 0; i < 3; i++) await turn()
  assert.is(limiter.stats().denied, 2_000, 'each once')
  await limiter.close()
})

test('a second change of the limit during a sweep reaches the calls that have already tried', async () => {
  const { limiter, waits } = limiterWithMany(200)
  limiter.update('default', { limit: 4 })
  await turn()
  limiter.update('default', { limit: 6 })
  await resolved(Promise.all(waits))
  assert.is(limiter.usage('key 0'), 6)
  assert.is(limiter.usage('key 199'), 6)
})

test('close rejects calls that the sweep of a changed limit has not reached', async () => {
  const { limiter, waits } = limiterWithMany(200)
  limiter.update('default', { limit: 4 })
  await limiter.close()
  for (const outcome of await resolved(Promise.all(waits))) {
    assertIsError((outcome as PromiseRejectedResult).reason, 'ERR_MILLRACE_CLOSED', 'limiter')
  }
})

/** Counts how often `act` starts a wait on a word of shared memory. */
async function countWaits(act: () => Promise<void>): Promise<number> {
  const { waitAsync } = Atomics
  let calls = 0
  Atomics.waitAsync = ((...args: Parameters<typeof waitAsync>) => {
    calls++
    return waitAsync(...args)
  }) as typeof waitAsync
  try {
    await act()
  } finally {
    Atomics.waitAsync = waitAsync
  }
  return calls
}

test('on a manual clock, any number of calls and refunds share one wait for the clock and one for the limit', async () => {
  let made: ReturnType<typeof limiterWithMany> | undefined
  const waits = await countWaits(async () => {
    made = limiterWithMany(1_000)
    for (let i = 0; i < 1_000; i++) {
      made.limiter.refund(`key ${i}`, 1)
      made.limiter.check(`key ${i}`, 1)
      await Promise.resolve()
    }
    await turn()
  })
  assert.is(waits, 2)
  await made!.limiter.close()
})

/**
 * Counts the reads of links between calls in a queue, from when the later call joins. Collects these calls.
 */
function watchLinks() {
  const { push } = WaitQueue.prototype
  const watched = { reads: 0, calls: [] as Waiter[], end: () => (WaitQueue.prototype.push = push) }
  WaitQueue.prototype.push = function (waiting) {
    for (const side of ['previous', 'next'] as const) {
      let link = waiting[side]
      Object.defineProperty(waiting, side, {
        get: () => {
          watched.reads++
          return link
        },
        set: (other: Waiter | undefined) => {
          link = other
        },
      })
    }
    watched.calls.push(waiting)
    push.call(this, waiting)
  }
  return watched
}

test('an abort of many calls removes each by its own two links, regardless of the queue’s length', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  const controller = new AbortController()
  const stays = (i: number) => i % 500 === 3
  const watched = watchLinks()
  for (let i = 0; i < 2_000; i++) {
    void settled(limiter.wait('key', stays(i) ? {} : { signal: controller.signal }))
  }
  watched.end()
  watched.reads = 0
  controller.abort()
  assert.is(watched.reads, 2 * 1_996)
  // The links are the queue: the remaining calls are linked to each other.
  const staying = watched.calls.filter((_, i) => stays(i))
  assert.is(staying.length, 4)
  for (const [i, { previous, next }] of staying.entries()) {
    assert.ok(previous === staying[i - 1] && next === staying[i + 1], `neighbours of call ${i}`)
  }
  await limiter.close()
})

test('one abort of many calls for a key rejects each of them, and the others keep their order', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  const controller = new AbortController()
  const served: number[] = []
  const aborted: Promise<PromiseSettledResult<unknown>[]>[] = []
  for (let i = 0; i < 2_000; i++) {
    if (i % 500 === 3) void limiter.wait('key').then(() => served.push(i))
    else aborted.push(Promise.allSettled([limiter.wait('key', { signal: controller.signal })]))
  }
  const { denied } = limiter.stats()
  controller.abort('enough')
  for (const [outcome] of await resolved(Promise.all(aborted))) {
    assert.equal(outcome, { status: 'rejected', reason: 'enough' })
  }
  assert.is(limiter.stats().denied - denied, 1, 'only the new first call tries')
  limiter.refund('key', 5)
  await until(() => served.length === 4, 'the others')
  assert.equal(served, [3, 503, 1_003, 1_503])
})

test('a limit raised by another limiter on the same memory wakes calls here', async () => {
  const { limiter } = limiterWith()
  const attached = attachLimiter(limiter.share())
  limiter.check('key', 5)
  const waiting = limiter.wait('key')
  attached.update('default', { limit: 6 })
  assert.ok((await resolved(waiting)).allowed)
  const there = attached.wait('key')
  limiter.update('default', { limit: 7 })
  assert.ok((await resolved(there)).allowed)
})

test('a limit lowered by another thread rejects a call that can no longer be admitted', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  const waiting = settled(limiter.wait('key', { cost: 5 }))
  const program = `
    const { workerData } = require('node:worker_threads')
    import(workerData.millrace).then(async ({ attachLimiter }) => {
      const limiter = attachLimiter(workerData.shared)
      limiter.update('default', { limit: 4 })
      await limiter.close()
    })`
  const workerData = { millrace: import.meta.resolve('millrace'), shared: limiter.share() }
  const worker = new Worker(program, { eval: true, workerData })
  const outcome = await waiting
  assert.is(outcome.status, 'rejected')
  assertIsError((outcome as PromiseRejectedResult).reason, 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  await worker.terminate()
})

test('an attached limiter that closes wakes no calls', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  const waiting = limiter.wait('key')
  const attached = attachLimiter(limiter.share())
  const other = settled(attached.wait('key'))
  assert.is(attached.stats().denied, 1)
  assert.is(limiter.stats().denied, 2)
  await attached.close()
  await other
  for (let i = 0; i < 3; i++) await turn()
  assert.is(limiter.stats().denied, 2)
  limiter.clear('key')
  await resolved(waiting)
})

test('close leaves no wait on the memory, and no timer', async () => {
  const { limiter } = limiterWith({ clock: manualClock(1e6) })
  const shared = limiter.share()
  const timers = () => getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  limiter.check('key', 5)
  const waiting = settled(limiter.wait('key'))
  await limiter.close()
  await waiting
  await turn()
  const pending = (memory: ArrayBufferLike) => {
    const words = new Int32Array(memory, 0, Math.min(memory.byteLength / 4, HEADER_WORDS))
    return words.reduce((sum, _, i) => sum + Atomics.notify(words, i), 0)
  }
  assert.equal([pending(shared.buffer), pending(shared.clock as SharedArrayBuffer), timers()], [0, 0, before])
})

test.run()
