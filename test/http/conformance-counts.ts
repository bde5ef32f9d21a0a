/** What `rateLimit(...).stats()` counts, in every framework. */

import { createLimiter, manualClock } from 'millrace'
import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Serving } from './conformance.js'
import type { AnyOptions } from './driver.js'

export function testCounts(test: Test, base: () => AnyOptions, serving: Serving): void {
  test('counts requests by what became of them', async () => {
    const rules = [
      { name: 'burst', limit: 4, window: '1s' },
      { name: 'minute', limit: 5, window: '1m' },
    ] as const
    const clock = manualClock(1e9)
    const options = { rules, clock, key: base().key!, ban: { after: 2, for: '1h' } } as const
    await serving(options, async (get, { stats }) => {
      for (let i = 0; i < 5; i++) await get('/') // the burst refuses one
      clock.advance(2_000)
      for (let i = 0; i < 3; i++) await get('/') // the minute refuses one, which begins a ban
      await get('/', { 'x-key': 'other' })
      await get('/') // banned
      const { routes, denied, failed, ...total } = await stats()
      const withoutStore = { open: 0, closed: 0, local: 0 }
      const decided = { admitted: 6, refused: 4, shadowRefused: 0, blocked: 2, nearLimit: 2 }
      assert.equal(total, { ...decided, withoutStore, delayed: 0, shadowDelayed: 0 })
      assert.equal([denied, failed, Object.keys(routes)], [0, 0, ['default']])
      const { limiter, rules: byRule, ...ofRoute } = routes.default!
      assert.equal(ofRoute, total)
      assert.equal(byRule.burst, { admitted: 6, refused: 3, shadowRefused: 0, blocked: 2, nearLimit: 1 })
      assert.equal(byRule.minute, { admitted: 6, refused: 1, shadowRefused: 0, blocked: 0, nearLimit: 2 })
      assert.equal([limiter.allowed, limiter.denied], [6, 4])
    })()
  })

  test('counts as near the limit from a share on: its own option, that of its limiter, or 80 %', async () => {
    const rule = { limit: 5, window: '1m' } as const
    const limiter = createLimiter({ ...rule, nearLimit: 0.4 })
    const { key } = base()
    const cases: readonly (readonly [AnyOptions, number])[] = [
      [{ ...rule, key }, 2],
      [{ ...rule, key, nearLimit: 0.6 }, 3],
      [{ ...rule, key, nearLimit: 1 }, 1],
      [{ limiter, key }, 4],
      [{ limiter, key, nearLimit: 0.6 }, 3],
      [{ key, nearLimit: 0.6, routes: { 'GET /': rule } }, 3],
      [{ key, routes: { 'GET /': { limiter } } }, 4],
    ] as never
    for (const [options, near] of cases) {
      limiter.clearAll()
      await serving(options, async (get, { stats }) => {
        for (let i = 0; i < 7; i++) await get('/')
        const { nearLimit, routes } = await stats()
        assert.equal(
          [nearLimit, Object.values(routes)[0]!.nearLimit],
          [near, near],
          JSON.stringify(Object.keys(options)),
        )
      })()
    }
    await limiter.close()
  })

  test('counts what shadow would have refused, what was denied, and what waited', async () => {
    await serving({ ...base(), shadow: true }, async (get, { stats }) => {
      for (let i = 0; i < 3; i++) await get('/')
      const { admitted, refused, shadowRefused } = await stats()
      assert.equal([admitted, refused, shadowRefused], [3, 0, 1])
    })()
    await serving({ ...base(), delay: { after: 1, ms: 1, max: 5 } }, async (get, { stats }) => {
      for (let i = 0; i < 4; i++) await get('/')
      const { admitted, refused, shadowRefused, delayed } = await stats()
      assert.equal([admitted, refused, shadowRefused, delayed], [4, 0, 0, 3])
    })()
  })

  test('counts each route by itself', async () => {
    const routes = { 'GET /status/:n': { limit: 1, window: '1m' }, '/decision': false } as const
    await serving({ ...base(), routes }, async (get, { stats }) => {
      for (let i = 0; i < 2; i++) await get('/status/204')
      for (const path of ['/', '/', '/', '/decision']) await get(path)
      const { routes, admitted, refused } = await stats()
      const numbers = Object.entries(routes).map(([name, own]) => [name, own.admitted, own.refused])
      assert.equal(numbers.toSorted(), [
        ['GET /status/:n', 1, 1],
        ['default', 2, 1],
      ])
      assert.equal([admitted, refused], [3, 2])
    })()
  })
}
