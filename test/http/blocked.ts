/** What `delay` and `ban` never let pass, for limiters of any place. */
import type { AsyncLimiter, Limiter } from 'millrace'
import * as assert from 'uvu/assert'
import { type AnyOptions, type FrameworkDriver, http1Client, type Served } from './driver.js'

export async function serving(
  driver: FrameworkDriver,
  options: object,
  use: (served: Served) => Promise<void>,
): Promise<void> {
  const served = await driver.serve(options as AnyOptions)
  try {
    await use(served)
  } finally {
    await served.close()
  }
}

const keyOf = (driver: FrameworkDriver) => (request: unknown) => driver.header(request, 'x-key')!

function askerOf({ client = http1Client }: FrameworkDriver, url: string) {
  return (key: string, cost = 1): Promise<Response> =>
    client.fetch(url, { method: 'GET', headers: { 'x-key': key, 'x-cost': String(cost) } })
}

/** With `delay`: blocked is refused, and so is what can never be admitted. @param limiter with a limit of 2 */
export async function refusesBlocked(
  driver: FrameworkDriver,
  limiter: Limiter | AsyncLimiter,
): Promise<void> {
  const cost = (request: unknown) => Number(driver.header(request, 'x-cost') ?? 1)
  const options = { limiter, key: keyOf(driver), cost, delay: { after: 0, ms: 1, max: 1 } }
  await serving(driver, options, async ({ url }) => {
    const ask = askerOf(driver, url)
    const tooDear = await ask('dear', 3)
    assert.equal([tooDear.status, tooDear.headers.get('retry-after')], [429, null])
    for (let i = 0; i < 4; i++) assert.is((await ask('busy')).status, 200)
    for (const name of ['busy', 'fresh']) {
      await limiter.block(name, '1h')
      const blocked = await ask(name)
      assert.is(blocked.status, 429)
      assert.ok(Number(blocked.headers.get('retry-after')) > 3_000)
      await limiter.unblock(name)
      await limiter.block(name, Number.POSITIVE_INFINITY)
      assert.is((await ask(name)).status, 429)
      await limiter.unblock(name)
      assert.is((await ask(name)).status, 200)
    }
  })
}

/** `ban` blocks the key in its limiter, and the refusal that begins a ban tells its time. @param limiter as above */
export async function bansAsTold(driver: FrameworkDriver, limiter: Limiter | AsyncLimiter): Promise<void> {
  for (const [time, least] of [
    ['1h', 3_500],
    [Number.POSITIVE_INFINITY, undefined],
  ] as const) {
    const options = { limiter, key: keyOf(driver), ban: { after: 2, for: time } }
    await serving(driver, options, async ({ url }) => {
      const ask = askerOf(driver, url)
      const key = `banned for ${time}`
      for (let i = 0; i < 2; i++) assert.is((await ask(key)).status, 200)
      const first = await ask(key)
      assert.is(first.status, 429)
      assert.ok(Number(first.headers.get('retry-after')) <= 121, 'a sliding counter looks at two windows')
      for (const status of [429, 403, 403]) {
        const response = await ask(key)
        assert.is(response.status, status)
        const told = response.headers.get('retry-after')
        if (least === undefined) assert.is(told, null)
        else assert.ok(Number(told) >= least, `${told}`)
      }
      assert.is((await limiter.peek(key, 0)).allowed, false)
      assert.is((await ask('another')).status, 200)
      await limiter.clear('another')
    })
  }
}
