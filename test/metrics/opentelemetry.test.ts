// run: own
// What OpenTelemetry's SDK and its exporter for Prometheus get of the same limiters, and the events of spans.
import { setImmediate } from 'node:timers/promises'
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createLimiter, group } from 'millrace'
import { rateLimit } from 'millrace/http'
import { observe, register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { of, readSeries, scrape } from './scrape.js'

const RULES = { limit: 1, window: '1h', name: 'hourly' } as const
/** The exporter collects when it is asked; no server is needed for that. */
const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true })
const provider = new MeterProvider({ readers: [exporter] })
const spans = new InMemorySpanExporter()
const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })

async function collected(): Promise<string> {
  const { resourceMetrics, errors } = await exporter.collect()
  assert.equal(errors, [])
  return new PrometheusSerializer(undefined, false, undefined, true, true).serialize(resourceMetrics)
}

const eventsIn = async (act: () => unknown): Promise<unknown[]> => {
  spans.reset()
  await trace.getTracer('test').startActiveSpan('request', async (span) => {
    await act()
    span.end()
  })
  return spans
    .getFinishedSpans()[0]!
    .events.map(({ name, attributes }) => [name, attributes?.['millrace.rule']])
}

test.before(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(tracers)
  metrics.setGlobalMeterProvider(provider)
})
test.after(async () => {
  await provider.shutdown()
  await tracers.shutdown()
})

test('a span has no event before anything is observed', async () => {
  const limiter = createLimiter(RULES)
  assert.equal(await eventsIn(() => [limiter.check('a'), limiter.check('a')]), [])
})

test('the exporter has the names and the values of prom-client, but for units', async () => {
  const limiter = createLimiter(RULES)
  const pool = createLimiter({ ...RULES, engine: 'pool', pool: { maxThreads: 1 } })
  const site = rateLimit({ limiter })
  const limiters = { limiter, pool, site, both: group({ one: limiter, other: createLimiter(RULES) }) }
  const registry = new Registry()
  register(limiters, registry)
  const end = observe(limiters)
  for (let i = 0; i < 3; i++) limiter.check('a')
  for (let i = 0; i < 3; i++) await pool.check('a')
  const text = await collected()
  const [theirs, ours] = [readSeries(text), await scrape(registry)]
  const names = (series: ReadonlyMap<string, number>) => [...series.keys()].sort()
  const unitless = (key: string) => key.replace(/^(\w+_duration)_seconds/, '$1')
  assert.equal(names(theirs), names(ours).map(unitless).sort())
  for (const [key, value] of ours) {
    const isTimed = key.includes('_duration') && !key.includes('_count')
    if (!isTimed) assert.is(theirs.get(unitless(key)), value, key)
  }
  assert.is(theirs.get('millrace_store_duration_count{limiter=pool,store=pool}'), 3)
  assert.match(text, /^# UNIT millrace_store_duration s$/m)
  assert.match(text, /^# TYPE millrace_decisions_total counter$/m)
  await end()
  const before = of(readSeries(await collected()), 'millrace_decisions_total')
  limiter.check('a')
  assert.equal(of(readSeries(await collected()), 'millrace_decisions_total'), before)
  await pool.close()
})

test('each refusal adds an event to the active span, by every engine, and none has the key', async () => {
  const limiter = createLimiter(RULES)
  const pool = createLimiter({ ...RULES, engine: 'pool', pool: { maxThreads: 1 } })
  const both = group({ one: limiter, other: createLimiter(RULES) })
  const end = observe({ limiter })
  assert.equal(await eventsIn(() => [limiter.check('a'), limiter.peek('a')]), [], 'an admission is none')
  assert.equal(await eventsIn(() => limiter.check('a')), [['rate_limited', 'hourly']])
  assert.equal(await eventsIn(() => both.check({ one: 'a', other: 'a' })), [['rate_limited', 'one']])
  assert.equal(await eventsIn(() => limiter.checkMany(['a', 'a', 'b', 'b'])), [['rate_limited', 'hourly']])
  await pool.check('a')
  assert.equal(await eventsIn(() => pool.check('a')), [['rate_limited', 'hourly']])
  const later = async () => {
    await setImmediate()
    limiter.check('a')
  }
  assert.equal(await eventsIn(later), [['rate_limited', 'hourly']])
  limiter.check('a') // without an active span
  const { attributes } = (spans.getFinishedSpans()[0] as never as { events: { attributes: object }[] })
    .events[0]!
  assert.equal(Object.keys(attributes), ['millrace.rule', 'millrace.retry_after_ms'])
  await end()
  assert.equal(await eventsIn(() => limiter.check('a')), [])
  await pool.close()
})

test.run()
