import { BOUNDS_MS, keyOfBound } from '../core/latency.js'
import { METRICS, type Metric, prometheusName, type Sample } from './metric-table.js'
import type { Source } from './source.js'

/** A registry of prom-client. */
export interface PrometheusRegistry {
  // biome-ignore lint/suspicious/noExplicitAny: a type of prom-client would be one that users of OpenTelemetry lack.
  registerMetric(metric: any): void
}

/** A value, as prom-client writes it out or adds it up in a cluster. */
interface PrometheusValue {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Of a histogram. */
  readonly metricName?: string
}

/** What a registry of prom-client needs of a metric: `get` is called at each scrape, in the main process of a cluster, too. */
class ScrapedMetric {
  name: string
  readonly help: string
  readonly type: Metric['kind']
  readonly aggregator: Metric['combine']
  readonly #metric: Metric
  readonly #source: Source

  constructor(metric: Metric, source: Source) {
    this.name = prometheusName(metric)
    this.help = metric.help
    this.type = metric.kind
    this.aggregator = metric.combine
    this.#metric = metric
    this.#source = source
  }

  async get(): Promise<object> {
    const { name, help, type, aggregator } = this
    const samples = await this.#source.samplesOf(this.#metric)
    return { name, help, type, aggregator, values: samples.flatMap((sample) => valuesOf(name, sample)) }
  }

  /** `registry.resetMetrics()` leaves the counts: they are those of the limiters. */
  reset(): void {}
}

/** Returns a function that registers the metrics of a source; where they are registered, it changes nothing. */
export function metricsFor(registry: PrometheusRegistry, source: Source): () => void {
  const metrics = METRICS.map((metric) => new ScrapedMetric(metric, source))
  return () => {
    for (const [i, metric] of metrics.entries()) {
      metric.name = prometheusName(METRICS[i]!) // for OpenMetrics, a registry cuts it
      registry.registerMetric(metric)
    }
  }
}

function valuesOf(name: string, [labels, value]: Sample): PrometheusValue[] {
  if (typeof value === 'number') return [{ labels, value }]
  const bucket = (le: number | '+Inf', count: number): PrometheusValue => ({
    labels: { le, ...labels },
    value: count,
    metricName: `${name}_bucket`,
  })
  return [
    ...BOUNDS_MS.map((ms) => bucket(ms / 1_000, value.atMostMs[keyOfBound(ms)]!)),
    bucket('+Inf', value.count),
    { labels, value: value.sumMs / 1_000, metricName: `${name}_sum` },
    { labels, value: value.count, metricName: `${name}_count` },
  ]
}
