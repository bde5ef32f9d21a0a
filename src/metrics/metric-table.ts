import type { Counts } from '../core/decision-counts.js'
import type { Latency } from '../core/latency.js'
import type { AnyStats, Labels, Seen } from './stats.js'

/** The value of one label set; of a histogram its buckets. */
export type Value = number | Latency
/** `memory`: of a counter that is the same for all threads and processes on a memory, which one it is, if that is known. */
export type Sample = readonly [labels: Labels, value: Value, memory?: string | undefined]

/** A metric, for prom-client and for OpenTelemetry. */
export interface Metric {
  /** The words of the name, without the unit. */
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly unit: 's' | 'By' | undefined
  readonly help: string
  /**
   * What becomes of the same label set in several threads and processes, and of the label sets that have no place of
   * their own: `'max'` where each of them has the same number, because they share the memory. Counters of several
   * memories are added up.
   */
  readonly combine: 'sum' | 'max'
  /** The values in what a reading has found. */
  readonly read: (seen: Seen) => Iterable<Sample>
}

/** Decisions by outcome: each decision is in one of them, so that sums are right. */
function* byOutcome(labels: Labels, counts: Partial<Counts>): Iterable<Sample> {
  const { admitted = 0, refused = 0, shadowRefused = 0, blocked } = counts
  yield [{ ...labels, outcome: 'admitted' }, admitted - shadowRefused]
  yield [{ ...labels, outcome: 'shadow_refused' }, shadowRefused]
  yield [{ ...labels, outcome: 'refused' }, refused - (blocked ?? 0)]
  if (blocked !== undefined) yield [{ ...labels, outcome: 'blocked' }, blocked]
}

function* decisions(seen: Seen): Iterable<Sample> {
  const { own, routes } = seen.stats
  if (own !== undefined && routes === undefined) yield* byOutcome(withStore(seen), own)
}

/** Also those of the members of a group. */
function* byRule(seen: Seen): Iterable<readonly [rule: Labels, Partial<Counts> & { nearLimit?: number }]> {
  const { own, routes } = seen.stats
  if (routes !== undefined) return
  for (const [rule, counts] of Object.entries(own?.rules ?? own?.members ?? {}))
    yield [{ ...withStore(seen), rule }, counts]
}

function* ruleDecisions(seen: Seen): Iterable<Sample> {
  for (const [labels, counts] of byRule(seen)) yield* byOutcome(labels, counts)
}

function* nearLimit(seen: Seen): Iterable<Sample> {
  for (const [labels, counts] of byRule(seen))
    if (counts.nearLimit !== undefined) yield [labels, counts.nearLimit]
}

function* requests({ who, stats }: Seen): Iterable<Sample> {
  const { denied = 0, failed = 0, routes } = stats
  if (routes === undefined) return
  yield [{ ...who, outcome: 'denied' }, denied]
  yield [{ ...who, outcome: 'failed' }, failed]
  for (const [route, { delayed, shadowDelayed = 0, ...counts }] of Object.entries(routes)) {
    const labels = { ...who, route }
    const [admitted, shadowRefused] = [counts.admitted - delayed, counts.shadowRefused - shadowDelayed]
    yield* byOutcome(labels, { ...counts, admitted, shadowRefused })
    yield [{ ...labels, outcome: 'delayed' }, delayed]
  }
}

function* calls({ who, stats }: Seen): Iterable<Sample> {
  const { admitted = 0, waited = 0, refused = 0, blocked = 0, pauses } = stats
  if (pauses === undefined) return
  const counts = { admitted: admitted - waited, delayed: waited, refused: refused - blocked, blocked }
  for (const [outcome, value] of Object.entries(counts)) yield [{ ...who, outcome }, value]
}

function* withoutStore(seen: Seen): Iterable<Sample> {
  if (seen.stats.routes !== undefined) return
  for (const [outcome, value] of Object.entries(seen.stats.withoutStore ?? {}))
    yield [{ ...withStore(seen), outcome }, value]
}

function* sharedDecisions({ who, stats }: Seen): Iterable<Sample> {
  if (stats.shared !== undefined) yield* byOutcome(who, stats.shared)
}

type Numbers = {
  [K in keyof AnyStats]-?: NonNullable<AnyStats[K]> extends number ? K : never
}[keyof AnyStats]

/** The number of this name, where there is one. */
const number = (name: Numbers) =>
  function* ({ who, stats }: Seen): Iterable<Sample> {
    const value = stats[name]
    if (typeof value === 'number') yield [who, value]
  }

/** The same, of a limiter with a table of its own: on a server there is none. */
const ofTable = (name: Numbers) => (seen: Seen) => (seen.stats.places ? number(name)(seen) : [])

/** The members of a group may have several stores. */
const withStore = ({ who, stats }: Seen): Labels =>
  stats.own?.members === undefined ? { ...who, store: storeOf(stats) } : who

const storeOf = ({ store, pending }: AnyStats): string => store ?? (pending === undefined ? 'memory' : 'pool')

function* outages(seen: Seen): Iterable<Sample> {
  if (seen.stats.outages !== undefined) yield [withStore(seen), seen.stats.outages]
}

function* outage(seen: Seen): Iterable<Sample> {
  if (seen.stats.inOutage !== undefined) yield [withStore(seen), Number(seen.stats.inOutage)]
}

const storeDuration = ({ who, durations }: Seen): Iterable<Sample> =>
  Array.from(durations ?? [], ([store, counts]): Sample => [{ ...who, store }, counts.present()])

function* decisionDuration({ who, decisionSeconds }: Seen): Iterable<Sample> {
  if (decisionSeconds !== undefined) yield [who, decisionSeconds]
}

function* readErrors({ who, errors }: Seen): Iterable<Sample> {
  if (errors !== undefined) yield [who, errors]
}

const of =
  (kind: Metric['kind'], combine: Metric['combine'], unit?: Metric['unit']) =>
  (name: string, help: string, read: Metric['read']): Metric => ({ name, kind, unit, help, combine, read })

const counter = of('counter', 'sum')
const gauge = of('gauge', 'sum')
const sharedCounter = of('counter', 'max')
const sharedGauge = of('gauge', 'max')

export const STORE_DURATION = of('histogram', 'sum', 's')(
  'store.duration',
  'Duration of the calls that the store, or a worker of the pool, answered',
  storeDuration,
)

/** All metrics: `docs/reference/metrics.md`. */
export const METRICS: readonly Metric[] = [
  counter('decisions', 'Decisions of this process by outcome', decisions),
  counter('rule.decisions', 'Decisions of this process by rule and outcome', ruleDecisions),
  counter('near_limit', 'Admissions that left a key near the limit of the rule', nearLimit),
  counter('without_store', 'Decisions that were made without the store', withoutStore),
  counter('outages', 'Calls that the store did not answer', outages),
  sharedGauge('store.outage', 'Whether the store does not answer at present: 1 or 0', outage),
  STORE_DURATION,
  of('gauge', 'max', 's')('decision.duration', 'Duration of a decision on this thread', decisionDuration),
  counter('requests', 'Requests by route and outcome', requests),
  counter('calls', 'Outgoing calls by outcome', calls),
  counter('pauses', 'Pauses that answers to outgoing calls told', number('pauses')),
  sharedCounter('shared.decisions', 'Decisions of all threads and processes on the memory', sharedDecisions),
  sharedGauge('table.keys', 'Places of the table that keys have', ofTable('keys')),
  sharedGauge('table.places', 'Places of the table', ofTable('places')),
  of('gauge', 'max', 'By')('table.bytes', 'Size of the shared memory', ofTable('bytes')),
  sharedCounter('evicted', 'Keys whose place another key took', ofTable('evicted')),
  sharedCounter('evicted_live', 'Evicted keys that still counted', ofTable('evictedLive')),
  sharedCounter('no_room', 'Calls whose key found no place', ofTable('noRoom')),
  sharedCounter('blocks_evicted', 'Blocks that ended early for want of places', ofTable('blocksEvicted')),
  sharedCounter('damaged', 'Calls that gave up because the memory is damaged', ofTable('damaged')),
  sharedGauge(
    'lost_ways',
    'Places that threads are taking, or were taking when they died',
    ofTable('lostWays'),
  ),
  gauge('waiting', 'Pending calls of wait', number('waiting')),
  gauge('pending', 'Requests that wait for a worker of the pool', number('pending')),
  counter('read_errors', 'Readings of the counts that failed', readErrors),
]

const UNITS = { s: 'seconds', By: 'bytes' } as const

/** The name of a metric for Prometheus, by OpenTelemetry's rules: `store.duration` is `millrace_store_duration_seconds`. */
export function prometheusName({ name, kind, unit }: Metric): string {
  const words = ['millrace', ...name.split('.')]
  if (unit !== undefined && words.at(-1) !== UNITS[unit]) words.push(UNITS[unit])
  if (kind === 'counter') words.push('total')
  return words.join('_')
}
