import { unitsOf } from '../core/units.js'
import type { CallLimit } from '../engines/engine.js'
import type { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'

/** Operations that decide. `try`: as `check`, but a refusal is not charged. `peek`: nothing is charged. */
export type Asking = 'check' | 'try' | 'peek'
/**
 * Operations that change a key, and answer by one number for each rule. `penalizeAgo`: for what was used some time
 * ago. `refund`: by key. `giveBack`: by decision.
 */
export type Changing = 'penalize' | 'penalizeAgo' | 'refund' | 'giveBack' | 'block' | 'unblock' | 'clear'
/** All operations on keys. */
export type Operation = Asking | Changing | 'usage'

const LESSENING: readonly Operation[] = ['refund', 'giveBack', 'unblock', 'clear']

/** Whether an operation leaves values that are no longer than before: it may run while a server's memory is full. */
export const takesNoMemory = (op: Operation): boolean => LESSENING.includes(op)

/** One key of a call. */
export interface Asked {
  readonly key: string
  /** Of the client, not in units. */
  readonly cost: number
  /** The cost in each rule, where they differ; `cost` is the largest then. */
  readonly costs?: readonly number[] | undefined
  /** The rules that are asked for nothing, because their limits need no count; undefined: none. */
  readonly free?: readonly boolean[]
}

/** The units of a request in each rule. */
export function unitsAsked({ cost, costs, free }: Asked, rules: readonly RemoteRule[]): number[] {
  return rules.map(({ rule }, i) => (free?.[i] ? 0 : unitsOf(costs?.[i] ?? cost, rule.unit ?? 1)))
}

/** What this process has had on lease: of a limiter on Redis with `mode: 'leased'`. */
export interface LeaseStats {
  /** Keys that have a lease, or have just had one. */
  keys: number
  /** Units that this process may spend now without asking. */
  held: number
  /** Messages about leases. Decisions of the server alone are not among them. */
  trips: number
  /** Of those, the ones without an answer in time. What they granted was void. */
  lost: number
  /** Units that were granted. */
  granted: number
  /** Units that were spent without a trip. */
  spent: number
  /** Units whose lease ended before they were spent. */
  expired: number
  /** Units that were given back. */
  returned: number
}

/** Counters of a store, for `stats()`. */
export interface StoreCounters {
  readonly leases?: LeaseStats
  /** Values that the store had lost, and of which this process has sent its charges again. */
  readonly restored: number
  /** Of a store that decides by swaps of values: those that failed, because another process had changed the key. */
  readonly retries?: number
  /** Calls that were given up after too many of those. */
  readonly contended?: number
}

/**
 * Where the counts of a limiter are: one server, or several. It takes checked arguments. A call that has no
 * answer in time rejects with an `Outage`.
 */
export interface RemoteStore {
  /** The limits may change, the number of rules and their windows do not. */
  rules: readonly RemoteRule[]
  /** Called when the store can be used again after an outage. */
  onRecovery: () => void
  /** Of a store that knows its rules itself: called when it has learned others than those before. */
  onRules?: () => void
  /** Whether a change may find no place for its key: then it answers 0. */
  readonly mayHaveNoPlace?: boolean
  readonly counters: StoreCounters
  /** Resolves when the store has been found usable. Rejects if it is not. */
  ready(): Promise<void>
  /** Divides the keys of a batch into calls: the indices of each. The keys of a call are decided in their order. */
  divide(asked: readonly Asked[]): number[][]
  /**
   * Decides the keys of one call, in order, each for itself. If the value of one can't be read, the promise rejects, and
   * the charges of the others are given back.
   */
  ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]>
  /** Decides a key by the limits of the rules at once, if the store can do that without a call. */
  askNow?(op: Asking, asked: Asked): RemoteDecision | undefined
  /**
   * Changes a key by `units`, one number for each rule. Returns the units of each rule, times its unit.
   * @param more further arguments of the operation
   * @param limits the limits of a call, in units
   */
  change(
    op: Changing,
    key: string,
    units: readonly number[],
    more?: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]>
  /**
   * Replaces the charge of a decision by `actualCost`; undefined: that is several changes, by units. Returns what
   * was charged in addition; below 0: given back. Neither is in units.
   */
  settle?(decision: RemoteDecision, actualCost: number): Promise<number>
  /** The units used since `ms` ago by the rule with this index, times its unit. */
  usage(key: string, ms: number, index: number): Promise<number>
  /** The limits of a call in units; undefined: those of the rules. */
  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined
  /** The keys that this process has charged, as far as it knows them. */
  chargedKeys?(): readonly string[]
  /** Forgets all keys. */
  clearAll(): Promise<void>
  /** Settles all calls. No call follows. */
  close(): Promise<void>
}
