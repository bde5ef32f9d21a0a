// run: modules
// How long calls took, in buckets whose bounds ascend: in stats(), in messages of threads, and in lines for Prometheus.
import { createBackendLimiter } from 'millrace/backend'
import { register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BOUNDS_MS, type Latency, LatencyCounts } from '#millrace/core/latency.js'
import { sumOf } from '#millrace/core/sum-of.js'

const KEYS = '0.25 0.5 1.0 2.5 5.0 10.0 25.0 50.0 100.0 250.0 500.0 1000.0 2500.0 5000.0 10000.0'.split(' ')

/** Counts in which each bucket has one call that took as long as its bound, and one call took longer than any. */
function oneOfEach(): Latency {
  const counts = new LatencyCounts()
  for (const ms of [10_000.1, ...BOUNDS_MS].reverse()) counts.record(ms)
  return counts.present()
}

test('the keys of buckets ascend, also in a copy, as JSON and in a sum, and a bound is in its bucket', () => {
  const one = oneOfEach()
  assert.equal(Object.keys(one.atMostMs), KEYS)
  assert.equal(Object.keys(one.atMostMs).map(Number), BOUNDS_MS)
  assert.equal(
    Object.values(one.atMostMs),
    KEYS.map((_, i) => i + 1),
  )
  assert.is(one.count, KEYS.length + 1)
  for (const copy of [structuredClone(one), JSON.parse(JSON.stringify(one)) as Latency]) {
    const both = sumOf(one, copy)
    assert.equal(Object.keys(both.atMostMs), KEYS)
    assert.equal(
      Object.values(both.atMostMs),
      KEYS.map((_, i) => 2 * (i + 1)),
    )
  }
})

test('lines for Prometheus have the buckets from the smallest to the largest, each with those before it', async () => {
  const registry = new Registry()
  const values = new Map<string, Uint8Array>()
  const limiter = createBackendLimiter({
    ...{ limit: 100, window: '1h', source: 'own', prefix: 'test', deadline: '1m' },
    values: {
      read: async (keys) => keys.map((key) => values.get(key)),
      swap: async (key, before, after) => values.get(key) === before && !!values.set(key, after),
    },
  })
  register({ api: limiter }, registry)
  for (let i = 0; i < 20; i++) await limiter.check(`key ${i}`)
  const { latency } = await limiter.stats()
  assert.equal(Object.keys(latency.atMostMs), KEYS)
  const lines = (await registry.metrics()).matchAll(
    /^millrace_store_duration_seconds_bucket\{le="(.+?)".* (\d+)$/gm,
  )
  const buckets = Array.from(lines, ([, le, count]) => [le, Number(count)] as const)
  assert.equal(
    buckets.map(([le]) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Math.round(Number(le) * 1e6))),
    [...BOUNDS_MS.map((ms) => ms * 1_000), Number.POSITIVE_INFINITY],
  )
  assert.equal(
    buckets.map(([, count]) => count),
    [...Object.values(latency.atMostMs), latency.count],
  )
  await limiter.close()
})

test.run()
