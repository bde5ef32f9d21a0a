// run: own
// Threads cannot wait on the memory of a file, so the count of updates is polled while calls of `wait` are
// pending.
import { getActiveResourcesInfo } from 'node:process'
import { createLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { assertIsError, resolved, settled } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from './processes.js'

const at = folder()
const open = (file: string, limit = 5) =>
  createLimiter({ limit, window: '1d', maxKeys: 100, shared: { file } })

test('a change of the limit through the file wakes pending calls in all processes before their time', async () => {
  const [one, other] = [open(at('updated')), open(at('updated'))]
  one.check('key', 5)
  const waiting = one.wait('key')
  other.update('default', { limit: 6 })
  assert.ok((await resolved(waiting)).allowed)
  const large = settled(other.wait('key', { cost: 6 }))
  one.update('default', { limit: 4 })
  assertIsError(((await large) as PromiseRejectedResult).reason, 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  await Promise.all([one.close(), other.close()])
})

test('a process that opens the file with another limit wakes them too', async () => {
  const one = open(at('opened'))
  one.check('key', 5)
  const waiting = one.wait('key')
  const other = open(at('opened'), 6)
  assert.ok((await resolved(waiting)).allowed)
  await Promise.all([one.close(), other.close()])
})

test('close() ends the timer that polls the file', async () => {
  const timers = () => getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  const limiter = open(at('closed'))
  limiter.check('key', 5)
  const waiting = settled(limiter.wait('key'))
  assert.ok(timers() > before)
  await limiter.close()
  assert.is(timers(), before)
  assertIsError(((await waiting) as PromiseRejectedResult).reason, 'ERR_MILLRACE_CLOSED', 'limiter')
})

test.run()
