import { BOUNDS_MS } from '../core/latency.js'
import { METRICS, type Metric, STORE_DURATION } from './metric-table.js'
import type { Source } from './source.js'
import type { Labels } from './stats.js'

/** An instrument that is read when the meter's values are collected. */
type Observable = object

/** A meter of OpenTelemetry, as far as it is used. */
export interface OpenTelemetryMeter {
  createObservableCounter(name: string, options: InstrumentOptions): Observable
  createObservableGauge(name: string, options: InstrumentOptions): Observable
  createHistogram(
    name: string,
    options: InstrumentOptions,
  ): { record(value: number, attributes: Record<string, string>): void }
  // biome-ignore lint/suspicious/noExplicitAny: a type of OpenTelemetry would be one that users of prom-client lack.
  addBatchObservableCallback(callback: (result: any) => Promise<void>, observables: any[]): void
}

/** What a metric of OpenTelemetry is made with. */
export interface InstrumentOptions {
  /** What it counts or measures, in a sentence. */
  description: string
  /** The unit, such as `'s'`. */
  unit?: string
  /** The bounds of a histogram, in its unit. */
  advice?: { explicitBucketBoundaries: number[] }
}

interface BatchResult {
  observe(observable: Observable, value: number, attributes: Labels): void
}

/** Makes the instruments of a source. All of them are read together. */
export function instrumentsFor(meter: OpenTelemetryMeter, source: Source): void {
  const observed = METRICS.filter(({ kind }) => kind !== 'histogram').map((metric) => ({
    metric,
    instrument: observableFor(meter, metric),
  }))
  const explicitBucketBoundaries = BOUNDS_MS.map((ms) => ms / 1_000)
  const histogram = meter.createHistogram(nameOf(STORE_DURATION), {
    ...optionsOf(STORE_DURATION),
    advice: { explicitBucketBoundaries },
  })
  source.onCall = (labels, ms) => histogram.record(ms / 1_000, { ...labels })
  const observe = async (result: BatchResult): Promise<void> => {
    const all = await Promise.all(observed.map(({ metric }) => source.samplesOf(metric)))
    for (const [i, { instrument }] of observed.entries())
      for (const [labels, value] of all[i]!) result.observe(instrument, value as number, labels)
  }
  meter.addBatchObservableCallback(
    observe,
    observed.map(({ instrument }) => instrument),
  )
}

function observableFor(meter: OpenTelemetryMeter, metric: Metric): Observable {
  const [name, options] = [nameOf(metric), optionsOf(metric)]
  return metric.kind === 'counter'
    ? meter.createObservableCounter(name, options)
    : meter.createObservableGauge(name, options)
}

const nameOf = ({ name }: Metric): string => `millrace.${name}`

const optionsOf = ({ help, unit }: Metric): InstrumentOptions =>
  unit === undefined ? { description: help } : { description: help, unit }
