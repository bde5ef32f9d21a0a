import type { Decision, KeyHandle, Limiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { Ticks } from '#millrace/core/ticks.js'
import type { InlineEngine } from '#millrace/engines/inline/inline.js'
import { random } from '../../algorithms/random.js'
import type { Board } from './board.js'
import { type Counts, FIELDS, noCounts } from './job.js'
import { keyOf } from './keys.js'
import type { Planned } from './plan.js'
import type { Shape } from './shapes.js'

/** Keys of a batch: enough for the addon to decide them, and more than one reading of the clock. */
const MOST_IN_BATCH = 80
/** Keys that are in use at the same time, in shapes that use keys in turn. */
const AT_ONCE = 8
const TURNS_A_KEY = 4

/** Makes one thread's decisions of a round, and keeps a log of its admissions. */
export class Decider {
  readonly counts: Counts = noCounts()
  readonly next: () => number
  readonly #limiter: Limiter
  readonly #shape: Shape
  readonly #board: Board
  readonly #keys: readonly string[]
  readonly #handles: readonly KeyHandle[]
  /** The limit that each window of each rule has. */
  readonly #limits: readonly ReadonlyMap<number, number>[]
  readonly #log: number[] = []
  readonly #ticks = new Map<string, Ticks>()
  #held: { decision: InlineDecision; entry: number } | undefined
  #turn = 0

  constructor(limiter: Limiter, shape: Shape, plans: readonly Planned[][], board: Board, seed: number) {
    this.#limiter = limiter
    this.#shape = shape
    this.#board = board
    this.#keys = Array.from({ length: shape.keys }, (_, key) => keyOf(key))
    this.#handles = this.#keys.map((key) => limiter.handle(key))
    this.#limits = plans.map((plan) => new Map(plan.map(({ windowMs, limit }) => [windowMs, limit])))
    this.next = random(seed)
  }

  get admissions(): Float64Array {
    return Float64Array.from(this.#log)
  }

  turn(operations: number): void {
    this.#turn++
    for (let i = 0; i < operations; i++) {
      const { changed } = this.#board
      this.#operate()
      if (this.#board.changed !== changed) this.counts.overlapped++
    }
  }

  /** Gives back what it still holds. */
  end(): void {
    this.#giveBackHeld()
  }

  #operate(): void {
    const pick = this.next()
    if (pick < 0.02) this.#checkMany()
    else if (pick < 0.03) this.#limiter.peek(this.#pick(), 1)
    else if (pick < 0.04) this.#limiter.usage(this.#pick())
    else if (!this.#shape.adjusts || pick < 0.95) this.#check(this.#shape.adjusts && pick < 0.3)
    else if (pick < 0.97) this.#giveBackHeld()
    else if (pick < 0.98) this.#limiter.penalize(this.#pick(), 1)
    else if (pick < 0.9802) this.#limiter.block(this.#pick(), 1)
    else if (pick < 0.99) this.#limiter.unblock(this.#pick())
    else this.#check(true)
  }

  #pick(): string {
    return this.#keys[this.#pickKey()]!
  }

  #pickKey(): number {
    const { keys, picks } = this.#shape
    if (picks === 'unevenly') return Math.floor(keys * this.next() ** 3)
    return (Math.floor(this.#turn / TURNS_A_KEY) * AT_ONCE + Math.floor(this.next() * AT_ONCE)) % keys
  }

  #check(isToBeGivenBack: boolean): void {
    const key = this.#pickKey()
    const cost = 1 + Math.floor(this.next() * 3)
    const to = this.next() < 0.5 ? this.#handles[key]! : this.#keys[key]!
    const decision: Decision = this.#limiter.check(to, cost)
    this.counts.decisions++
    if (!decision.allowed) return
    this.counts.admissions++
    const parts = decision.rules as readonly InlineDecision[]
    for (const [rule, part] of parts.entries()) {
      const { windowMs, buckets } = (part.engine as InlineEngine).arena.shape
      if (this.#limits[rule]!.get(windowMs) !== part.limit) this.counts.mixed++
      const fromMs = part.effectMs(part.at)
      // A moment that is the start of a granule is a product, which may be rounded down.
      const nudge = fromMs === part.at ? 0 : 1e-6
      const tick = Math.floor(this.#ticksOf(windowMs, buckets).position(fromMs) + nudge)
      this.#log.push(rule, key, cost, fromMs, tick, tick, windowMs)
    }
    if (!isToBeGivenBack || this.#held !== undefined) return
    this.#held = { decision: parts[0]!, entry: this.#log.length - FIELDS }
  }

  #giveBackHeld(): void {
    if (this.#held === undefined) return
    const { decision, entry } = this.#held
    this.#held = undefined
    const units = this.#limiter.refund(decision)
    if (units > 0) this.counts.refunded++
    this.#log[entry + 2]! -= units
  }

  /**
   * A batch does not say when it decided a key. Its admissions are logged if no rule has changed during the
   * call.
   */
  #checkMany(): void {
    const keys = Array.from({ length: 1 + Math.floor(this.next() * MOST_IN_BATCH) }, () => this.#pickKey())
    const fromMs = monotonicClock.now()
    const before = this.#limiter.rules.map(({ windowMs }) => windowMs)
    const { allowed } = this.#limiter.checkMany(keys.map((key) => this.#keys[key]!))
    const after = this.#limiter.rules
    const toMs = monotonicClock.now()
    this.counts.batches++
    this.counts.decisions += keys.length
    if (after.some(({ windowMs }, rule) => windowMs !== before[rule])) return
    for (const [rule, { windowMs, granularityMs }] of after.entries()) {
      const ticks = this.#ticksOf(windowMs, Math.round(windowMs / granularityMs))
      const [first, last] = [fromMs, toMs].map((ms) => Math.floor(ticks.position(ms)))
      for (const [i, key] of keys.entries())
        if (allowed[i] === 1) this.#log.push(rule, key, 1, fromMs, first!, last!, windowMs)
    }
  }

  #ticksOf(windowMs: number, buckets: number): Ticks {
    const name = `${windowMs} ${buckets}`
    const known = this.#ticks.get(name)
    if (known !== undefined) return known
    const ticks = new Ticks(windowMs, buckets, 2 ** 32)
    this.#ticks.set(name, ticks)
    return ticks
  }
}
