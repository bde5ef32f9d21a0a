// run: also-full
// The option `countIf`, when its answer does not come.
import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import { serving } from './blocked.js'
import { http1Client } from './driver.js'
import { allDrivers } from './drivers.js'

for (const driver of allDrivers) {
  for (const [what, countIf] of [
    ['never settles', () => new Promise(() => {})],
    ['rejects', () => Promise.reject(new Error('countIf failed'))],
  ] as const) {
    test(`${driver.name}: a promise of countIf that ${what} is reported, and the request stays charged`, async () => {
      const limiter = createLimiter({ limit: 2, window: '1m', clock: manualClock(1e9) })
      const errors: unknown[] = []
      const onError = (error: unknown) => {
        errors.push(error)
        return 'fail'
      }
      const options = { limiter, key: () => 'all', countIf, keyTimeoutMs: 1, onError }
      await serving(driver, options, async ({ url }) => {
        const { client = http1Client } = driver
        const response = await client.fetch(url, { method: 'GET', headers: {} })
        assert.is(response.status, 200)
        await response.text()
        await until(() => errors.length === 1, 'the error')
        assert.match(String(errors[0]), /countIf failed|countIf\(response\): expected a promise/)
        assert.is(limiter.peek('all', 0).remaining, 1)
      })
      await limiter.close()
    })
  }
}

test.run()
