// run: also-full
// Every middleware on the client: counts of the engine, headers by its rules, and 503 while it does not answer.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { http1Client } from '../http/driver.js'
import { allDrivers } from '../http/drivers.js'
import { clientOf, engine } from './support.js'

for (const driver of allDrivers) {
  const { client = http1Client } = driver
  const get = (url: string) => client.fetch(`${url}/`, { method: 'GET', headers: {} })

  test(`${driver.name}: the engine limits its requests, and they say so`, async () => {
    const running = await engine({ limit: 2 })
    const limiter = clientOf({ url: running.url })
    const served = await driver.serve({ limiter, key: () => 'all' })
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await get(served.url)).status)
    assert.equal(statuses, [200, 200, 429])
    assert.is(running.limiter.usage('all'), 2)
    const refused = await get(served.url)
    assert.match(refused.headers.get('ratelimit-policy')!, /q=2;w=60/)
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    await served.close()
    await limiter.close()
    await running.close()
  })

  test(`${driver.name}: an engine that is away is a 503, never a 429, or lets pass`, async () => {
    const running = await engine()
    await running.close()
    for (const [onOutage, expected] of [
      ['closed', 503],
      ['open', 200],
    ] as const) {
      const limiter = clientOf({ url: running.url, onOutage })
      const served = await driver.serve({ limiter, key: () => 'all' })
      assert.is((await get(served.url)).status, expected)
      await served.close()
      await limiter.close()
    }
  })
}

test.run()
