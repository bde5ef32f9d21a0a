// What the conformance suite knows of each algorithm: how to choose it, and how many units count when.
import type { RuleOptions } from 'millrace'
import { START_MS } from '../limiter/support.js'

/** A rule of one limit, in milliseconds. */
export interface TimedRule {
  readonly limit: number
  readonly windowMs: number
  readonly granularityMs: number
}

/** Units that were charged at a moment, in milliseconds of the clock. */
export interface Charge {
  readonly atMs: number
  readonly units: number
}

/**
 * An algorithm, by definition and not by its code. `used` may only fall while nothing is charged: then all
 * figures of a decision follow from it.
 */
export interface AlgorithmCase {
  readonly name: string
  /** The options of a rule that choose the algorithm. */
  readonly options: Partial<RuleOptions>
  /** Whether a window has one granule, whatever granularity the claims ask for. */
  readonly hasOneGranule?: true
  /** The units that count against a decision at `nowMs`. */
  used(rule: TimedRule, charges: readonly Charge[], nowMs: number): number
  /** The units that `usage(key, lastMs)` returns. */
  usedInLast(rule: TimedRule, charges: readonly Charge[], nowMs: number, lastMs: number): number
}

/** A charge counts from its tick to the end of the tick that is a window later. */
const strict: AlgorithmCase = {
  name: 'sliding window',
  options: { algorithm: 'sliding-window' },
  used: ({ windowMs, granularityMs }, charges, nowMs) =>
    sum(charges, ({ atMs }) => age(atMs, nowMs, granularityMs) <= windowMs / granularityMs),
  usedInLast: ({ granularityMs }, charges, nowMs, lastMs) =>
    sum(
      charges,
      ({ atMs }) => Math.floor(atMs / granularityMs) >= Math.floor((nowMs - lastMs) / granularityMs),
    ),
}

/** The same, but the oldest granule counts by its part inside, in sixteenths, rounded up. */
const smooth: AlgorithmCase = {
  ...strict,
  name: 'sliding window, smooth edge',
  options: { algorithm: 'sliding-window', edge: 'smooth' },
  used({ windowMs, granularityMs }, charges, nowMs) {
    const granules = windowMs / granularityMs
    const whole = sum(charges, ({ atMs }) => age(atMs, nowMs, granularityMs) < granules)
    const oldest = sum(charges, ({ atMs }) => age(atMs, nowMs, granularityMs) === granules)
    const left = Math.floor((16 * (nowMs % granularityMs)) / granularityMs) / 16
    return whole + Math.ceil(oldest * (1 - left))
  },
}

/** The same with one granule in a window. */
const counter: AlgorithmCase = {
  ...smooth,
  name: 'sliding counter',
  options: { algorithm: 'sliding-counter' },
  hasOneGranule: true,
}

/** All algorithms, each with its variants. */
export const ALGORITHMS: readonly AlgorithmCase[] = [strict, smooth, counter]

const age = (atMs: number, nowMs: number, granularityMs: number): number =>
  Math.floor(nowMs / granularityMs) - Math.floor(atMs / granularityMs)

const sum = (charges: readonly Charge[], counts: (charge: Charge) => boolean): number =>
  charges.filter(counts).reduce((units, charge) => units + charge.units, 0)

/** A charge of a claim: its time in milliseconds after the start, and its units. */
type Charged = readonly [afterMs: number, units: number]

/** What a key that has these charges and no others must show, at the present time of the clock. */
export class Times {
  readonly #algorithm: AlgorithmCase
  readonly #rule: TimedRule
  readonly #clock: { now(): number }

  constructor(algorithm: AlgorithmCase, rule: TimedRule, clock: { now(): number }) {
    this.#algorithm = algorithm
    this.#rule = rule
    this.#clock = clock
  }

  /** Units that count against a decision. */
  used(...charged: readonly Charged[]): number {
    return this.#algorithm.used(this.#rule, chargesOf(charged), this.#clock.now())
  }

  usedInLast(lastMs: number, ...charged: readonly Charged[]): number {
    return this.#algorithm.usedInLast(this.#rule, chargesOf(charged), this.#clock.now(), lastMs)
  }

  /** `retryAfterMs` of a refusal of `cost`. */
  untilFits(cost: number, ...charged: readonly Charged[]): number {
    return this.#untilAtMost(this.#rule.limit - cost, charged)
  }

  /** `resetMs`: until the key has its whole limit. */
  untilEmpty(...charged: readonly Charged[]): number {
    return this.#untilAtMost(0, charged)
  }

  /** The first whole millisecond after now at which at most `most` units count. */
  #untilAtMost(most: number, charged: readonly Charged[]): number {
    const charges = chargesOf(charged)
    const fits = (ms: number) => this.#algorithm.used(this.#rule, charges, this.#clock.now() + ms) <= most
    let low = -1
    let high = 4 * this.#rule.windowMs
    if (!fits(high)) throw new Error(`${most} units do not fit within four windows`)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (fits(middle)) high = middle
      else low = middle
    }
    return high
  }
}

const chargesOf = (charged: readonly Charged[]): Charge[] =>
  charged.map(([afterMs, units]) => ({ atMs: START_MS + afterMs, units }))
