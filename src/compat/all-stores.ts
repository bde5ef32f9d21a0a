import type { LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import { joined, statsOf, type TableStats } from './stats.js'

/** What has tables. */
interface Tables {
  readonly tables: TableStats
}

/** The stores of a class: what they have decided by route, and those that are in use. */
export class AllStores {
  readonly #byRule = new Map<string, DecisionCounts>()
  readonly #windows = new Set<WeakRef<Tables>>()

  /** Adds a store, and returns the counts of its route. */
  join(windows: Tables, rule: string, nearLimit: number | undefined): DecisionCounts {
    for (const each of this.#windows) if (each.deref() === undefined) this.#windows.delete(each)
    this.#windows.add(new WeakRef(windows))
    let counts = this.#byRule.get(rule)
    if (counts === undefined) {
      counts = new DecisionCounts(nearLimit)
      this.#byRule.set(rule, counts)
    }
    return counts
  }

  stats(): LimiterStats {
    const tables = [...this.#windows].flatMap((windows) => windows.deref()?.tables ?? [])
    return statsOf(this.#byRule.values(), joined(tables))
  }
}
