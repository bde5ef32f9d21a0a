import type { Latency } from '../core/latency.js'
import { sumOf } from '../core/sum-of.js'
import { METRICS, type Metric, type Sample, type Value } from './metric-table.js'
import type { Labels } from './stats.js'

/** The most label sets of a metric. */
const MOST = 1_000
/** What has no place of its own is counted as `other`, by outcome: so many label sets are kept for that. */
const KEPT_FOR_OTHERS = 8
/** Memories of a label set that are told apart. Those of before are one. */
const MOST_MEMORIES = 16
const EARLIER = 'earlier'

/** What was read, by the names of metrics. */
export type Samples = Readonly<Record<string, readonly Sample[]>>

/** Without what is of the present. */
export function countersIn(samples: Samples): Samples {
  const kept = METRICS.filter(({ kind }) => kind !== 'gauge').map(({ name }) => [name, samples[name] ?? []])
  return Object.fromEntries(kept)
}

/** Label sets of one metric. One that has once got a place keeps it, as a counter must not move. */
class LabelSets {
  readonly #own = new Set<string>()

  of(labels: Labels): Labels {
    const key = JSON.stringify(labels)
    if (this.#own.has(key) || this.#own.size < MOST - KEPT_FOR_OTHERS) {
      this.#own.add(key)
      return labels
    }
    const { outcome } = labels
    return outcome === undefined ? { limiter: 'other' } : { limiter: 'other', outcome }
  }
}

/** The values of one label set, by memory: what threads read of one memory is not added up. */
interface Series {
  readonly labels: Labels
  readonly values: Map<string | undefined, Value>
}

/** Puts samples together. The label sets stay what they are. */
export class AllSeries {
  readonly #sets = new Map(METRICS.map(({ name }) => [name, new LabelSets()]))

  /** The label set of a sample in a metric. */
  labelsOf({ name }: Metric, labels: Labels): Labels {
    return this.#sets.get(name)!.of(labels)
  }

  /** The values by label set and memory, and then one of each label set. */
  together(all: readonly Samples[]): Samples {
    const total = new Totals(this)
    for (const samples of all) total.add(samples)
    return total.present()
  }

  /** One sample for each label set. */
  of(metric: Metric, all: readonly Samples[]): Sample[] {
    const total = new Totals(this)
    for (const samples of all) total.addMetric(metric, samples[metric.name] ?? [])
    return total.summed(metric)
  }
}

/** Sums of samples, by metric, label set and memory. */
export class Totals {
  readonly #all: AllSeries
  readonly #isLasting: boolean
  readonly #series = new Map<string, Map<string, Series>>()

  /** @param isLasting samples are added as long as the process runs: then few memories are told apart */
  constructor(all: AllSeries, isLasting = false) {
    this.#all = all
    this.#isLasting = isLasting
  }

  /** @param sign -1 takes out what was added */
  add(samples: Samples, sign: 1 | -1 = 1): void {
    for (const metric of METRICS) this.addMetric(metric, samples[metric.name] ?? [], sign)
  }

  addMetric(metric: Metric, samples: readonly Sample[], sign: 1 | -1 = 1): void {
    for (const [own, value, memory] of samples) {
      const { values } = this.#seriesOf(metric, own)
      const before = values.get(memory)
      // A memory has one number, by whichever thread it was read. Each of the earlier ones was added once.
      if (metric.combine === 'sum' || memory === EARLIER) {
        const more = sign === 1 ? value : negative(value)
        values.set(memory, before === undefined ? more : sumOfBoth(before, more))
      } else if (sign === 1) {
        values.delete(memory) // it is the latest from now on
        values.set(memory, Math.max((before as number | undefined) ?? 0, value as number))
        if (this.#isLasting && values.size > MOST_MEMORIES) joinEarliest(values)
      }
    }
  }

  /** What was added, for another {@link add}. */
  present(): Samples {
    const shown = [...this.#series].map(([name, series]) => [
      name,
      [...series.values()].flatMap(({ labels, values }) =>
        Array.from(values, ([memory, value]): Sample => [labels, value, memory]),
      ),
    ])
    return Object.fromEntries(shown)
  }

  /** One sample for each label set: counters of several memories are added up. */
  summed({ name, kind }: Metric): Sample[] {
    return Array.from(this.#series.get(name)?.values() ?? [], ({ labels, values }): Sample => {
      const all = [...values.values()]
      return [labels, kind === 'gauge' ? largestOf(all) : all.reduce(sumOfBoth)]
    })
  }

  #seriesOf(metric: Metric, own: Labels): Series {
    let ofMetric = this.#series.get(metric.name)
    if (ofMetric === undefined) {
      ofMetric = new Map()
      this.#series.set(metric.name, ofMetric)
    }
    const labels = this.#all.labelsOf(metric, own)
    const key = JSON.stringify(labels)
    let series = ofMetric.get(key)
    if (series === undefined) {
      series = { labels, values: new Map() }
      ofMetric.set(key, series)
    }
    return series
  }
}

function joinEarliest(values: Map<string | undefined, Value>): void {
  const [[memory, value]] = [...values].filter(([name]) => name !== EARLIER) as [[string, number]]
  values.delete(memory)
  values.set(EARLIER, ((values.get(EARLIER) as number | undefined) ?? 0) + value)
}

const largestOf = (values: readonly Value[]): number => Math.max(...(values as readonly number[]))

const sumOfBoth = (one: Value, other: Value): Value =>
  typeof one === 'object' ? sumOf(one, other as Latency) : one + (other as number)

function negative(value: Value): Value {
  if (typeof value === 'number') return -value
  const atMostMs = Object.entries(value.atMostMs).map(([bound, count]) => [bound, -count])
  return { atMostMs: Object.fromEntries(atMostMs), count: -value.count, sumMs: -value.sumMs }
}
