// Each decision, request and call has one outcome: the sums over outcomes are what was decided, and no number falls.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, group } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { of, type Series, scrape, sum } from './scrape.js'

const SHADOWED = {
  rules: [
    { name: 'trial', limit: 2, window: '1h', shadow: true },
    { name: 'hourly', limit: 8, window: '1h' },
  ],
} as const
const DELAY = { after: 1, ms: '1ms', max: '3ms' } as const

type SiteOptions = NonNullable<Parameters<typeof rateLimit>[0]>

const SITES: Record<string, SiteOptions> = {
  plain: { limit: 3, window: '1h' },
  'a rule that is not enforced': SHADOWED,
  'a middleware that is not enforced': { ...SHADOWED, shadow: true },
  delays: { limit: 3, window: '1h', delay: DELAY },
  'delays, with a rule that is not enforced': { ...SHADOWED, delay: DELAY },
  'delays of a middleware that is not enforced': { ...SHADOWED, delay: DELAY, shadow: true },
  'delays with few places': { ...SHADOWED, delay: { ...DELAY, maxDelayed: { key: 1 } } },
  bans: { ...SHADOWED, ban: { after: 2, for: '1h' } },
  'addresses that are denied': { limit: 3, window: '1h', deny: ['127.0.0.1'] },
}

/** The values of a metric by outcome. */
const outcomesOf = (series: Series, metric: string): Record<string, number> =>
  Object.fromEntries(
    Object.entries(of(series, metric)).map(([labels, value]) => [/outcome=(\w+)/.exec(labels)![1], value]),
  )

for (const [name, options] of Object.entries(SITES)) {
  test(`each request has one outcome: ${name}`, async () => {
    const site = rateLimit({
      ...options,
      key: ({ headers }: { headers: Record<string, unknown> }) => String(headers['x-user']),
    } as SiteOptions)
    const registry = new Registry()
    register({ site }, registry)
    const server = createServer((request, response) => site(request, response, () => response.end('ok')))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    let before: Record<string, number> = {}
    for (let round = 1; round <= 6; round++) {
      await Promise.all(
        ['a', 'a', 'a', 'b'].map(async (user) => (await fetch(url, { headers: { 'x-user': user } })).text()),
      )
      const after = outcomesOf(await scrape(registry), 'millrace_requests_total')
      assert.is(sum(after), 4 * round, JSON.stringify(after))
      for (const [outcome, value] of Object.entries(after))
        assert.ok(value >= (before[outcome] ?? 0), outcome)
      before = after
    }
    if (name.startsWith('delays') && !('shadow' in options)) assert.ok(before.delayed! > 0)
    server.closeAllConnections()
    server.close()
    await site.close()
  })
}

test('each decision has one outcome, of a limiter, of each rule that decides, and of a group', async () => {
  const registry = new Registry()
  const api = createLimiter(SHADOWED)
  const both = group({ api, other: createLimiter({ limit: 5, window: '1h' }) })
  register({ api, both }, registry)
  let [byApi, byBoth] = [0, 0]
  for (let i = 0; i < 40; i++) {
    const key = `key ${i % 3}`
    if (i === 20) api.block('key 1', '1h')
    if (i % 4 === 0) {
      both.check({ api: key, other: key })
      byBoth++
    } else if (i % 7 === 0) {
      api.checkMany([key, 'another'])
      byApi += 2
    } else {
      api.check(key)
      byApi++
    }
    const series = await scrape(registry)
    const all = of(series, 'millrace_decisions_total')
    const decidedBy = (limiter: string) =>
      sum(
        Object.fromEntries(
          Object.entries(all).filter(([labels]) => labels.startsWith(`limiter=${limiter},`)),
        ),
      )
    assert.is(decidedBy('both'), byBoth)
    assert.ok(decidedBy('api') >= byApi, 'also those by the group')
    for (const [labels, value] of Object.entries({ ...all, ...of(series, 'millrace_rule_decisions_total') }))
      assert.ok(value >= 0, `${labels} ${value}`)
  }
})

test('each outgoing call has one outcome', async () => {
  const server = createServer((_, response) => response.end('ok'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const limiter = createLimiter({ limit: 3, window: '50ms' })
  const polite = limitedFetch(fetch, { limiter, maxPending: 4 })
  const registry = new Registry()
  register({ polite }, registry)
  await Promise.allSettled(Array.from({ length: 12 }, async () => (await polite(url)).text()))
  const outcomes = outcomesOf(await scrape(registry), 'millrace_calls_total')
  assert.is(sum(outcomes), 12, JSON.stringify(outcomes))
  assert.ok(
    outcomes.admitted! > 0 && outcomes.delayed! > 0 && outcomes.refused! > 0,
    JSON.stringify(outcomes),
  )
  server.closeAllConnections()
  server.close()
  await limiter.close()
})

test.run()
