import { attachLimiter, type Clock, type Limiter, type SharedLimiter } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { type InlineDecision, Outcome } from '#millrace/core/inline-decision.js'
import { random } from '../../algorithms/random.js'
import type { Log } from '../log.js'
import { Timeline, widthOf } from '../timeline.js'
import type { Board } from './board.js'
import { BUCKETS, HOT_KEYS, KEYS, WINDOW_MS } from './job.js'

/** A thread's view of the round's clock. `shared` belongs to a limiter with a manual clock. */
export function timelineOf(shared: SharedLimiter): Timeline {
  return new Timeline(new SharedManualClock(shared.clock as SharedArrayBuffer), WINDOW_MS, BUCKETS)
}

/**
 * Makes the decisions of a thread that may die at any point.
 *
 * An operation on a judged key has four steps: record the intent (key and cost) on the board, decide, enter
 * the decision in the log, clear the intent. A thread that dies before its entry leaves the intent; its last
 * units may have been charged, admitted or neither. So the log never has more than was admitted, and a death
 * cannot make a window seem over the limit. For the same reason units leave the log before they are refunded.
 *
 * A death hides no more than its intent. With all threads at rest, the limiter's count of each key must be
 * the log's, plus at most the intents of the dead (`checks.ts`). A few instructions outside the limiter lie
 * between a decision and its entry. A thread that dies there hides an admission that no caller used. That
 * cannot hide a limiter that exceeds limits: the limiter does not know which thread will die, so excess
 * admissions would show with the surviving threads too.
 */
export class Decider {
  readonly limiter: Limiter
  readonly next: () => number
  readonly #log: Log
  readonly #board: Board
  readonly #thread: number
  readonly #timeline: Timeline
  readonly #width: number
  readonly #keys: string[]
  #visits = 0

  constructor(
    shared: SharedLimiter,
    log: Log,
    board: Board,
    thread: number,
    seed: number,
    timeline: Timeline,
    clock: Clock = timeline,
  ) {
    this.limiter = attachLimiter(shared, { clock })
    this.#log = log
    this.#board = board
    this.#thread = thread
    this.#timeline = timeline
    this.#width = widthOf(this.limiter.rule)
    this.#keys = Array.from({ length: KEYS }, (_, key) => keyName(key))
    this.next = random(seed)
  }

  /** Announces that no entry below the current tick will follow. */
  pin(): void {
    this.#timeline.now()
    this.#log.pin(this.#thread, this.#timeline.tick)
  }

  waitForSweep(): void {
    this.#log.waitForSweep(this.#timeline.tick)
  }

  /** Makes one operation on a new key, a hot key or, rarely, another key, and returns its decision. */
  operate(newKeys: number): InlineDecision {
    const pick = this.next()
    const decision = pick < newKeys ? this.#visit() : this.#charge()
    this.#log.make(this.#thread, 1)
    return decision
  }

  #charge(): InlineDecision {
    const key = Math.floor(this.next() * (this.next() < 0.95 ? HOT_KEYS : KEYS))
    const cost = 1 + Math.floor(this.next() * 3)
    this.#board.intend(this.#thread, key, cost)
    const decision = this.limiter.check(this.#keys[key]!, cost) as InlineDecision
    if (decision.outcome === Outcome.CHARGED) this.#enter(key, decision, cost)
    if (decision.allowed && this.next() < 0.2) this.#refund(key, decision, cost)
    this.#board.done(this.#thread)
    return decision
  }

  #refund(key: number, decision: InlineDecision, cost: number): void {
    this.#enter(key, decision, -cost)
    if (this.limiter.refund(decision) === 0) this.#enter(key, decision, cost)
  }

  #visit(): InlineDecision {
    return this.limiter.check(`visitor ${this.#visits++} of ${this.#thread}`) as InlineDecision
  }

  #enter(key: number, decision: InlineDecision, units: number): void {
    this.#log.enter(key, this.#timeline.ofWord(decision.tick), units, this.#width)
  }
}

export const keyName = (key: number): string => `${key < HOT_KEYS ? 'hot' : 'idle'} ${key}`
