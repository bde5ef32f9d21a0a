import type { Alignment, Edge } from '#millrace/core/rule-algorithms.js'
import { FOR_EVER as NEVER, type OnFull, PER_SECOND, type Sums } from '#millrace/memory/layout.js'
import type { Machine } from './machine.js'

/** Algorithms that count in buckets, those that count in the admission word, and those that keep each unit. */
export const BUCKET_ALGORITHMS = ['sliding-window', 'sliding-counter'] as const
export const WORD_ALGORITHMS = ['fixed-window', 'token-bucket'] as const
export const LOG_ALGORITHMS = ['sliding-log'] as const
type Explored = typeof BUCKET_ALGORITHMS | typeof WORD_ALGORITHMS | typeof LOG_ALGORITHMS
export type ExploredAlgorithm = Explored[number]

/** A window that a rule has or takes. */
export interface Window {
  /** Granules in the window. */
  readonly buckets: number
  /** The length of a granule in seconds. @default 1 */
  readonly granule?: number
}

/** An operation of one thread; a thread does its operations in order. A key is a small number. */
export type Op =
  | { do: 'read clock' } // before a late check: the thread may be stopped after it without a preemption
  | { do: 'check'; key: number; cost: number; handle?: boolean; late?: boolean; by?: By }
  | { do: 'batch'; keys: readonly number[] } // all keys are decided by one reading of the clock
  | { do: 'peek'; key: number; cost: number }
  | { do: 'give back' } // gives back the charge of the thread's last decision
  | { do: 'reserve'; key: number; cost: number; by?: By }
  /** Settles the thread's last reservation. */
  | { do: 'commit'; actualCost: number }
  | { do: 'cancel' }
  | { do: 'refund'; key: number; cost: number }
  | { do: 'penalize'; key: number; cost: number }
  | { do: 'block'; key: number; ms: number }
  | { do: 'unblock'; key: number }
  /** The key's way is lost: a thread died with it claimed. Only in `before`. */
  | { do: 'lose'; key: number }
  | { do: 'clear'; key: number }
  | { do: 'clear all' }
  | { do: 'update'; limit: number }
  /** Changes a rule's window, and its limit if one is given. */
  | ({ do: 'change'; limit?: number; rule?: number } & Window)
  | { do: 'attach' } // attaches to the arena again, without any cached state

/**
 * Decides by a group of a limiter for each rule, with the members in the order of the rules or in the
 * opposite one; or by the limiter of one rule alone.
 */
export type By = 'group' | 'reversed group' | { readonly rule: number }

export const check = (key = 1, cost = 1): Op => ({ do: 'check', key, cost })
/** Checks by a handle, which remembers the way of the thread's last decision. */
export const byHandle = (key = 1, cost = 1): Op => ({ do: 'check', key, cost, handle: true })
/** Checks by the reading of the clock that the thread took before. */
export const checkLate = (key = 1, cost = 1): Op => ({ do: 'check', key, cost, late: true })
export const readClock: Op = { do: 'read clock' }
export const refund = (cost: number, key = 1): Op => ({ do: 'refund', key, cost })
export const giveBack: Op = { do: 'give back' }
export const checkBy = (by: By, key = 1, cost = 1): Op => ({ do: 'check', key, cost, by })
export const reserve = (cost: number, by?: By, key = 1): Op => ({
  do: 'reserve',
  key,
  cost,
  ...(by && { by }),
})
export const commit = (actualCost: number): Op => ({ do: 'commit', actualCost })
export const cancel: Op = { do: 'cancel' }
/** Changes the window to `buckets` granules of `granule` seconds. */
export const change = (
  buckets: number,
  granule = 1,
  more: { readonly limit?: number; readonly rule?: number } = {},
): Op => ({ do: 'change', buckets, granule, ...more })

/** The operations that make a decision, which the thread may give back or settle. */
export const isDecision = (op: Op): op is Extract<Op, { do: 'check' | 'batch' | 'reserve' }> =>
  op.do === 'check' || op.do === 'batch' || op.do === 'reserve'

/** The forbidden outcomes. Each scenario lists those that it judges. */
export type Forbidden =
  /** More units were admitted in a window than the limit (smooth edge: in a window less one granule). */
  | 'over'
  /** A decision was refused although there was room and no other operation overlapped it. */
  | 'early'
  /** A decision was admitted while its key was blocked. */
  | 'past its block'
  /** A block was evicted for another although at most half of its key's ways were blocked. */
  | 'evicted block'
  /** At rest, and no thread died: more than half of the ways are blocked. */
  | 'too many blocks'
  /** At rest: the block of a cell ends at another moment than the block of its key. */
  | 'wrong block'
  /** An admission left a rule uncharged, or a refusal has a charged one. */
  | 'half charged'
  /** A charge went to the cell of another key. */
  | 'wrong cell'
  /** Two live cells have the name of one key. */
  | 'two cells'
  /** At rest, and no thread died: a way is still claimed or named. */
  | 'stuck way'
  /**
   * At rest: a bucket of the window counts less than was admitted in its tick. Or a thread gave back a charge
   * that a refund by key may have taken, or gave back more than its charge.
   */
  | 'lost charge'
  /** A key that displaced a live key was admitted although the inherited counts left no room. */
  | 'fresh quota'
  /** A key that counts lost its way, in a scenario that has room for all keys throughout. */
  | 'displaced'
  /** A decision that runs alone never ends. */
  | 'hang'
  /** At rest: the admission word counts less than was admitted and penalized in the window. */
  | 'low total'
  /** At rest: a decision that runs alone is refused although there is room. */
  | 'refused at rest'
  /**
   * At rest, and no thread died: a key uses more than was ever charged for it. (More than the limit, if the
   * algorithm may carry a whole limit.)
   */
  | 'counted twice'
  /** At rest, after a window and a granule and after each of `gaps`: the whole limit is not available. */
  | 'locked out'

/** A rule after the first. */
export interface FurtherRule {
  readonly limit: number
  /** Granules in its window. @default 1 */
  readonly buckets?: number
}

/**
 * Times are in granules of the first window, which are seconds. The clock only moves when the schedule moves
 * it.
 */
export interface Scenario {
  readonly forbidden: readonly Forbidden[]
  /** The readings of the clock, in order: it may advance to the next one at any moment. */
  readonly times: readonly number[]
  /** The operations of each thread. */
  readonly threads: readonly (readonly Op[])[]
  /** Operations that are done alone before the threads start, each with its time. */
  readonly before?: readonly (readonly [time: number, op: Op])[]
  /** Granules in a window. @default 1 */
  readonly buckets?: number
  /** @default 1 */
  readonly limit?: number
  /**
   * The rules after the first. Then the threads use limiters instead of an engine, and no operation is
   * 'batch', 'peek', 'read clock', 'attach' or 'update'. An empty list: a limiter of one rule.
   */
  readonly further?: readonly FurtherRule[]
  /** The structure above the buckets, of a scenario without `further`. @default 'linear' */
  readonly sums?: Sums
  readonly edge?: Edge
  /** @default 'sliding-window' */
  readonly algorithm?: ExploredAlgorithm
  /** Of a fixed window. @default 'clock' */
  readonly align?: Alignment
  readonly onFull?: OnFull
  /** The number of ways that keys may use, one in each set. @default 2 */
  readonly ways?: number
  /** For each key its first and its second way: `{ 1: [0, 1] }`. @default way 0 comes first for every key */
  readonly homes?: Readonly<Record<number, readonly [first: number, second: number]>>
  /** How far each thread's clock is ahead, in granules. */
  readonly ahead?: readonly number[]
  /**
   * The scenario has so few interleavings that all of them can be explored, with any number of preemptions.
   */
  readonly small?: boolean
  /** One of the threads may die at any step. */
  readonly deaths?: boolean
  /** Further idle times at the end, in granules, besides a window and a granule. */
  readonly gaps?: readonly number[]
  /** The keys that must have their whole limit after the idle times. @default [1] */
  readonly restKeys?: readonly number[]
}

export const GRANULE_MS = 1_000

/** "For ever" as a note. The clocks of scenarios start at 0. */
export const FOR_EVER = 2 ** 31 - 1

/** The moment of an UNTIL word, in milliseconds. */
export function msOf(until: number): number {
  return until >>> 0 === NEVER ? FOR_EVER : ((until >>> 0) * 1000) / PER_SECOND
}

/** The latest reading of any clock. Note 0 of the machine is the position of the clock. */
export function latestMs({ times, ahead = [] }: Scenario, machine: Machine): number {
  return (times[machine.getNote(0)]! + Math.max(0, ...ahead)) * GRANULE_MS
}

export function keysOf({ threads, before = [] }: Scenario): number[] {
  const keys = new Set<number>([1])
  for (const op of [...threads.flat(), ...before.map(([, op]) => op)]) {
    if ('key' in op) keys.add(op.key)
    else if (op.do === 'batch') for (const key of op.keys) keys.add(key)
  }
  return [...keys].sort((a, b) => a - b)
}

/** The changes of a rule's window, by its threads or before they start. */
export function changesOf({ threads, before = [] }: Scenario, rule: number): Window[] {
  const ops = [...before.map(([, op]) => op), ...threads.flat()]
  return ops.filter((op) => op.do === 'change' && (op.rule ?? 0) === rule) as (Op & Window)[]
}
