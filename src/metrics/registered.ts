import { isClosed } from '../core/closed.js'
import { COUNTED, countedNow, memoryOf } from '../core/closing.js'
import { inert } from '../core/inert.js'
import { LatencyCounts } from '../core/latency.js'
import { METRICS, type Sample } from './metric-table.js'
import { countersIn, type Samples } from './series.js'
import type { AnyStats, Counting, Labels, Seen } from './stats.js'

/** How many decisions a probe measures: enough that the resolution of the clock does not matter. */
const PROBES = 32
/** Nothing is charged to it, and it gets no place in a table. */
const PROBE_KEY = 'millrace/metrics'

/** A limiter under its name, and what was last read of it. */
export class Registered {
  readonly name: string
  readonly counting: Counting
  /** How many registries of the thread have it. */
  uses = 1
  #samples: Samples = {}
  /** By the name of the store. */
  readonly #durations = new Map<string, LatencyCounts>()
  #errors = 0

  constructor(name: string, counting: Counting) {
    this.name = name
    this.counting = counting
  }

  /** What was last read. */
  get samples(): Samples {
    return this.#samples
  }

  /** The same, without what is of the present. */
  get counters(): Samples {
    return countersIn(this.#samples)
  }

  /** Whether `readNow` finds what has been decided until then. */
  get isReadNow(): boolean {
    return COUNTED in this.counting || !this.#answersLater
  }
  #answersLater = false

  /** A store has answered a call. */
  record(store: string, ms: number): void {
    let counts = this.#durations.get(store)
    if (counts === undefined) {
      counts = new LatencyCounts()
      this.#durations.set(store, counts)
    }
    counts.record(ms)
  }

  /**
   * Reads the counts once. What goes wrong is counted: it must not keep others from being read. Returns false if the
   * limiter is closed.
   */
  async read(): Promise<boolean> {
    try {
      const found: AnyStats | PromiseLike<AnyStats> = this.counting.stats()
      this.#answersLater = 'then' in found
      const decisionSeconds = 'then' in found ? undefined : probed(this.counting, found)
      this.#take(await found, decisionSeconds)
    } catch (error) {
      if (isClosed(error)) return false
      this.#fail()
    }
    return true
  }

  /** Reads the counts at once, as far as they are known in this thread. */
  readNow(): void {
    try {
      const stats = countedNow<AnyStats>(this.counting)
      if (stats === undefined) this.#answersLater = true
      else this.#take(stats)
    } catch (error) {
      if (!isClosed(error)) this.#fail()
    }
  }

  #take(stats: AnyStats, decisionSeconds?: number): void {
    const who = { limiter: this.name }
    this.#samples = samplesIn([
      { who, stats, durations: this.#durations, decisionSeconds, errors: this.#errors },
      ...limitersIn(this.name, stats),
    ])
  }

  /** The counters stay what they were. */
  #fail(): void {
    this.#errors++
    const who = { limiter: this.name }
    const own = samplesIn([{ who, durations: this.#durations, errors: this.#errors, stats: {} }])
    const read = Object.entries(own).filter(([, samples]) => samples.length > 0)
    this.#samples = { ...this.counters, ...Object.fromEntries(read) }
  }
}

const samplesIn = (seen: readonly Seen[]): Samples =>
  Object.fromEntries(
    METRICS.map((metric) => {
      const isOfMemory = metric.kind === 'counter' && metric.combine === 'max'
      const samples = seen.flatMap((each) => {
        const memory = isOfMemory ? memoryOf(each.stats) : undefined
        return Array.from(metric.read(each), ([labels, value]): Sample => [shown(labels), value, memory])
      })
      return [metric.name, samples]
    }),
  )

/** The labels on one line each. Texts of callers can't do anything there, and are not long. */
export const shown = (labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).map(([name, text]) => [name, inert(text)]))

/** The limiters of the routes of a middleware, each once: routes may share one. */
function limitersIn(limiter: string, { routes = {} }: AnyStats): Seen[] {
  const first = new Map<AnyStats, Seen>()
  for (const [route, { limiter: stats }] of Object.entries(routes))
    if (!first.has(stats)) first.set(stats, { who: { limiter, route }, stats })
  return [...first.values()]
}

/** How long a decision takes, if it is one of this thread. With a configuration store, a look would load a policy. */
function probed(counting: Counting, { shared, config }: AnyStats): number | undefined {
  const { peek } = counting as { peek?: (key: string) => unknown }
  if (peek === undefined || shared === undefined || config !== undefined) return undefined
  const startMs = performance.now()
  for (let i = 0; i < PROBES; i++) peek.call(counting, PROBE_KEY)
  return (performance.now() - startMs) / PROBES / 1_000
}
