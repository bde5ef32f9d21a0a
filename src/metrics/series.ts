import { inert } from '../core/inert.js'
import type { Latency } from '../core/latency.js'
import { sumOf } from '../core/sum-of.js'
import { METRICS, type Metric, type Sample, type Value } from './metric-table.js'
import type { Labels } from './stats.js'

/** The most label sets of a metric. */
const MOST = 1_000
/** What has no place of its own is counted as `other`, by outcome: so many label sets are kept for that. */
const KEPT_FOR_OTHERS = 8

/** What was read in one thread, by the names of metrics. */
export type Samples = Readonly<Record<string, readonly Sample[]>>

/** Label sets of one metric. One that has once got a place keeps it, as a counter must not move. */
class LabelSets {
  readonly #own = new Set<string>()

  /** The labels on one line each. Texts of callers can't do anything there, and are not long. */
  of(labels: Labels): Labels {
    const shown = Object.entries(labels).map(([name, text]) => [name, inert(text)])
    const key = JSON.stringify(shown)
    if (this.#own.has(key) || this.#own.size < MOST - KEPT_FOR_OTHERS) {
      this.#own.add(key)
      return Object.fromEntries(shown)
    }
    const { outcome } = labels
    return outcome === undefined ? { limiter: 'other' } : { limiter: 'other', outcome }
  }
}

/** Makes the series of all metrics. One for each registry, so that label sets stay what they are. */
export class AllSeries {
  readonly #sets = new Map(METRICS.map(({ name }) => [name, new LabelSets()]))

  /** The label set of a sample in a metric. */
  labelsOf({ name }: Metric, labels: Labels): Labels {
    return this.#sets.get(name)!.of(labels)
  }

  /** Puts together what threads have read: one sample for each label set. */
  of(metric: Metric, all: readonly Samples[]): Sample[] {
    const series = new Map<string, Sample>()
    for (const samples of all) {
      for (const [own, value] of samples[metric.name] ?? []) {
        const labels = this.labelsOf(metric, own)
        const key = JSON.stringify(labels)
        const before = series.get(key)
        series.set(key, before === undefined ? [labels, value] : [labels, combined(metric, before[1], value)])
      }
    }
    return [...series.values()]
  }
}

function combined({ combine }: Metric, one: Value, other: Value): Value {
  if (typeof one === 'object') return sumOf(one, other as Latency)
  const more = other as number
  return combine === 'sum' ? one + more : Math.max(one, more)
}
