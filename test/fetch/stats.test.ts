// run: once
// What outgoing calls and groups count of themselves.
import { createLimiter, group, manualClock } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import { Agent, request } from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withServer } from './support.js'

test('limitedFetch and the interceptor count what they admit, refuse, and pause', async () => {
  const clock = manualClock(1e6)
  let status = 200
  await withServer(
    (_, response) => void response.writeHead(status, status === 429 ? { 'retry-after': '60' } : {}).end(),
    async (url) => {
      for (const kind of ['fetch', 'undici']) {
        const limiter = createLimiter({ limit: 3, window: '1m', clock })
        const fetching = limitedFetch(fetch, { limiter, mode: 'refuse' })
        const interceptor = limitInterceptor({ limiter, mode: 'refuse' })
        const dispatcher = new Agent().compose(interceptor)
        const call = () => (kind === 'fetch' ? fetching(url) : request(url, { dispatcher }))
        const { stats } = kind === 'fetch' ? fetching : interceptor
        const counts = () => {
          const { admitted, waited, refused, blocked, waiting, pauses } = stats()
          return [admitted, waited, refused, blocked, waiting, pauses]
        }
        status = 200
        for (let i = 0; i < 5; i++) await call().catch(({ code }) => assert.is(code, 'ERR_MILLRACE_LIMITED'))
        assert.equal(counts(), [3, 0, 2, 0, 0, 0], kind)
        clock.advance(61_000)
        status = 429
        await call()
        await call().catch(({ code }) => assert.is(code, 'ERR_MILLRACE_LIMITED'))
        assert.equal(counts(), [4, 0, 3, 1, 0, 1], kind)
        await dispatcher.close()
        await limiter.close()
        clock.advance(61_000)
      }
    },
  )
})

test('a call that waits is counted while it waits, and when it is sent', async () => {
  const clock = manualClock(1e6)
  const limiter = createLimiter({ limit: 1, window: '1m', clock })
  await withServer(
    (_, response) => void response.end(),
    async (url) => {
      const fetching = limitedFetch(fetch, { limiter })
      await fetching(url)
      const second = fetching(url)
      assert.is(fetching.stats().waiting, 1)
      clock.advance(61_000)
      await second
      const { admitted, waited, waiting } = fetching.stats()
      assert.equal([admitted, waited, waiting], [2, 1, 0])
    },
  )
  await limiter.close()
})

test('limiters count the calls that wait', async () => {
  const clock = manualClock(1e6)
  const limiter = createLimiter({ limit: 1, window: '1m', clock })
  limiter.check('key')
  const waiting = limiter.wait('key')
  await Promise.resolve()
  assert.is(limiter.stats().waiting, 1)
  clock.advance(61_000)
  await waiting
  assert.is(limiter.stats().waiting, 0)
  await limiter.close()
})

test('a group counts its own decisions, by member', () => {
  const clock = manualClock(1e6)
  const account = createLimiter({ limit: 2, window: '1m', clock })
  const address = createLimiter({ limit: 3, window: '1m', clock })
  const both = group({ account, address })
  for (let i = 0; i < 3; i++) both.check({ account: 'a', address: '1' })
  for (let i = 0; i < 2; i++) both.check({ account: 'b', address: '1' })
  account.block('c', '1h')
  both.check({ account: 'c', address: '2' })
  both.peek({ account: 'c', address: '2' })
  account.check('alone')
  const { members, ...own } = both.stats().own
  assert.equal(own, { admitted: 3, refused: 3, shadowRefused: 0, blocked: 1, nearLimit: 2 })
  assert.equal(members.account, { admitted: 3, refused: 2, shadowRefused: 0, blocked: 1, nearLimit: 1 })
  assert.equal(members.address, { admitted: 3, refused: 1, shadowRefused: 0, blocked: 0, nearLimit: 1 })
})

test.run()
