// What the conformance suite knows of each algorithm: how to choose it, and how many units count when.
import type { RuleOptions } from 'millrace'
import type { RedisLimiterOptions } from 'millrace/redis'
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
  /** The limit of the call, if it had one. */
  readonly limit?: number | undefined
}

/**
 * An algorithm, by definition and not by its code. `used` may only fall while nothing is charged: then all
 * figures of a decision follow from it.
 */
export interface AlgorithmCase {
  readonly name: string
  /** The options of a rule that choose the algorithm. */
  readonly options: Partial<RuleOptions>
  /** The option `maxLimit` of a rule with this limit. */
  maxLimit?(limit: number): number
  /** The granularity of a rule, if it has no such option. */
  granularityMs?(rule: Omit<TimedRule, 'granularityMs'>): number
  /** The tick of a word of TICK, if that is not the word. */
  tickOf?(word: number): number
  /** Whether it counts in parts of the limit: a limit of a call changes the parts, and so does `update`. */
  readonly countsInParts?: true
  /** Whether a limiter on Redis does not have it. */
  readonly isNotOnRedis?: true
  /** The options of a limiter on Redis, if it is only there. */
  readonly onlyOnRedis?: Partial<RedisLimiterOptions>
  /** What differs on Redis. */
  readonly onRedis?: Partial<AlgorithmCase>
  /** Whether it is another one by another name. */
  readonly isAlias?: true
  /** Whether all units of a window are forgotten at its end. */
  readonly hasBoundaries?: true
  /** The largest limit, and the most units that count, if they are less than those of a sliding window. */
  readonly mostLimit?: number
  mostUsed?(limit: number): number
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

/** Each unit counts for a window, to the millisecond. On Redis, the entry of a penalty has any units. */
const log: AlgorithmCase = {
  name: 'sliding log',
  options: { algorithm: 'sliding-log' },
  onRedis: { mostUsed: () => 4_194_303 },
  maxLimit: (limit) => Math.min(40 * limit, 4096),
  granularityMs: () => 1,
  mostLimit: 4096,
  mostUsed: (limit) => Math.min(40 * limit, 4096),
  used: ({ windowMs }, charges, nowMs) => sum(charges, ({ atMs }) => nowMs - atMs < windowMs),
  usedInLast: ({ windowMs }, charges, nowMs, lastMs) =>
    sum(charges, ({ atMs }) => nowMs - atMs < Math.min(lastMs, windowMs)),
}

/** The same, decided by WATCH and EXEC instead of a script. */
const optimisticLog: AlgorithmCase = {
  ...log,
  name: 'sliding log, optimistic',
  onlyOnRedis: { optimistic: true },
}

/** A sliding window of which a process spends units on lease, without asking. */
const leased: AlgorithmCase = {
  ...strict,
  name: 'sliding window, leased',
  onlyOnRedis: { mode: 'leased' },
}

/** A sliding window, but the oldest granule counts by its part inside, in sixteenths, rounded up. */
const smooth: AlgorithmCase = {
  ...strict,
  name: 'sliding window, smooth edge',
  options: { algorithm: 'sliding-window', edge: 'smooth' },
  isNotOnRedis: true,
  used({ windowMs, granularityMs }, charges, nowMs) {
    const granules = windowMs / granularityMs
    const whole = sum(charges, ({ atMs }) => age(atMs, nowMs, granularityMs) < granules)
    const oldest = sum(charges, ({ atMs }) => age(atMs, nowMs, granularityMs) === granules)
    const left = Math.floor((16 * (nowMs % granularityMs)) / granularityMs) / 16
    return whole + Math.ceil(oldest * (1 - left))
  },
}

/** The same with one granule in a window. On Redis, the part inside is exact to the millisecond. */
const counter: AlgorithmCase = {
  ...strict,
  name: 'sliding counter',
  options: { algorithm: 'sliding-counter' },
  granularityMs: ({ windowMs }) => windowMs,
  used: smooth.used,
  onRedis: {
    used({ windowMs }, charges, nowMs) {
      const present = sum(charges, ({ atMs }) => age(atMs, nowMs, windowMs) === 0)
      const before = sum(charges, ({ atMs }) => age(atMs, nowMs, windowMs) === 1)
      return present + Math.ceil((before * (windowMs - (nowMs % windowMs))) / windowMs)
    },
  },
}

/** The same by two fixed windows: the part of the one before is not in sixteenths. */
export const twoCounters: AlgorithmCase = {
  ...counter,
  name: 'two counters',
  used({ windowMs }, charges, nowMs) {
    const current = sum(charges, ({ atMs }) => age(atMs, nowMs, windowMs) === 0)
    const previous = sum(charges, ({ atMs }) => age(atMs, nowMs, windowMs) === 1)
    return current + Math.ceil((previous * (windowMs - (nowMs % windowMs))) / windowMs)
  },
  usedInLast: (rule, charges, nowMs) => twoCounters.used(rule, charges, nowMs),
}

const tickOfWord = (word: number): number => word >>> 1

/** A charge counts until its window ends. The clock of a test is in UTC. */
const aligned: AlgorithmCase = {
  name: 'fixed window',
  options: { algorithm: 'fixed-window' },
  granularityMs: ({ windowMs }) => windowMs,
  tickOf: tickOfWord,
  hasBoundaries: true,
  mostLimit: 2 ** 21 - 2,
  mostUsed: () => 2 ** 21 - 1,
  used: ({ windowMs }, charges, nowMs) => sum(charges, ({ atMs }) => age(atMs, nowMs, windowMs) === 0),
  usedInLast: (rule, charges, nowMs) => aligned.used(rule, charges, nowMs),
}

/** The granule of a window that begins at a key's first charge: of whole milliseconds, at most 4,096 of them. */
function beginningMs(windowMs: number): number {
  for (let ms = Math.ceil(windowMs / 4096); ; ms++) if (windowMs % ms === 0) return ms
}

/** The same, from the first charge after the window before on. */
const fromFirst: AlgorithmCase = {
  ...aligned,
  name: 'fixed window from the first request',
  options: { algorithm: 'fixed-window', align: 'first' },
  granularityMs: ({ windowMs }) => beginningMs(windowMs),
  used({ windowMs }, charges, nowMs) {
    const granuleMs = beginningMs(windowMs)
    let begunMs = Number.NEGATIVE_INFINITY
    let used = 0
    for (const { atMs, units } of charges) {
      if (atMs >= begunMs + windowMs) {
        begunMs = Math.floor(atMs / granuleMs) * granuleMs
        used = 0
      }
      used += units
    }
    return nowMs < begunMs + windowMs ? used : 0
  },
  usedInLast: (rule, charges, nowMs) => fromFirst.used(rule, charges, nowMs),
}

/** Parts of a token in which time is counted: all together at most 2^18, and about a microsecond or more. */
export function unitsIn(windowMs: number, limit: number): number {
  let units = limit
  while (2 * units <= 2 ** 18 && 2 * units <= 1024 * windowMs) units *= 2
  return units
}

/** The parts of a full bucket: of whole parts for each token, unless those were a token more than the bucket has. */
export function fullIn(units: number, limit: number): number {
  const token = Math.ceil(units / limit)
  return limit * token < units + token ? limit * token : units
}

/** Each charge comes back after the one before, at the rate of the limit. A penalty takes at most three buckets. */
const bucket: AlgorithmCase = {
  name: 'token bucket',
  options: { algorithm: 'token-bucket' },
  granularityMs: ({ windowMs, limit }) => windowMs / unitsIn(windowMs, limit),
  tickOf: tickOfWord,
  countsInParts: true,
  mostLimit: 2 ** 18,
  mostUsed: (limit) => 3 * limit,
  used({ windowMs, granularityMs, limit }, charges, nowMs) {
    const units = Math.round(windowMs / granularityMs)
    const unitOf = (ms: number) => Math.floor((ms * units) / windowMs)
    let full = Number.NEGATIVE_INFINITY
    for (const { atMs, units: cost, limit: own = limit } of charges) {
      const at = unitOf(atMs)
      const time = Math.ceil((cost * fullIn(units, own)) / own)
      full = Math.min(Math.max(full, at) + time, at + 3 * units)
    }
    return Math.max(0, Math.ceil(((full - unitOf(nowMs)) * limit) / fullIn(units, limit)))
  },
  usedInLast: (rule, charges, nowMs) => bucket.used(rule, charges, nowMs),
}
const leaky: AlgorithmCase = {
  ...bucket,
  name: 'leaky bucket',
  options: { algorithm: 'leaky-bucket' },
  isAlias: true,
}

/** All algorithms, each with its variants. */
export const ALGORITHMS: readonly AlgorithmCase[] = [
  strict,
  log,
  optimisticLog,
  leased,
  smooth,
  counter,
  aligned,
  fromFirst,
  bucket,
  leaky,
]

const age = (atMs: number, nowMs: number, granularityMs: number): number =>
  Math.floor(nowMs / granularityMs) - Math.floor(atMs / granularityMs)

const sum = (charges: readonly Charge[], counts: (charge: Charge) => boolean): number =>
  charges.filter(counts).reduce((units, charge) => units + charge.units, 0)

/** A charge of a claim: its time in milliseconds after the start, its units, and the limit of its call. */
type Charged = readonly [afterMs: number, units: number, limit?: number]

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
  charged.map(([afterMs, units, limit]) => ({ atMs: START_MS + afterMs, units, limit }))
