// What a scrape of prom-client's registry finds of each kind of limiter.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, group, type MillraceError, manualClock } from 'millrace'
import { limitedFetch } from 'millrace/fetch'
import { rateLimit } from 'millrace/http'
import { register } from 'millrace/metrics'
import { register as defaultRegistry, Gauge, Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { of, type Series, scrape, sum } from './scrape.js'

const RULES = { limit: 2, window: '1m' } as const

test('the counters of a limiter are those of its decisions, each in one outcome', async () => {
  const registry = new Registry()
  const limiter = createLimiter({ ...RULES, name: 'burst' })
  register({ api: limiter }, registry)
  for (let i = 0; i < 5; i++) limiter.check('a')
  limiter.block('b', '1m')
  limiter.check('b')
  const series = await scrape(registry)
  const expected = { admitted: 2, shadow_refused: 0, refused: 3, blocked: 1 }
  const shown = Object.entries(expected)
  assert.equal(
    of(series, 'millrace_decisions_total'),
    Object.fromEntries(shown.map(([name, n]) => [`limiter=api,outcome=${name},store=memory`, n])),
  )
  assert.equal(
    of(series, 'millrace_rule_decisions_total'),
    Object.fromEntries(shown.map(([name, n]) => [`limiter=api,outcome=${name},rule=burst,store=memory`, n])),
  )
  assert.is(sum(of(series, 'millrace_decisions_total')), 6)
  assert.is(series.get('millrace_table_keys{limiter=api}'), 2)
  assert.is(series.get('millrace_shared_decisions_total{limiter=api,outcome=refused}'), 4)
  assert.ok(series.get('millrace_decision_duration_seconds{limiter=api}')! > 0)
})

test('a reading counts nothing, gives no key a place, and is one of each limiter for all metrics of a scrape', async () => {
  const registry = new Registry()
  const limiter = createLimiter(RULES)
  let readings = 0
  const stats = () => {
    readings++
    return limiter.stats()
  }
  register({ limiter, watched: { stats } }, registry)
  await scrape(registry)
  const series = await scrape(registry)
  assert.is(readings, 2)
  assert.is(sum(of(series, 'millrace_decisions_total')), 0)
  assert.is(series.get('millrace_table_keys{limiter=limiter}'), 0)
})

test('with several rules, what a rule that is not enforced would have refused is one outcome', async () => {
  const registry = new Registry()
  const limiter = createLimiter({
    rules: [
      { name: 'minute', limit: 3, window: '1m' },
      { name: 'hour', limit: 1, window: '1h', shadow: true },
    ],
  })
  register({ limiter }, registry)
  for (let i = 0; i < 5; i++) limiter.check('a')
  const series = await scrape(registry)
  const decisions = of(series, 'millrace_decisions_total')
  assert.is(sum(decisions), 5)
  assert.is(decisions['limiter=limiter,outcome=shadow_refused,store=memory'], 2)
  const byRule = of(series, 'millrace_rule_decisions_total')
  assert.is(byRule['limiter=limiter,outcome=shadow_refused,rule=hour,store=memory'], 2)
  assert.is(byRule['limiter=limiter,outcome=refused,rule=minute,store=memory'], 2)
  assert.is(byRule['limiter=limiter,outcome=refused,rule=hour,store=memory'], 0)
})

test('a group counts by its members', async () => {
  const registry = new Registry()
  const logins = group({
    account: createLimiter({ limit: 1, window: '1m' }),
    address: createLimiter({ limit: 9, window: '1m' }),
  })
  register({ logins }, registry)
  for (let i = 0; i < 3; i++) logins.check({ account: 'a', address: 'b' })
  const series = await scrape(registry)
  const byRule = of(series, 'millrace_rule_decisions_total')
  assert.is(byRule['limiter=logins,outcome=refused,rule=account'], 2)
  assert.is(byRule['limiter=logins,outcome=refused,rule=address'], 0)
  assert.is(sum(of(series, 'millrace_decisions_total')), 3)
})

test('a middleware counts its requests by route, and its limiters once, also one that routes share', async () => {
  const registry = new Registry()
  const login = createLimiter({ limit: 1, window: '1m' })
  const site = rateLimit({
    limit: 3,
    window: '1m',
    key: () => 'one',
    routes: { 'POST /login': { limiter: login }, 'POST /reset': { limiter: login }, '/free': false },
  })
  register({ site }, registry)
  const server = createServer((request, response) => site(request, response, () => response.end()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const path of ['/', '/', '/free']) await (await fetch(url + path)).text()
  for (const path of ['/login', '/login', '/reset'])
    await (await fetch(url + path, { method: 'POST' })).text()
  const series = await scrape(registry)
  const requests = of(series, 'millrace_requests_total')
  assert.is(sum(requests), 5)
  assert.is(requests['limiter=site,outcome=admitted,route=default'], 2)
  assert.is(requests['limiter=site,outcome=admitted,route=POST /login'], 1)
  assert.is(requests['limiter=site,outcome=refused,route=POST /login'], 1)
  assert.is(requests['limiter=site,outcome=refused,route=POST /reset'], 1)
  const decisions = of(series, 'millrace_decisions_total')
  assert.is(sum(decisions), 5)
  assert.is(decisions['limiter=site,outcome=refused,route=POST /login,store=memory'], 2)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await site.close()
  await login.close()
})

test('outgoing calls count by outcome', async () => {
  const registry = new Registry()
  const server = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const limited = limitedFetch(fetch, { limiter: createLimiter({ limit: 1, window: '1m' }), maxWaitMs: 0 })
  register({ limited }, registry)
  await (await limited(url)).text()
  await limited(url).then(
    () => assert.unreachable(),
    () => {},
  )
  const series = await scrape(registry)
  const calls = of(series, 'millrace_calls_total')
  assert.equal([calls['limiter=limited,outcome=admitted'], calls['limiter=limited,outcome=refused']], [1, 1])
  assert.is(series.get('millrace_pauses_total{limiter=limited}'), 0)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test('the calls of a pool are recorded from its registration on, and when it is closed, its counters stay', async () => {
  const registry = new Registry()
  const pool = createLimiter({ ...RULES, engine: 'pool', pool: { maxThreads: 1 } })
  await pool.check('a')
  register({ pool, inline: createLimiter({ ...RULES, clock: manualClock() }) }, registry)
  await pool.check('a')
  await pool.checkMany(['a', 'b'])
  await pool.peek('a')
  const series = await scrape(registry)
  const count = 'millrace_store_duration_seconds_count{limiter=pool,store=pool}'
  assert.is(series.get(count), 2)
  assert.is(series.get(count.replace('count{', 'bucket{le=+Inf,')), 2)
  assert.is(sum(of(series, 'millrace_decisions_total')), 4)
  await pool.close()
  const after = await scrape(registry)
  const ofPool = (all: Series) =>
    new Map([...all].filter(([key]) => /limiter=pool/.test(key) && /_(total|count|sum|bucket)\{/.test(key)))
  assert.equal(ofPool(after), ofPool(series), 'counters stay')
  assert.equal([...after.keys()].filter((key) => key.includes('limiter=pool')).length, ofPool(after).size)
  assert.ok(after.has('millrace_table_keys{limiter=inline}'))
  register({ pool: createLimiter(RULES) }, registry) // the name is free again
})

test('one limiter that cannot be read is counted, and all others are read', async () => {
  const registry = new Registry()
  const stats = async (): Promise<object> => {
    throw new Error('no answer')
  }
  register({ broken: { stats }, api: createLimiter(RULES) }, registry)
  await scrape(registry)
  const series = await scrape(registry)
  assert.is(series.get('millrace_read_errors_total{limiter=broken}'), 2)
  assert.is(series.get('millrace_read_errors_total{limiter=api}'), 0)
  assert.ok(series.has('millrace_table_keys{limiter=api}'))
})

test('counts of another shape are counted as such, and all others are read', async () => {
  const odd: Record<string, unknown> = {
    nothing: null,
    routes: { routes: { 'GET /': null } },
    rules: { own: { rules: { default: null } } },
    waiting: { waiting: () => 5, pending: {} },
  }
  const registry = new Registry()
  const limiters = Object.entries(odd).map(([name, stats]) => [name, { stats: () => stats as object }])
  register({ ...Object.fromEntries(limiters), api: createLimiter(RULES) }, registry)
  const series = await scrape(registry)
  for (const name of ['nothing', 'routes', 'rules'])
    assert.is(series.get(`millrace_read_errors_total{limiter=${name}}`), 1, name)
  assert.not(series.has('millrace_waiting{limiter=waiting}'))
  assert.ok(series.has('millrace_table_keys{limiter=api}'))
})

test('a registry that refuses the metrics gets no limiters', async () => {
  const registry = new Registry()
  const taken = new Gauge({ name: 'millrace_waiting', help: 'another one', registers: [registry] })
  const api = createLimiter(RULES)
  assert.throws(() => register({ api }, registry), /already been registered/)
  registry.removeSingleMetric('millrace_waiting')
  taken.set(1)
  register({ api }, registry)
  assert.ok((await scrape(registry)).has('millrace_table_keys{limiter=api}'))
})

test('registering ends by the function that it returns', async () => {
  const registry = new Registry()
  const api = createLimiter(RULES)
  const end = register({ api }, registry)
  api.check('a')
  const ended = end()
  register({ other: createLimiter(RULES), api: createLimiter(RULES) }, registry) // the name is free at once
  await ended
  api.check('a')
  await end() // once more: it does nothing
  const admitted = 'millrace_decisions_total{limiter=api,outcome=admitted,store=memory}'
  assert.is((await scrape(registry)).get(admitted), 1, 'the counts until then')
})

test('the default registry is that of prom-client, also after it was cleared', async () => {
  const end = register({ api: createLimiter(RULES) })
  assert.match(await defaultRegistry.metrics(), /^millrace_decisions_total\{limiter="api"/m)
  defaultRegistry.clear()
  const endOther = register({ other: createLimiter(RULES) })
  assert.match(await defaultRegistry.metrics(), /^millrace_decisions_total\{limiter="other"/m)
  await end()
  await endOther()
  defaultRegistry.clear()
})

test('counters keep their names in the OpenMetrics format, also after another registration', async () => {
  const registry = new Registry()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
  for (const name of ['one', 'two']) {
    register({ [name]: createLimiter(RULES) }, registry)
    const text = await registry.metrics()
    assert.match(text, /^# TYPE millrace_decisions counter$/m)
    assert.match(text, new RegExp(`^millrace_decisions_total\\{limiter="${name}"`, 'm'))
    assert.not.match(text, /total_total/)
  }
})

test('wrong arguments are named', () => {
  const registry = new Registry()
  const limiter = createLimiter(RULES)
  const fault = (limiters: unknown) => {
    try {
      register(limiters as never, registry)
    } catch (error) {
      return [(error as MillraceError).code, (error as MillraceError).option]
    }
    return undefined
  }
  const code = 'ERR_MILLRACE_INVALID_OPTION'
  for (const wrong of [undefined, null, limiter.check, [limiter], 'api'])
    assert.equal(fault(wrong), [code, 'limiters'])
  for (const wrong of [undefined, null, {}, 5]) assert.equal(fault({ api: wrong }), [code, 'limiters.api'])
  assert.is(fault({ api: limiter }), undefined)
  assert.equal(fault({ other: limiter, api: limiter }), [code, 'limiters.api'])
  assert.is(fault({ other: limiter }), undefined, 'nothing was registered by the call that failed')
})

test.run()
