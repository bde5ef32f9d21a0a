// run: once, modules
// Rings of a pool of which a bit of a word is wrong. Every call settles, is counted if it is rejected, and the pool
// goes on.
import { createLimiter, type MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PoolRequest } from '#millrace/engines/pool/request.js'
import { RingClient } from '#millrace/engines/pool/ring-client.js'
import { RingServer } from '#millrace/engines/pool/ring-server.js'
import {
  ENDED,
  kindOf,
  REQUESTED,
  type RingMemory,
  STATE,
  WAITING,
} from '#millrace/engines/pool/ring-transport.js'
import { ACCEPTED, COMPLETED, Op, REPLIED } from '#millrace/memory/request-ring.js'
import { assertRejects, resolved, until } from '../../limiter/support.js'

const WORDS = { REQUESTED, ACCEPTED, COMPLETED, REPLIED, WAITING, STATE }

const warnings: Error[] = []
process.on('warning', (warning) => warnings.push(warning))

/** The memory of the ring by which the next pool sends its requests. */
function nextRing(): Promise<RingMemory> {
  const { publish } = RingClient.prototype
  return new Promise((resolve) => {
    RingClient.prototype.publish = function (this: RingClient) {
      RingClient.prototype.publish = publish
      resolve(this.memory)
      return publish.call(this)
    }
  })
}

const RULES = {
  'one rule': { limit: 1_000_000, window: '1h' },
  'several rules': {
    rules: [
      { name: 'hour', limit: 1_000_000, window: '1h' },
      { name: 'day', limit: 1_000_000, window: '1d' },
    ],
  },
} as const

for (const [name, rules] of Object.entries(RULES)) {
  for (const [word, at] of Object.entries(WORDS)) {
    test(`${name}: calls settle after any flipped bit of ${word}, and the pool goes on`, async () => {
      const ring = nextRing()
      const pool = { minThreads: 1, maxThreads: 1 } as const
      const limiter = createLimiter({
        ...rules,
        maxKeys: 20,
        engine: 'pool',
        pool,
      } as never) as never as Pooled
      await limiter.ready()
      const { words } = await ring
      let rejected = 0
      const settle = async (calls: readonly Promise<unknown>[]) => {
        for (const result of await resolved(Promise.allSettled(calls))) {
          if (result.status === 'fulfilled') continue
          assert.is((result.reason as MillraceError).code, 'ERR_MILLRACE_DAMAGED')
          rejected++
        }
      }
      const calls = () => [limiter.check('a'), limiter.checkMany(['b', 'c']), limiter.penalize('d', 1)]
      for (let bit = 0; bit < 32; bit++) {
        for (const turns of [0, 1, 2, 3]) {
          const sent = turns === 0 ? [] : calls()
          for (let turn = 1; turn < turns; turn++) await undefined
          Atomics.xor(words, at, 1 << bit)
          await settle([...sent, ...calls()])
        }
      }
      // A server that has ended, of which the word says something else.
      for (let bit = 0; at === STATE && bit < 3; bit++) {
        await until(() => kindOf(Atomics.load(words, STATE)) === ENDED, 'the end of an idle server')
        Atomics.xor(words, STATE, 1 << bit)
        await settle(calls())
      }
      for (let before = -1; before < rejected; ) {
        before = rejected
        await settle(calls())
      }
      const decision = (await resolved(limiter.check('a'))) as { allowed: boolean; remaining: number }
      assert.ok(decision.allowed && decision.remaining > 900_000)
      const { damaged } = (await limiter.stats()) as { damaged: number }
      assert.is(damaged > 0, rejected > 0)
      const codes = warnings.splice(0).map((warning) => (warning as NodeJS.ErrnoException).code)
      assert.equal(codes, rejected > 0 ? ['ERR_MILLRACE_DAMAGED'] : [])
      await resolved(limiter.close())
    })
  }
}

test('a server that has not seen a request, as REQUESTED was damaged, is followed by another one', async () => {
  const { publish } = RingClient.prototype
  RingClient.prototype.publish = function (this: RingClient) {
    RingClient.prototype.publish = publish
    const isToStart = publish.call(this)
    Atomics.store(this.memory.words, REQUESTED, 0) // the server has not begun yet
    return isToStart
  }
  const limiter = createLimiter({
    limit: 5,
    window: '1h',
    maxKeys: 20,
    engine: 'pool',
    pool: { maxThreads: 1 },
  })
  assert.ok((await resolved(limiter.check('a'))).allowed)
  await limiter.close()
})

test('a server by other cursors than the client ends, and takes no later request for one that it has served', async () => {
  const damage: MillraceError[] = []
  const client = new RingClient(1, { ruleName: 'default' }, (error) => damage.push(error))
  const enqueue = () => {
    const request = new PoolRequest({ ruleName: 'default' }, Op.PENALIZE, 1, 2, 1)
    client.enqueue(request)
    client.publish()
    return request.promise
  }
  const lost = enqueue()
  Atomics.store(client.memory.words, REQUESTED, 2)
  let later: Promise<unknown> | undefined
  const handler = {
    handle: () => 1,
    handleMany: (from: number) => from,
    beforeSleep() {
      if (later === undefined) client.readReplies()
      later ??= enqueue() // without the jump of the cursors, it has the cursor that the server has served
    },
  }
  assert.throws(() => new RingServer(client.memory, 1, 1).run(handler), /words that agree with each other/)
  await assertRejects(() => lost, 'ERR_MILLRACE_DAMAGED', 'memory')
  assert.is(damage.length, 1)
  // As the pool does when the server has died.
  client.publishFinished()
  client.readReplies()
  client.failInFlight(new Error('the server has died'))
  assert.ok(client.publish(), 'another server is to begin')
  new RingServer(client.memory, 2, 1).run({ ...handler, beforeSleep() {} })
  client.readReplies()
  await resolved(later!)
})

interface Pooled {
  ready(): Promise<void>
  check(key: string): Promise<unknown>
  checkMany(keys: readonly string[]): Promise<unknown>
  penalize(key: string, cost: number): Promise<unknown>
  stats(): Promise<unknown>
  close(): Promise<void>
}

test.run()
