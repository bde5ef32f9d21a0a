import { checkObject, checkOptions } from '../api/checks.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { checkNearLimit } from '../core/near-limit.js'
import type { Rule } from '../core/rule.js'
import { RULE_OPTIONS } from '../core/rule-options.js'
import { checkPrefix } from './key-names.js'
import { type OnOutage, type OutageChange, OutageWatch } from './outage-watch.js'
import type { RemoteRule } from './remote-rule.js'

/** The options of a limiter whose counts are elsewhere: the same for all stores. */
export interface RemoteOptions {
  /**
   * The beginning of all names of keys in the store: 1 to 64 characters without braces. Limiters with the same prefix
   * and rules share their counts. Limiters with other rules need another prefix.
   */
  prefix: string
  /**
   * How long a call may take until it is decided without the store: 1 ms to a minute.
   * @default '50ms'
   */
  deadline?: Duration
  /**
   * What `check` does while the store does not answer. The decision's `source` is then `'outage'` or `'local'`.
   * - `'closed'`: it refuses. No limit is ever exceeded.
   * - `'open'`: it allows everything, and counts nothing.
   * - `'local'`: this process decides alone, by its share of the limit (see `nodes`). Afterwards it reports to the
   *   store what it has admitted.
   * @default 'closed'
   */
  onOutage?: OnOutage
  /**
   * Called when an outage begins, which is with the first call that has no answer, and when it ends: once each, in a
   * microtask. It ends when the store answers and no call has failed for a second; for longer, up to a minute, if outages
   * follow each other within a minute. While `ready` waits, an attempt to connect that fails is such a call. What it throws is an uncaught error of the process. A process warning says the same
   * (`MILLRACE_OUTAGE`, `MILLRACE_RECOVERED`), with this option or without it.
   * @example
   * ```ts
   * onOutageChange: ({ state, cause, since }) => log.warn({ state, cause, since }, 'store of the limiter')
   * ```
   */
  onOutageChange?: (change: OutageChange) => void
  /**
   * For `'local'`: the number of processes that share the limit, at its highest. With more, the bound of an outage does
   * not hold. Each rule's limit must be as large. A cost above the share of this process is refused until the store
   * answers again.
   */
  nodes?: number
  /**
   * The number of keys whose own charges this process knows: it sends them again if the store has lost a key. For
   * `'local'` also the number of keys that it can count. Two counters on Memcached are not sent again.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * Whether this process remembers a refusal until its `retryAfterMs`, for a second at most, and refuses such requests
   * itself. That spares the store those who go on asking. A refund or `clear` by another process is then seen late.
   * @default false
   */
  rememberRefusals?: boolean
  /**
   * From which share of a limit on a key is near it, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   * @example
   * ```ts
   * createRedisLimiter({ client, prefix: 'api', limit: 100, window: '1m', nearLimit: 0.9 }) // counts admissions that leave 10 or fewer
   * ```
   */
  nearLimit?: number
  /** @internal A test's clock, in milliseconds from 1 on. */
  testTime?: () => number
  /** @internal The limiters of a configuration store have one together. */
  outages?: OutageWatch
}

/** Of all of them but `prefix`, beside those of a rule. */
const SHARED: readonly string[] = [
  'deadline',
  'onOutage',
  'onOutageChange',
  'nodes',
  'maxKeys',
  'rememberRefusals',
  'nearLimit',
  'rules',
]

/** The options of all stores, checked. */
export interface RemoteSettings {
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  /** @see RemotePlan.ruleOn */
  readonly ruleOn?: ((rule: Rule) => RemoteRule) | undefined
  readonly deadlineMs: number
  readonly onOutage: OnOutage
  readonly nodes: number
  readonly maxKeys: number
  readonly rememberRefusals: boolean
  readonly nearLimit: number | undefined
  readonly testTime: (() => number) | undefined
  readonly outages: OutageWatch
}

const OUTAGES: readonly unknown[] = ['closed', 'open', 'local'] satisfies OnOutage[]
const LONGEST_DEADLINE_MS = 60_000

/**
 * @param own with `prefix`, where a limiter has one
 * @param ofRule what a rule may have that stands beside the other options
 * @throws MillraceError for an option of another name than these
 */
export function checkRemoteNames(
  options: object,
  own: readonly string[],
  ofRule: readonly string[] = RULE_OPTIONS,
): void {
  checkObject(options)
  const internal = ['testTime', 'outages'].filter((name) => name in options)
  checkOptions(options, [...own, ...SHARED, ...ofRule, ...internal])
}

/** @throws MillraceError naming the option, the value and what would be right */
export function checkRemoteOptions(
  options: RemoteOptions,
  rules: readonly RemoteRule[],
  store: string,
): RemoteSettings {
  const { prefix, testTime, onOutageChange } = options
  checkPrefix(prefix)
  const { deadline = 50, onOutage = 'closed', nodes, maxKeys = 100_000, rememberRefusals = false } = options
  const deadlineMs = parseDuration(deadline, 'deadline')
  if (deadlineMs < 1 || deadlineMs > LONGEST_DEADLINE_MS)
    throw invalid('deadline', deadline, 'a duration of 1 ms to a minute')
  if (!OUTAGES.includes(onOutage)) throw invalid('onOutage', onOutage, "'closed', 'open' or 'local'")
  if (nodes !== undefined && !(Number.isInteger(nodes) && nodes >= 1))
    throw invalid('nodes', nodes, 'an integer of 1 or more')
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1))
    throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  checkListener(onOutageChange)
  const { outages = new OutageWatch(onOutage, store, prefix, onOutageChange, testTime) } = options
  if (onOutage === 'local') checkShares(rules, nodes)
  if (typeof rememberRefusals !== 'boolean')
    throw invalid('rememberRefusals', rememberRefusals, 'true or false')
  const settings = { prefix, rules, deadlineMs, onOutage, nodes: nodes ?? 1, maxKeys, rememberRefusals }
  return { ...settings, nearLimit: checkNearLimit(options.nearLimit), testTime, outages }
}

function checkListener(listener: unknown): void {
  if (listener !== undefined && typeof listener !== 'function')
    throw invalid('onOutageChange', listener, 'a function')
}

/** Every process needs at least one unit of each limit. */
function checkShares(rules: readonly RemoteRule[], nodes: number | undefined): void {
  if (nodes === undefined) throw invalid('nodes', nodes, "the number of processes, for onOutage: 'local'")
  const small = rules.find(({ rule }) => rule.limit < nodes)
  if (small === undefined) return
  const expected = `at most ${small.rule.limit}, the limit of '${small.rule.name}': each process needs a share of it`
  throw invalid('nodes', nodes, expected)
}
