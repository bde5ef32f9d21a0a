// run: full
/** When a user's function, the limiter or its pool fails: the client is answered, and the operator is told. */
import { createLimiter, type Decision, MillraceError, manualClock } from 'millrace'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import { type AnyOptions, http1Client, type Served } from './driver.js'
import { allDrivers } from './drivers.js'

const FAILURE = new Error('the function failed')
const throwing = () => {
  throw FAILURE
}
const rejecting = async () => throwing()
/** A promise as some libraries have it: with `then`, and without `catch`. */
const thenable = <T>(value: T) => ({
  // biome-ignore lint/suspicious/noThenProperty: it must look like a promise
  then: (resolve: (value: T) => void) => void setImmediate(() => resolve(value)),
})

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const base = (): AnyOptions => ({ limit: 1, window: '1m', clock: manualClock(1e9), key: () => 'all' })
  const get = (url: string, path = '/') => client.fetch(url + path, { method: 'GET', headers: {} })

  /** Serves by the options of {@link base} and these. Returns the errors that `onError` was given. */
  const serving = async (
    options: object,
    use: (served: Served, errors: readonly unknown[]) => Promise<void>,
    answer: 'pass' | 'fail' = 'fail',
  ): Promise<unknown[]> => {
    const errors: unknown[] = []
    const onError = (error: unknown) => {
      errors.push(error)
      return answer
    }
    const served = await driver.serve({ ...base(), onError, ...options } as AnyOptions)
    try {
      await use(served, errors)
    } finally {
      await served.close()
    }
    return errors
  }

  for (const [how, handler] of Object.entries({ throws: throwing, rejects: rejecting })) {
    // What a handler throws in Nest goes to its filters of exceptions.
    if (driver.isBehindRouter) continue
    test(`a handler that ${how}: 503`, async () => {
      const errors = await serving({ handler }, async ({ url }) => {
        await get(url)
        const response = await get(url)
        assert.is(response.status, 503)
        assert.match(await response.text(), /temporary-reduced-capacity/)
      })
      assert.equal(errors, [FAILURE])
    })
  }

  for (const [how, fail] of Object.entries({ throws: throwing, rejects: rejecting })) {
    test(`onLimited or message that ${how}: the request is refused all the same`, async () => {
      for (const name of ['onLimited', 'message']) {
        for (const answer of ['fail', 'pass'] as const) {
          const use = async ({ url }: Served) => {
            assert.is((await get(url)).status, 200)
            const response = await get(url)
            assert.is(response.status, 429)
            assert.is(response.headers.get('retry-after'), '61')
            assert.match(await response.text(), /quota-exceeded/)
          }
          const errors = await serving({ [name]: fail }, use, answer)
          assert.is(errors.length, 1)
          if (name === 'onLimited') assert.is(errors[0], FAILURE)
          else assert.match(String(errors[0]), /the function failed|message/)
        }
      }
    })

    test(`countIf that ${how}: the charge stays`, async () => {
      const errors = await serving({ limit: 2, countIf: fail }, async ({ url }, soFar) => {
        assert.is((await get(url)).status, 200)
        await until(() => soFar.length === 1, 'the error of countIf')
        assert.is((await get(url)).headers.get('ratelimit'), '"default";r=0;t=61')
        await until(() => soFar.length === 2, 'the error of countIf')
      })
      assert.equal(errors, [FAILURE, FAILURE])
    })

    test(`with shadow, a key, cost or onLimited that ${how}: the request passes`, async () => {
      for (const name of ['key', 'cost', 'onLimited', 'skip']) {
        const errors = await serving({ shadow: true, [name]: fail }, async ({ url }) => {
          for (let i = 0; i < 2; i++) assert.is((await get(url)).status, 200)
        })
        assert.ok(errors.length > 0 && errors.every((error) => error === FAILURE), name)
      }
    })
  }

  test('functions may return any object with then', async () => {
    const options = { key: () => thenable('all'), cost: () => thenable(1), skip: () => thenable(false) }
    const countIf = (response: unknown) => thenable(driver.statusOf(response) >= 400)
    const errors = await serving({ ...options, countIf }, async ({ url }) => {
      assert.is((await get(url)).status, 200)
      await until(() => process.getActiveResourcesInfo().every((name) => name !== 'Immediate'), 'the refund')
      assert.is((await get(url, '/status/404')).status, 404)
      assert.is((await get(url)).status, 429)
    })
    assert.equal(errors, [])
  })

  if (driver.hasNoSocket === undefined) {
    test('with shadow, an address of deny passes', async () => {
      await serving({ shadow: true, deny: ['0.0.0.0/0', '::/0'] }, async ({ url }) => {
        for (let i = 0; i < 2; i++) assert.is((await get(url)).status, 200)
      })
    })
  }

  test('a pattern of ignoreUserAgents with the flag g matches each time', async () => {
    await serving({ ignoreUserAgents: [/^probe/g] }, async ({ url }) => {
      const init = { method: 'GET', headers: { 'user-agent': 'probe' } }
      for (let i = 0; i < 3; i++) assert.is((await client.fetch(url, init)).headers.get('ratelimit'), null)
    })
  })

  test('an error of any kind, and an onError that throws: 503, and a warning', async () => {
    for (const error of [null, undefined, Symbol('odd'), Object.create(null), { toString: throwing }]) {
      const key = () => {
        throw error
      }
      await serving({ key, onError: undefined }, async ({ url }) => {
        const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
        assert.is((await get(url)).status, 503)
        assert.match((await warned).message, 'rateLimit could not decide about a request: ')
      })
    }
    await serving({ key: throwing, onError: throwing }, async ({ url }) => {
      assert.is((await get(url)).status, 503)
    })
  })

  test('a limiter that was closed: 503', async () => {
    for (const engine of ['inline', 'pool'] as const) {
      const limiter = createLimiter({ limit: 1, window: '1m', engine, maxKeys: 20 })
      const options = { limiter, limit: undefined, window: undefined, clock: undefined }
      const errors = await serving(options, async ({ url }) => {
        await limiter.close()
        assert.is((await get(url)).status, 503)
      })
      assert.is((errors[0] as MillraceError).code, 'ERR_MILLRACE_CLOSED')
    }
  })

  test('a pool that loses its thread: 503 for that request, and then decisions again', async () => {
    const clock = manualClock(1e9)
    const limiter = createLimiter({ limit: 2, window: '1m', engine: 'pool', maxKeys: 20, clock })
    const options = { limiter, limit: undefined, window: undefined, clock: undefined }
    const errors = await serving(options, async ({ url }) => {
      assert.is((await get(url)).status, 200)
      clock.set(1e300) // too large to distinguish from a granule later
      assert.is((await get(url)).status, 503)
      clock.set(1e9)
      assert.is((await get(url)).status, 200)
      assert.is((await get(url)).status, 429)
    })
    await limiter.close()
    assert.is(errors.length, 1)
    assert.ok(errors[0] instanceof MillraceError)
    assert.is(errors[0].code, 'ERR_MILLRACE_WORKER_LOST')
  })

  test('a ban that can not be set: the request is refused all the same', async () => {
    const limiter = createLimiter({ limit: 1, window: '1m', maxKeys: 20 })
    const failing = new Proxy(limiter, {
      get(target, name) {
        const value: unknown = name === 'block' ? throwing : Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const options = { limiter: failing, limit: undefined, window: undefined, clock: undefined }
    const use = async ({ url }: Served) => {
      assert.is((await get(url)).status, 200)
      assert.is((await get(url)).status, 429)
    }
    const errors = await serving({ ...options, ban: { after: 1, for: '1h' } }, use, 'pass')
    assert.equal(errors, [FAILURE])
    await limiter.close()
  })

  test('onLimited is told the decision that the headers show', async () => {
    const told: Decision[] = []
    await serving({ onLimited: (_: unknown, decision: Decision) => told.push(decision) }, async ({ url }) => {
      await get(url)
      assert.is((await get(url)).headers.get('retry-after'), '61')
    })
    assert.equal(
      told.map(({ allowed, retryAfterSeconds }) => [allowed, retryAfterSeconds]),
      [[false, 61]],
    )
  })

  test.run()
}
