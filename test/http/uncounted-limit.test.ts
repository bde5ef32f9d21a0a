// run: also-full
// Limits of a request that need no count: 0 refuses it, and Infinity passes it uncounted, in every framework.
import { createLimiter } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type AnyOptions, http1Client, type Served } from './driver.js'
import { allDrivers } from './drivers.js'

const LIMITS: Readonly<Record<string, unknown>> = {
  none: 0,
  all: Number.POSITIVE_INFINITY,
  text: 'unlimited',
  two: 2,
}
const SHOWN = /^(x-)?ratelimit/

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const customer = (request: unknown) => driver.header(request, 'x-customer')!
  const get = (url: string, name: string) =>
    client.fetch(`${url}/`, { method: 'GET', headers: { 'x-customer': name } })

  const serving = async (options: object, use: (served: Served) => Promise<void>): Promise<void> => {
    const served = await driver.serve(options as AnyOptions)
    try {
      await use(served)
    } finally {
      await served.close()
    }
  }

  for (const standard of ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
    test(`${standard}: a limit of 0 is a refusal without an end, Infinity passes and shows no figures`, async () => {
      const errors: unknown[] = []
      const options = {
        limit: (request: unknown) => LIMITS[customer(request)],
        window: '1h',
        standard,
        key: () => 'all',
        maxKeys: 20,
        onError: (error: unknown) => {
          errors.push(error)
          return 'fail'
        },
      }
      await serving(options, async ({ url }) => {
        for (let i = 0; i < 3; i++) {
          const refused = await get(url, 'none')
          assert.equal([refused.status, refused.headers.get('retry-after')], [429, null])
          for (const name of ['all', 'text']) {
            const passed = await get(url, name)
            assert.is(passed.status, 200)
            assert.equal(
              [...passed.headers.keys()].filter((each) => SHOWN.test(each)),
              [],
            )
          }
        }
        const statuses = []
        for (let i = 0; i < 3; i++) statuses.push((await get(url, 'two')).status)
        assert.equal(statuses, [200, 200, 429], 'nothing was counted before')
      })
      assert.equal(errors, [])
    })
  }

  test('policies of a configuration store may have such limits', async () => {
    const window = '1h'
    const store = memoryConfig({
      none: { limit: 0, window },
      all: { limit: Number.POSITIVE_INFINITY, window },
      text: { limit: 'unlimited', window },
    })
    const limiter = createLimiter({ config: store, default: { limit: 2, window }, maxKeys: 20 })
    await serving({ limiter, key: customer }, async ({ url }) => {
      const statuses = []
      for (const name of ['none', 'all', 'all', 'all', 'text', 'other', 'other', 'other'])
        statuses.push((await get(url, name)).status)
      assert.equal(statuses, [429, 200, 200, 200, 200, 200, 200, 429])
    })
    await limiter.close()
  })

  test.run()
}
