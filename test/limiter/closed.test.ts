// run: once
import { attachLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, limiterWith, resolved } from './support.js'

type Async = 'wait' | 'checkAsync' | 'ready' | 'close' | typeof Symbol.asyncDispose

/** Every member of a limiter that returns no promise. A member that is missing here is a compile error. */
const MEMBERS: Record<Exclude<keyof Limiter, Async>, (limiter: Limiter) => unknown> = {
  check: (limiter) => limiter.check('key'),
  checkOrThrow: (limiter) => limiter.checkOrThrow('key'),
  reserve: (limiter) => limiter.reserve('key', 1),
  peek: (limiter) => limiter.peek('key'),
  checkMany: (limiter) => limiter.checkMany([]),
  pack: (limiter) => limiter.pack([]),
  handle: (limiter) => limiter.handle('key'),
  usage: (limiter) => limiter.usage('key'),
  refund: (limiter) => limiter.refund('key', 1),
  penalize: (limiter) => limiter.penalize('key', 1),
  block: (limiter) => limiter.block('key', 1),
  unblock: (limiter) => limiter.unblock('key'),
  clear: (limiter) => limiter.clear('key'),
  clearAll: (limiter) => limiter.clearAll(),
  update: (limiter) => limiter.update('default', { limit: 1 }),
  rule: (limiter) => limiter.rule,
  rules: (limiter) => limiter.rules,
  share: (limiter) => limiter.share(),
  stats: (limiter) => limiter.stats(),
  top: (limiter) => limiter.top({ by: 'refused' }),
}

for (const [name, act] of Object.entries(MEMBERS)) {
  test(`${name} of a closed limiter throws ERR_MILLRACE_CLOSED`, async () => {
    const { limiter } = limiterWith()
    act(limiter)
    await resolved(limiter.close())
    assertRaises(() => act(limiter), 'ERR_MILLRACE_CLOSED', 'limiter')
  })
}

test('wait, checkAsync and ready of a closed limiter reject with ERR_MILLRACE_CLOSED', async () => {
  const { limiter } = limiterWith()
  await resolved(limiter.ready())
  await resolved(limiter.close())
  await assertRejects(() => limiter.ready(), 'ERR_MILLRACE_CLOSED', 'limiter')
  await assertRejects(() => limiter.wait('key'), 'ERR_MILLRACE_CLOSED', 'limiter')
  await assertRejects(() => limiter.checkAsync('key'), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('bad input to a closed limiter is reported as ERR_MILLRACE_CLOSED', async () => {
  const { limiter } = limiterWith()
  await resolved(limiter.close())
  assertRaises(() => limiter.check(5 as never, -1), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('a closed limiter refuses its own handles, packed keys and decisions', async () => {
  const { limiter } = limiterWith()
  const handle = limiter.handle('key')
  const packed = limiter.pack(['key'])
  const decision = limiter.check(handle)
  await resolved(limiter.close())
  assertRaises(() => limiter.check(handle), 'ERR_MILLRACE_CLOSED', 'limiter')
  assertRaises(() => limiter.checkMany(packed), 'ERR_MILLRACE_CLOSED', 'limiter')
  assertRaises(() => limiter.refund(decision), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('decisions and batches can still be read after closing', async () => {
  const { limiter } = limiterWith()
  const decision = limiter.check('key', 5)
  const refused = limiter.check('key')
  const batch = limiter.checkMany(['key'])
  await resolved(limiter.close())
  assert.is(decision.remaining, 0)
  assert.is(refused.retryAfterMs, batch.retryAfterMs(0))
  assert.ok(refused.retryAfterMs > 0)
})

test('close may be called twice, also concurrently', async () => {
  const { limiter } = limiterWith()
  await resolved(Promise.all([limiter.close(), limiter.close()]))
  await resolved(limiter.close())
})

test('await using closes the limiter, also when its block throws', async () => {
  let escaped: Limiter | undefined
  const useOne = async () => {
    await using limiter = limiterWith().limiter
    escaped = limiter
    limiter.check('key')
    throw new Error('inside the block')
  }
  let message = ''
  await resolved(useOne().catch((error: Error) => (message = error.message)))
  assert.is(message, 'inside the block')
  assertRaises(() => escaped!.check('key'), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('closing one limiter keeps the others on its memory open, with counts and statistics', async () => {
  const { limiter } = limiterWith()
  const attached = attachLimiter(limiter.share())
  limiter.check('key', 4)
  limiter.check('key', 4)
  await resolved(limiter.close())
  assert.is(attached.usage('key'), 4)
  const { allowed, denied } = attached.stats()
  assert.equal([allowed, denied], [1, 1])
})

test.run()
