// run: modules
import { createLimiter, group } from 'millrace'
import { limitedFetch, type OutgoingOptions } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hostOf, type OwnLimiter } from '#millrace/fetch/host.js'
import { assertIsError, settled } from '../limiter/support.js'

const limiter = createLimiter({ limit: 5, window: '1s' })
const bucket = createLimiter({ limit: 5, window: '1s', algorithm: 'token-bucket' })
const smooth = createLimiter({ limit: 5, window: '1s', edge: 'smooth' })
const pool = createLimiter({ limit: 5, window: '1s', engine: 'pool', pool: { maxThreads: 1 } })
test.after(() => pool.close())

const WRONG: readonly (readonly [string, unknown])[] = [
  ['options', undefined],
  ['options', null],
  ['options', { limiter, retires: 1 }],
  ['limiter', {}],
  ['limiter', { limiter: { wait() {} } }],
  ['limiter', { limiter: pool }],
  ['limiter', { limiter: group({ a: limiter }) }],
  ['key', { limiter, key: '' }],
  ['key', { limiter, key: 5 }],
  ['mode', { limiter, mode: 'queue' }],
  ['maxPending', { limiter, maxPending: -1 }],
  ['maxPending', { limiter, maxPending: 1.5 }],
  ['maxWaitMs', { limiter, maxWaitMs: -1 }],
  ['maxWaitMs', { limiter, maxWaitMs: 2 ** 31 }],
  ['maxWaitMs', { limiter, maxWaitMs: '5s' }],
  ['maxWaitMs', { limiter, maxWaitMs: Number.NaN }],
  ['maxPauseMs', { limiter, maxPauseMs: -1 }],
  ['maxPauseMs', { limiter, maxPauseMs: '1h' }],
  ['maxPauseMs', { limiter, maxPauseMs: Number.NaN }],
  ['retries', { limiter, retries: Number.POSITIVE_INFINITY }],
  ['retries', { limiter, retries: -1 }],
  ['jitter', { limiter, jitter: 100 }],
  ['strict', { limiter, strict: 'yes' }],
  ['strict', { limiter: bucket, strict: true }],
  ['strict', { limiter: smooth, strict: true }],
]

test('an option that is not as its type says is refused by name', () => {
  for (const make of [(options: OutgoingOptions) => limitedFetch(fetch, options), limitInterceptor]) {
    for (const [option, options] of WRONG) {
      try {
        make(options as OutgoingOptions)
        assert.unreachable(`${option} of ${JSON.stringify(options)}`)
      } catch (error) {
        assertIsError(error, 'ERR_MILLRACE_INVALID_OPTION', option)
      }
    }
  }
})

test('what is no function is not limited', () => {
  try {
    limitedFetch('fetch' as never, { limiter })
    assert.unreachable()
  } catch (error) {
    assertIsError(error, 'ERR_MILLRACE_INVALID_OPTION', 'fetch')
  }
})

test('a key that is none is refused by name, and leaves nothing behind', async () => {
  for (const key of ['', 5, undefined] as string[]) {
    const host = hostOf(limiter as OwnLimiter, key)
    const outcome = await settled(limitedFetch(fetch, { limiter, key: () => key })('http://server.test/'))
    assertIsError((outcome as PromiseRejectedResult).reason, 'ERR_MILLRACE_INVALID_KEY', 'key')
    assert.is.not(hostOf(limiter as OwnLimiter, key), host)
  }
})

test('a limiter of any algorithm is accepted, strict where its rules are', () => {
  for (const algorithm of ['fixed-window', 'sliding-log', 'token-bucket', 'auto'] as const) {
    const other = createLimiter({ limit: 5, window: '1s', algorithm })
    assert.type(limitedFetch(fetch, { limiter: other }), 'function')
  }
  limitedFetch(fetch, { limiter, strict: true })
  limitedFetch(fetch, { limiter: bucket, strict: false })
})

test('the smallest and the largest values are accepted', () => {
  limitedFetch(fetch, { limiter, maxPending: 0, maxWaitMs: 0, retries: 0 })
  limitedFetch(fetch, { limiter, maxPending: Number.POSITIVE_INFINITY, maxWaitMs: Number.POSITIVE_INFINITY })
  limitedFetch(fetch, { limiter, maxWaitMs: 2 ** 31 - 1, maxPauseMs: 0 })
  limitedFetch(fetch, { limiter, maxPauseMs: Number.POSITIVE_INFINITY })
})

test.run()
