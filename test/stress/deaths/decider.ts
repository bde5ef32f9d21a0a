import { attachLimiter, type Clock, type Limiter, type SharedLimiter } from 'millrace'
import { SharedManualClock } from '#millrace/core/clock.js'
import { type InlineDecision, Outcome } from '#millrace/core/decision.js'
import { random } from '../../algorithms/random.js'
import type { Log } from '../log.js'
import { Timeline, widthOf } from '../timeline.js'
import type { Board } from './board.js'
import { BUCKETS, HOT_KEYS, KEYS, WINDOW_MS } from './job.js'

/** The round's clock, seen by a thread: `shared` is of a limiter with a manual one. */
export function timelineOf(shared: SharedLimiter): Timeline {
  return new Timeline(new SharedManualClock(shared.clock as SharedArrayBuffer), WINDOW_MS, BUCKETS)
}

/**
 * Decisions of a thread that may die in the midst of one.
 *
 * Each operation on a judged key goes: intend (key and cost, on the board), decide, enter in the log, done. What is
 * entered is what the thread had been told; a thread that dies before its entry leaves its intent, and whether its last
 * units were charged, admitted or neither is open. So the log never says more than was admitted, and no death makes
 * windows over the limit that were none. For the same reason units are taken out of the log before they are given back.
 *
 * Nor does it hide more than that: afterwards, with all threads at rest, what the limiter counts for each key must be
 * what the log says, and at most the intents of the dead more (`checks.ts`). Between the moment at which a thread is told
 * and its entry there are a few instructions outside of the limiter. A thread that dies there takes an admission with it
 * that nobody ever acted upon; that cannot be what keeps the windows within their limit, for a limiter that goes over
 * does not know whose answer will be lost: it would show with those who live on, as almost all do.
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

  /** Nothing of before this tick will be entered any more. */
  pin(): void {
    this.#timeline.now()
    this.#log.pin(this.#thread, this.#timeline.tick)
  }

  waitForSweep(): void {
    this.#log.waitForSweep(this.#timeline.tick)
  }

  /** One operation: on a key that is new, on a hot one, or now and then on another. Returns its decision. */
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
    if (decision.allowed && this.next() < 0.2) this.#giveBack(key, decision, cost)
    this.#board.done(this.#thread)
    return decision
  }

  #giveBack(key: number, decision: InlineDecision, cost: number): void {
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
