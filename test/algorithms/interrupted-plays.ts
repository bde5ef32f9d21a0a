// Interrupts an operation of one thread at each of its operations on shared memory in turn, and runs
// operations of another thread there. `test/explore` covers more interleavings, but judges only the promises
// about decisions. The tests that play this judge what the callers get.
import { attachLimiter, type Limiter, type LimiterOptions, type ManualClock } from 'millrace'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { ADM, CLAIMED } from '#millrace/memory/layout.js'
import { limiterWith } from '../limiter/support.js'
import { interrupted } from './interrupted.js'

/** The ways of a table of one key. */
export const PLACES = 32
/** The largest count that fits: one above the largest limit. */
export const FULLEST = 2 ** 22 - 1
export const HOUR = 3_600_000
/** Of the points at which another dies, beside each at which the first is interrupted. */
export const STEP = 1

export interface Setup {
  clock: ManualClock
  limiter: Limiter
  /** The same limiter, attached on another thread. */
  other: Limiter
}

interface Play<T> {
  options?: Partial<LimiterOptions>
  /** The number of usable ways. Dead threads have left the other ways claimed. */
  places?: number
  before?: (setup: Setup) => void
  act: (limiter: Limiter) => T
  between: (setup: Setup) => void
  judge: (setup: Setup, result: T, at: string) => void
}

/**
 * Runs the play for every point at which `act` can be interrupted; with `times` = 2 for every pair of points.
 */
export function everywhere<T>(play: Play<T>, times = 1): void {
  let last = 0
  while (playAt([last], play)) {
    for (let first = 0; times > 1 && first < last; first++) playAt([first, last], play)
    last++
  }
  assert.ok(last > 3, `${last} points`)
}

/** Runs the play with interruptions at these points. Returns whether `act` has all of them. */
function playAt<T>(
  points: readonly number[],
  { options, places = 1, before, act, between, judge }: Play<T>,
): boolean {
  const { clock, limiter } = limiterWith({ maxKeys: 1, ...options })
  const { words, shape } = attachArena(limiter.share().buffer)
  for (let i = places; i < PLACES; i++) words[shape.waysAt + i * shape.wayWords + ADM] = CLAIMED
  const setup = { clock, limiter, other: attachLimiter(limiter.share()) }
  before?.(setup)
  const { result, wasInterrupted } = interrupted(
    points,
    () => act(limiter),
    () => between(setup),
  )
  if (wasInterrupted) judge(setup, result, `interrupted at ${points}`)
  return wasInterrupted
}
