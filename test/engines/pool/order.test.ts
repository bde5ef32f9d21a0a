// run: also-full
import { Worker } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../../size.js'
import { pooled } from '../both.js'

const ROUNDS = sized({ quick: 2, full: 4 })

test('the decisions of a key are made in the order of the calls, by any number of threads', async () => {
  for (const threads of sized({ quick: [2], full: [1, 2, 3] })) {
    await using made = pooled({ limit: 500, maxKeys: 100 }, { minThreads: threads, maxThreads: threads })
    const { limiter } = made
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
    const asked = Array.from({ length: 600 }, () => keys.map((key) => limiter.check(key)))
    for (const [i, decisions] of asked.entries()) {
      for (const decision of await Promise.all(decisions)) {
        assert.equal([decision.allowed, decision.remaining], [i < 500, Math.max(0, 499 - i)])
      }
    }
  }
})

test('a key keeps its order across single decisions, batches and changes that are not awaited', async () => {
  await using made = pooled({ limit: 10 }, { minThreads: 2, maxThreads: 2 })
  const { limiter } = made
  const answers = await Promise.all([
    limiter.check('key', 4),
    limiter.checkMany(['key', 'other', 'key'], [3, 10, 4], { remaining: true }),
    limiter.refund('key', 6),
    limiter.check('key', 9),
    limiter.usage('key'),
    limiter.clear('key'),
    limiter.check('key', 10),
  ])
  const [first, batch, refunded, second, used, , third] = answers
  assert.is(first.remaining, 6)
  assert.equal([...batch.allowed], [1, 1, 0])
  assert.equal([...batch.remaining!], [3, 0, 3])
  assert.equal([refunded, second.allowed, second.remaining, used], [6, true, 0, 10])
  assert.ok(third.allowed)
})

test('calls beyond the capacity of the rings wait and keep their order while threads are added', async () => {
  await using made = pooled({ limit: 100_000, maxKeys: 1_000 }, { minThreads: 1, maxThreads: 3 })
  const { limiter } = made
  const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
  for (let round = 0; round < ROUNDS; round++) {
    const asked = Array.from({ length: 10_000 }, (_, i) => limiter.check(keys[i % 50]!))
    const batches = Array.from({ length: 4 }, () =>
      limiter.checkMany(
        Array.from({ length: 10_000 }, (_, i) => keys[i % 50]!),
        1,
        { remaining: true },
      ),
    )
    const before = 100_000 - round * 1_000
    for (const [i, { remaining }] of (await Promise.all(asked)).entries()) {
      assert.is(remaining, before - Math.floor(i / 50) - 1)
    }
    for (const [nth, batch] of (await Promise.all(batches)).entries()) {
      for (const [i, remaining] of batch.remaining!.entries()) {
        assert.is(remaining, before - 200 * (nth + 1) - Math.floor(i / 50) - 1)
      }
    }
  }
  assert.is(await limiter.usage('key-7'), 1_000 * ROUNDS)
})

test('a thread that decides inline on the same memory sees the same counts', async () => {
  await using made = pooled({ limit: 10 })
  const { limiter } = made
  const here = attachLimiter(limiter.share())
  assert.ok((await limiter.check('key', 4)).allowed)
  assert.is(here.check('key', 4).remaining, 2)
  const there = await checkedThere(limiter.share())
  assert.equal(there, { allowed: true, remaining: 1 })
  assert.equal([(await limiter.check('key', 2)).allowed, (await limiter.check('key')).remaining], [false, 0])
  await here.close()
})

function checkedThere(shared: unknown): Promise<unknown> {
  const source = `
    import { parentPort, workerData } from 'node:worker_threads'
    import { attachLimiter } from '${import.meta.resolve('millrace')}'
    const { allowed, remaining } = attachLimiter(workerData).check('key')
    parentPort.postMessage({ allowed, remaining })`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    workerData: shared,
  })
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

test.run()
