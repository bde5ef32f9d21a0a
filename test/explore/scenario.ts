import type { Edge } from '#millrace/core/rule.js'
import { FOR_EVER as NEVER, type OnFull, PER_SECOND, type Sums } from '#millrace/memory/layout.js'

/** What one thread does, one after the other. A key is a small number. */
export type Op =
  | { do: 'read clock' } // for a late check: the thread may be stopped after it, and it is no preemption
  | { do: 'check'; key: number; cost: number; handle?: boolean; late?: boolean }
  | { do: 'batch'; keys: readonly number[] } // decided by one reading of the clock
  | { do: 'peek'; key: number; cost: number }
  | { do: 'give back' } // what the thread's last decision charged
  | { do: 'refund'; key: number; cost: number }
  | { do: 'penalize'; key: number; cost: number }
  | { do: 'block'; key: number; ms: number }
  | { do: 'unblock'; key: number }
  /** Its way is lost for good: a thread died that had claimed it. Only beforehand. */
  | { do: 'lose'; key: number }
  | { do: 'clear'; key: number }
  | { do: 'update'; limit: number }
  | { do: 'attach' } // joins anew, with nothing remembered

export const check = (key = 1, cost = 1): Op => ({ do: 'check', key, cost })
/** By a handle, which remembers where the thread's last decision found its key. */
export const byHandle = (key = 1, cost = 1): Op => ({ do: 'check', key, cost, handle: true })
/** By the reading of the clock that the thread took before. */
export const checkLate = (key = 1, cost = 1): Op => ({ do: 'check', key, cost, late: true })
export const readClock: Op = { do: 'read clock' }
export const refund = (cost: number, key = 1): Op => ({ do: 'refund', key, cost })
export const giveBack: Op = { do: 'give back' }

/** What must never be; each scenario names those that it could see. */
export type Forbidden =
  /** More admitted in a window than the limit (smooth: in a window less a granule). */
  | 'over'
  /** Refused although there was room, and nothing else was under way meanwhile. */
  | 'early'
  /** Admitted while blocked. */
  | 'past its block'
  /** A block ended for another although no more than half of its key's ways were blocked. */
  | 'given way'
  /** At rest, and nobody died: more than half of the ways are blocked. */
  | 'too many blocks'
  /** At rest: a cell is blocked until another moment than its key was. */
  | 'wrong block'
  /** Charged to the cell of another key. */
  | 'wrong cell'
  /** Two live cells of one key. */
  | 'two cells'
  /** At rest, and nobody died: a way that is claimed or named, and nobody's. */
  | 'stuck way'
  /** At rest: a bucket of the window counts less than was admitted in its tick. */
  | 'lost charge'
  /** Who displaced a live key was admitted although that one's counts left no room. */
  | 'fresh quota'
  /** A decision that never ends, alone. */
  | 'hang'
  /** At rest: the admission word counts less than was admitted and penalized in the window. */
  | 'low total'
  /** At rest: a lone decision is refused although there is room. */
  | 'refused at rest'
  /** At rest, after a window and a granule and each of `gaps`: the whole limit is not there. */
  | 'locked out'

/** Time is in granules, and a granule a second; the clock stands until it is moved. */
export interface Scenario {
  readonly forbidden: readonly Forbidden[]
  /** What the clock reads, one after the other: it may move on at any moment. */
  readonly times: readonly number[]
  /** The threads: what each does. */
  readonly threads: readonly (readonly Op[])[]
  /** What was done before, alone, and when. */
  readonly before?: readonly (readonly [time: number, op: Op])[]
  /** Granules in a window. @default 1 */
  readonly buckets?: number
  /** @default 1 */
  readonly limit?: number
  /** What stands above the buckets. @default 'linear' */
  readonly sums?: Sums
  readonly edge?: Edge
  readonly onFull?: OnFull
  /** Ways that keys are in, one a set. @default 2 */
  readonly ways?: number
  /** The way that each key tries first, and the other: `{ 1: [0, 1] }`. @default each key's first is way 0 */
  readonly homes?: Readonly<Record<number, readonly [first: number, second: number]>>
  /** How far each thread's clock is ahead, in granules. */
  readonly ahead?: readonly number[]
  /** So few interleavings that all can be explored, however often threads are left in the middle of something. */
  readonly small?: boolean
  /** One of the threads may die, anywhere. */
  readonly deaths?: boolean
  /** More granules to stay idle for at the end. @default none but a window and a granule */
  readonly gaps?: readonly number[]
  /** The keys that must have their whole limit then. @default [1] */
  readonly restKeys?: readonly number[]
}

export const GRANULE_MS = 1_000

/** As a note; the clocks of scenarios start at 0. */
export const FOR_EVER = 2 ** 31 - 1

/** The moment of a word of UNTIL. */
export function msOf(until: number): number {
  return until >>> 0 === NEVER ? FOR_EVER : ((until >>> 0) * 1000) / PER_SECOND
}

export function keysOf({ threads, before = [] }: Scenario): number[] {
  const keys = new Set<number>([1])
  for (const op of [...threads.flat(), ...before.map(([, op]) => op)]) {
    if ('key' in op) keys.add(op.key)
    else if (op.do === 'batch') for (const key of op.keys) keys.add(key)
  }
  return [...keys].sort((a, b) => a - b)
}

/** Every tick that a cell may have, in order: those that a clock may read, and those by way of which it moves far. */
export function ticksOf({ times, before = [], ahead = [] }: Scenario, ring: number): number[] {
  const ticks = new Set<number>()
  for (const time of [...times, ...before.map(([time]) => time)]) {
    for (const more of [0, ...ahead]) ticks.add(Math.floor(time + more))
  }
  for (const from of ticks) {
    for (const to of ticks) {
      const beyond = to - from - 64 * ring
      if (beyond > 0) ticks.add(from + 64 * ring + 256 * ring * Math.floor(beyond / (256 * ring)))
    }
  }
  return [...ticks].sort((a, b) => a - b)
}
