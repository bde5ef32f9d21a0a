import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Outcome } from './answer.js'
import type { Planned } from './plan.js'

/** Values of requests that metrics show, each with its domain and rule. The others are one. */
const MOST_SHOWN = 1_000
const OTHER = 'other'
const BOUNDS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1]

/** What Envoy's requests come to, for Prometheus. */
export class EnvoyMetrics {
  readonly #hits = new Counter({
    name: 'millrace_envoy_hits_total',
    help: 'Hits of descriptors that met a limit, by how they ended: allowed, near (allowed, with more than 80 % of the limit used), over, shadow (over, and admitted by shadow_mode)',
    labelNames: ['domain', 'rule', 'value', 'outcome'],
    registers: [],
  })
  readonly #calls = new Histogram({
    name: 'millrace_envoy_call_duration_seconds',
    help: 'How long calls of ShouldRateLimit took, by the status of gRPC',
    labelNames: ['code'],
    buckets: BOUNDS,
    registers: [],
  })
  readonly #loads = new Counter({
    name: 'millrace_envoy_config_loads_total',
    help: 'Times that the files of limits were read, by whether they were right',
    labelNames: ['result'],
    registers: [],
  })
  readonly #isStale = new Gauge({
    name: 'millrace_envoy_config_stale',
    help: 'Whether the files of limits are wrong now, and those before are in force',
    registers: [],
  })
  readonly #shown = new Set<string>()
  readonly #series = new Map<string, ReturnType<Counter['labels']>>()

  register(registry: Registry): void {
    for (const metric of [this.#hits, this.#calls, this.#loads, this.#isStale])
      registry.registerMetric(metric as Counter)
  }

  count(domain: string, { rule, shown, hits }: Planned, outcome: Outcome): void {
    const value = shown === '' ? '' : this.#valueOf(domain, rule, shown)
    const name = JSON.stringify([domain, rule, value, outcome])
    let own = this.#series.get(name)
    if (own === undefined) {
      own = this.#hits.labels(domain, rule, value, outcome)
      this.#series.set(name, own)
    }
    own.inc(hits)
  }

  called(code: string, ms: number): void {
    this.#calls.labels(code).observe(ms / 1_000)
  }

  loaded(isRight: boolean): void {
    this.#loads.labels(isRight ? 'ok' : 'failed').inc()
    this.#isStale.set(isRight ? 0 : 1)
  }

  #valueOf(domain: string, rule: string, shown: string): string {
    const name = JSON.stringify([domain, rule, shown])
    if (this.#shown.has(name)) return shown
    if (this.#shown.size >= MOST_SHOWN) return OTHER
    this.#shown.add(name)
    return shown
  }
}
