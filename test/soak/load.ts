import type { Decision, KeyHandle, Limiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { attachArena } from '#millrace/memory/arena.js'
import { random } from '../algorithms/random.js'
import { Insertions } from './insertions.js'
import { Logs } from './logs.js'
import { anyHotKey, nameOf, Population, type Traffic } from './traffic.js'

/** One thread's operations on one limiter. */
export interface Counts {
  admitted: number
  refused: number
  /** See `Insertions`. */
  made: number
  unclear: number
}

const HANDLES = 1_024
const HELD = 256
const BATCH = 64
const HOT_SHARE = 0.1

/** One thread's load on a limiter: all operations that a server may make, in slices of decisions. */
export class Load {
  readonly #limiter: Limiter
  readonly #traffic: Traffic
  readonly #population: Population
  readonly #logs: Logs
  readonly #insertions: Insertions
  readonly #next: () => number
  readonly #handles: ({ key: number; handle: KeyHandle } | undefined)[] = new Array(HANDLES).fill(undefined)
  /** Decisions to refund later. */
  readonly #held: ({ key: number; decision: Decision } | undefined)[] = new Array(HELD).fill(undefined)
  #admitted = 0
  #refused = 0
  #oldest = 0

  constructor(limiter: Limiter, traffic: Traffic, logs: Logs, seed: number) {
    this.#limiter = limiter
    this.#traffic = traffic
    this.#population = new Population(traffic)
    this.#logs = logs
    this.#insertions = new Insertions(attachArena(limiter.share().buffer))
    this.#next = random(seed)
  }

  get counts(): Counts {
    const { made, unclear } = this.#insertions
    return { admitted: this.#admitted, refused: this.#refused, made, unclear }
  }

  /** Makes at least `count` decisions. `end` is the first key that must not be used yet. */
  slice(decisions: number, end: number): void {
    this.#insertions.watch()
    const elapsedMs = monotonicClock.now() - this.#logs.startMs
    this.#oldest = Math.min(this.#population.oldest(elapsedMs), end - this.#traffic.keys)
    const goal = this.#admitted + this.#refused + decisions
    while (this.#admitted + this.#refused < goal) this.#act(this.#next())
  }

  #act(pick: number): void {
    const key = this.#anyKey()
    if (pick < 0.78) this.#check(key, nameOf(key))
    else if (pick < 0.9) this.#checkByHandle()
    else if (pick < 0.903) this.#batch()
    else if (pick < 0.93) this.#limiter.peek(nameOf(key)).toJSON()
    else if (pick < 0.97) this.#giveBack(Math.floor(this.#next() * HELD))
    else if (pick < 0.98) this.#limiter.usage(nameOf(key))
    else if (pick < 0.981) this.#limiter.block(nameOf(key), 1 + Math.floor(this.#next() * 200))
    else if (pick < 0.9815) this.#limiter.unblock(nameOf(key))
    else if (!Logs.isJudged(key)) this.#adjust(pick, nameOf(key))
  }

  /**
   * Operations that a log by tick cannot follow: they refund the oldest tick, or charge without a decision.
   */
  #adjust(pick: number, name: string): void {
    if (pick < 0.993) this.#limiter.refund(name, 2)
    else if (pick < 0.998) this.#limiter.penalize(name, 2)
    else this.#limiter.clear(name)
  }

  #check(key: number, name: string | KeyHandle): void {
    const cost = this.#next() < 0.1 ? 3 : 1
    const decision = this.#limiter.check(name, cost)
    if (!decision.allowed) {
      this.#refused++
      if ((this.#refused & 15) === 0) decision.toJSON()
      return
    }
    this.#admitted++
    this.#logs.add(key, (decision as InlineDecision).tick, cost)
    if ((this.#admitted & 15) === 0) this.#held[Math.floor(this.#next() * HELD)] = { key, decision }
  }

  #checkByHandle(): void {
    const i = Math.floor(this.#next() * HANDLES)
    const kept = this.#handles[i]
    if (kept !== undefined && (kept.key < 0 || kept.key >= this.#oldest)) {
      this.#check(kept.key, kept.handle)
      return
    }
    const key = this.#anyKey()
    const handle = this.#limiter.handle(nameOf(key))
    this.#handles[i] = { key, handle }
    this.#check(key, handle)
  }

  /** Excludes judged keys, because a batch does not report the ticks of its charges. */
  #batch(): void {
    const keys: string[] = []
    while (keys.length < BATCH) {
      const key = this.#anyKey()
      if (!Logs.isJudged(key)) keys.push(nameOf(key))
    }
    for (const allowed of this.#limiter.checkMany(keys).allowed) {
      if (allowed === 1) this.#admitted++
      else this.#refused++
    }
  }

  #giveBack(i: number): void {
    const held = this.#held[i]
    if (held === undefined) return
    this.#held[i] = undefined
    const { key, decision } = held
    const given = this.#limiter.refund(decision)
    if (given > 0) this.#logs.add(key, (decision as InlineDecision).tick, -given)
  }

  #anyKey(): number {
    if (this.#next() < HOT_SHARE) return anyHotKey(this.#next())
    return this.#oldest + Math.floor(this.#next() * this.#traffic.keys)
  }
}
