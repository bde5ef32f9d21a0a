import { attachLimiter, type Limiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { type InlineDecision, Outcome } from '#millrace/core/inline-decision.js'
import { random } from '../../algorithms/random.js'
import { Log } from '../log.js'
import { Timeline, widthOf } from '../timeline.js'
import { type Counts, type Job, noCounts } from './job.js'
import type { Shape } from './shapes.js'

const MOST_COMPLAINTS = 5
/** Keys of one tick, for shapes that use keys in turn. */
const AT_ONCE = 8

/**
 * Makes one thread's decisions, enters each in the log, and judges its refusals at once.
 *
 * A refusal without overlapping operations on its key is judged by the log. All earlier operations have ended
 * and are entered, and no later one has begun, so no entry is later. For a reading in tick t, an exact
 * limiter that is one granule stricter counts all ticks from t - n to t, because granule t - n began less
 * than a window and a granule ago. That count plus this cost must exceed the limit. No operation can have
 * moved the key beyond t, because all earlier ones read the same clock earlier.
 */
export class Decider {
  readonly counts: Counts = noCounts()
  readonly limiter: Limiter
  readonly next: () => number
  readonly #shape: Shape
  readonly #log: Log
  readonly #thread: number
  readonly #timeline: Timeline
  readonly #width: number
  readonly #handles: ReturnType<Limiter['handle']>[]
  #held: { key: number; decision: InlineDecision } | undefined

  constructor({ shared, memory, shape, thread, seed, aheadMs }: Job) {
    const { window, granularity } = shape.options
    const source = { now: () => monotonicClock.now() + aheadMs }
    this.#shape = shape
    this.#log = new Log(memory)
    this.#thread = thread
    this.#timeline = new Timeline(source, window, Math.round(window / granularity))
    this.limiter = attachLimiter(shared, { clock: this.#timeline })
    this.#width = widthOf(this.limiter.rule)
    this.#handles = Array.from({ length: shape.keys }, (_, key) => this.limiter.handle(`key ${key}`))
    this.next = random(seed)
  }

  /** Starts a new turn and announces that no earlier entry will follow. */
  begin(): void {
    this.giveBackHeld()
    this.#timeline.now()
    this.#log.pin(this.#thread, this.#timeline.tick)
    this.#log.waitForSweep(this.#timeline.tick)
  }

  pickKey(): number {
    const { keys, picks } = this.#shape
    // The first of 256 keys gets a sixth of the decisions.
    if (picks === 'unevenly') return Math.floor(keys * this.next() ** 3)
    return Math.floor((this.#timeline.tick + this.next()) * AT_ONCE) % keys
  }

  pickCost(): number {
    const { mostCost } = this.#shape
    return mostCost === 1 ? 1 : 1 + Math.floor(this.next() * mostCost)
  }

  check(key: number, cost: number, isToBeGivenBack: boolean): void {
    const { counts } = this
    const marked = this.#shape.judgesRefusals
    const begun = marked ? this.#log.begin(key) : 0
    const decision = this.limiter.check(this.#handles[key]!, cost) as InlineDecision
    counts.decisions++
    if (decision.outcome === Outcome.CHARGED) {
      counts.admissions++
      this.#enter(key, decision, cost)
      if (marked) this.#log.end(key)
      if (isToBeGivenBack) this.#hold(key, decision)
    } else {
      counts.refusals++
      if (marked) this.#judge(key, cost, begun)
    }
  }

  /** Peeks at a key and judges a refusal in the same way. */
  peek(key: number, cost: number): void {
    const marked = this.#shape.judgesRefusals
    const begun = marked ? this.#log.begin(key) : 0
    const decision = this.limiter.peek(this.#handles[key]!, cost)
    this.counts.peeks++
    if (!marked) return
    if (decision.allowed) this.#log.end(key)
    else this.#judge(key, cost, begun)
  }

  giveBackHeld(): void {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    const { key, decision } = held
    const { cost } = decision
    const marked = this.#shape.judgesRefusals
    if (marked) this.#log.begin(key)
    if (this.limiter.refund(decision) > 0) {
      this.counts.refunded++
      this.#enter(key, decision, -cost)
    }
    if (marked) this.#log.end(key)
  }

  #hold(key: number, decision: InlineDecision): void {
    if (this.#held === undefined) this.#held = { key, decision }
  }

  #enter(key: number, decision: InlineDecision, units: number): void {
    const column = this.#shape.column === 'key' ? key : decision.way
    this.#log.enter(column, this.#timeline.ofWord(decision.tick), units, this.#width)
    this.counts.units += units
  }

  /** Must run before the end of the operation, so that a concurrent change of the log is detected. */
  #judge(key: number, cost: number, begun: number): void {
    if (!Log.beganAlone(begun)) {
      this.#log.end(key)
      return
    }
    const { tick, buckets } = this.#timeline
    const used = this.#log.sum(key, tick - buckets, tick)
    if (!Log.wasAlone(begun, this.#log.end(key))) return
    this.counts.judged++
    if (used + cost > this.#shape.options.limit) return
    this.counts.early++
    if (this.counts.complaints.length < MOST_COMPLAINTS) {
      this.counts.complaints.push(`key ${key}: ${cost} refused at tick ${tick} with ${used} used`)
    }
  }
}
