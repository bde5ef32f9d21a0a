import { isClosed } from '../core/closed.js'
import { invalid } from '../core/errors.js'
import { LatencyCounts } from '../core/latency.js'
import { DECIDERS } from '../core/store-calls.js'
import { METRICS, type Sample } from './metric-table.js'
import type { AnyStats, Counting, Seen } from './stats.js'

/** How many decisions a probe measures: enough that the resolution of the clock does not matter. */
const PROBES = 32
/** Nothing is charged to it, and it gets no place in a table. */
const PROBE_KEY = 'millrace/metrics'

/** A limiter under its name, and what is recorded of it between readings. */
export class Registered {
  readonly name: string
  readonly counting: Counting
  /** By the name of the store. */
  readonly #durations = new Map<string, LatencyCounts>()
  #errors = 0

  constructor(name: string, counting: Counting) {
    this.name = name
    this.counting = counting
  }

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
   * Reads the counts once, and returns the samples of each of `METRICS`. What goes wrong is counted: it must not keep
   * others from being read. Undefined: the limiter is closed.
   */
  async read(): Promise<readonly (readonly Sample[])[] | undefined> {
    try {
      return samplesIn(await this.#seen())
    } catch (error) {
      if (isClosed(error)) return undefined
      this.#errors++
      const own = { who: { limiter: this.name }, durations: this.#durations, errors: this.#errors }
      return samplesIn([{ ...own, stats: {} }])
    }
  }

  async #seen(): Promise<readonly Seen[]> {
    const who = { limiter: this.name }
    const found: AnyStats | PromiseLike<AnyStats> = this.counting.stats()
    const decisionSeconds = 'then' in found ? undefined : probed(this.counting, found)
    const stats = await found
    return [
      { who, stats, durations: this.#durations, decisionSeconds, errors: this.#errors },
      ...limitersIn(who.limiter, stats),
    ]
  }
}

const samplesIn = (seen: readonly Seen[]): Sample[][] =>
  METRICS.map(({ read }) => seen.flatMap((each) => Array.from(read(each))))

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

/** What decides for a registered object: itself, or the limiters of its routes or windows. */
export function* decidersOf(counting: object): Iterable<object> {
  yield counting
  const others = (counting as { [DECIDERS]?(): readonly object[] })[DECIDERS]?.() ?? []
  for (const other of others) yield* decidersOf(other)
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkLimiters(
  limiters: unknown,
  present: ReadonlyMap<string, Registered>,
): readonly Registered[] {
  if (typeof limiters !== 'object' || limiters === null || Array.isArray(limiters))
    throw invalid(
      'limiters',
      limiters,
      'an object with the limiters by their names, such as { api: limiter }',
    )
  return Object.entries(limiters).map(([name, limiter]) => {
    const option = `limiters.${name}`
    if (typeof limiter?.stats !== 'function')
      throw invalid(option, limiter, 'a limiter, or another object that has stats()')
    if (present.has(name)) throw invalid(option, name, 'a name that is not registered yet')
    return new Registered(name, limiter)
  })
}
