/**
 * Runs the same random operations on two arenas, one by each side. Compares the answers, and the memory word
 * by word. In half of the rounds the clock advances at each reading, so that the number of readings is
 * compared, too.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Decision, KeyHandle, Limiter, LimiterOptions, RuleOptions } from 'millrace'
import { type InlineDecision, Outcome } from '#millrace/core/inline-decision.js'
import { checkRule } from '#millrace/core/rule.js'
import { MOST_UNITS } from '#millrace/core/rule-algorithms.js'
import { COUNT, type Shape, SUMS, type Sums, shapeFor } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import { firstDifference, makePair, type Pair } from './pair.js'

export interface Run {
  /** Each entry of a batch counts as one, and each other call. */
  readonly operations: number
  readonly seed: number
}

export interface Findings {
  operations: number
  /** How many of them were decisions on one handle or string. */
  singly: number
  /** The operations by how the cells count. */
  by: Record<Counting, number>
  rounds: number
  /** How often the memory of the two arenas was compared. */
  compared: number
  admitted: number
  refused: number
  displaced: number
  noRoom: number
  /** The first difference, which ends the run. */
  difference?: string
}

const OPERATIONS_A_ROUND = 10_000
const OPERATIONS_A_COMPARISON = 2_000
/** The range sums of a sliding window, and the algorithms whose cells have no buckets. */
type Counting = Sums | 'fixed-window' | 'token-bucket' | 'sliding-log'
const COUNTINGS = [
  ...SUMS,
  'fixed-window',
  'token-bucket',
  'sliding-log',
] as const satisfies readonly Counting[]
/** Granules in a window. Block sums have a second level above 4,096. */
const BUCKETS: Readonly<Record<Sums, readonly number[]>> = {
  linear: [1, 2, 7, 10, 60, 255, 256],
  blocks: [257, 300, 3_600, 4_096, 4_097, 20_000],
  fenwick: [257, 300, 3_600, 4_097, 20_000],
}
/** Arenas with larger cells have fewer of them, because all memory is compared. */
const MANY = 300
/** The largest limit of a fixed window. */
const MOST_FIXED = 2 ** 21 - 2
const GRANULES_MS = [1, 4, 1000 / 3, 1000]
const ON_FULL = ['evict', 'deny', 'allow'] as const

export function runParity({ operations, seed }: Run, tell: (done: number) => void = () => {}): Findings {
  const found: Findings = {
    operations: 0,
    singly: 0,
    by: { linear: 0, blocks: 0, fenwick: 0, 'fixed-window': 0, 'token-bucket': 0, 'sliding-log': 0 },
    rounds: 0,
    compared: 0,
    admitted: 0,
    refused: 0,
    displaced: 0,
    noRoom: 0,
  }
  while (found.operations < operations && found.difference === undefined) {
    const most = Math.min(OPERATIONS_A_ROUND, operations - found.operations)
    const round = new Round(seed + found.rounds, found)
    round.play(most)
    found.by[round.counting] += most
    found.rounds++
    tell(found.operations)
  }
  return found
}

export function summaryOf(found: Findings, seed: number, inCommas: (count: number) => string): string {
  const made = `${inCommas(found.operations)} operations (${inCommas(found.singly)} decisions one by one) on two arenas, seed ${seed}`
  const judged = `memory compared ${inCommas(found.compared)} times`
  return `${made}: ${judged}, ${found.difference === undefined ? 'no difference' : found.difference}`
}

/** The fields of a decision, and where it was charged. */
function placeOf(decision: Decision): unknown[] {
  const { limit, at, way, tick, outcome, cost, stamp } = decision as InlineDecision
  return [limit, at, way, outcome, cost, ...(outcome === Outcome.CHARGED ? [tick, stamp] : [])]
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

class Round {
  readonly counting: Counting
  readonly #next: () => number
  readonly #found: Findings
  readonly #pair: Pair
  readonly #keys: string[]
  /** The handles of each key, for each limiter. */
  readonly #handles: Map<Limiter, KeyHandle[]>
  readonly #granuleMs: number
  readonly #buckets: number
  readonly #described: string
  readonly #shape: Shape
  readonly #mostLimit: number
  /** The limits of a token bucket with a burst are multiples of this. */
  readonly #limitStep: number
  #limit: number

  constructor(seed: number, found: Findings) {
    this.#next = random(seed)
    this.#found = found
    this.counting = this.#of(COUNTINGS)
    const rule = this.#ruleOf(this.counting)
    this.#limit = rule.limit
    this.#mostLimit = rule.maxLimit ?? (this.counting === 'fixed-window' ? MOST_FIXED : 4_194_302)
    const checked = checkRule(rule)
    const { windowMs, buckets } = checked
    this.#buckets = buckets
    this.#shape = shapeFor(windowMs, buckets, 2, this.#sums, checked)
    this.#limitStep = rule.burst === undefined ? 1 : rule.limit / commonDivisor(rule.limit, rule.burst)
    this.#granuleMs = windowMs / buckets
    const maxKeys = this.#of(this.#shape.wayWords > MANY ? [8, 30] : [8, 60, 400])
    const options: LimiterOptions = { ...rule, onFull: this.#of(ON_FULL), maxKeys }
    this.#described = `seed ${seed}, ${JSON.stringify(options)}`
    const startMs = this.#of([0, 1_000_123, 1.7e12])
    this.#pair = makePair(options, startMs, [this.#below(2 ** 32) | 0, this.#below(2 ** 32) | 0])
    const stepMs = this.#of([0, 0, this.#granuleMs / 50, this.#granuleMs])
    for (const { clock } of this.#pair) clock.stepMs = stepMs
    const keys = Math.ceil(maxKeys * this.#of([0.5, 1, 2]))
    this.#keys = Array.from({ length: keys }, (_, i) => `key ${i}`)
    const handlesOf = (limiter: Limiter) => this.#keys.map((key) => limiter.handle(key))
    this.#handles = new Map(this.#pair.map(({ limiter }) => [limiter, handlesOf(limiter)]))
  }

  #ruleOf(
    counting: Counting,
  ): RuleOptions & { readonly limit: number; readonly burst?: number; readonly maxLimit?: number } {
    const granuleMs = this.#of(GRANULES_MS)
    const limit = this.#of([1, 5, 100, 4_194_302])
    if (counting === 'fixed-window') {
      const window = Math.max(1, granuleMs * this.#of([1, 10, 60]))
      return {
        algorithm: counting,
        limit: Math.min(limit, MOST_FIXED),
        window,
        align: this.#of(['clock', 'first']),
      }
    }
    if (counting === 'token-bucket') {
      const window = Math.max(1, granuleMs * this.#of([1, 8, 60, 600]))
      const burst = this.#of([limit, 2 * limit, 8])
      return limit > MOST_UNITS || burst * window < limit
        ? { algorithm: counting, limit: 5, window }
        : { algorithm: counting, limit, window, burst }
    }
    if (counting === 'sliding-log') {
      const window = this.#of([1, 10, 1_000, 60_000, 86_400_000, 2_592_000_000, 7_776_000_000])
      const least = Math.min(limit, 100)
      return { algorithm: counting, limit: least, window, maxLimit: this.#of([least, 2 * least, 300]) }
    }
    const buckets = this.#of(BUCKETS[counting])
    const window = Math.max(1, granuleMs * buckets)
    return {
      limit,
      window,
      granularity: window / buckets,
      edge: this.#of(['strict', 'smooth']),
      ...(counting !== 'linear' && { rangeSum: counting }),
    }
  }

  play(operations: number): void {
    const end = this.#found.operations + operations
    let compareAt = this.#found.operations + OPERATIONS_A_COMPARISON
    while (this.#found.operations < end && this.#found.difference === undefined) {
      this.#operate(end - this.#found.operations)
      if (this.#found.operations < compareAt && this.#found.operations < end) continue
      this.#compareMemory()
      compareAt += OPERATIONS_A_COMPARISON
    }
    const { evicted, noRoom } = this.#pair[1].limiter.stats()
    this.#found.displaced += evicted
    this.#found.noRoom += noRoom
  }

  #operate(most: number): void {
    if (this.#next() < 0.4) this.#turn()
    const length = Math.min(most, 1 + this.#below(this.#of([4, 64, 65, 300])))
    const kind = this.#next()
    if (kind < 0.3) this.#batch(length)
    else if (kind < 0.6) this.#oneByOne(length)
    else this.#single(this.#of(this.#keys), this.#cost())
  }

  #single(key: string, cost: number): void {
    this.#found.operations++
    const what = this.#of([
      'check',
      'usage',
      'give back',
      'refund',
      'refund',
      'penalize',
      'block',
      'unblock',
      'clear',
      'update',
    ])
    const ms = this.#of([1, this.#granuleMs, 10 * this.#granuleMs, Number.POSITIVE_INFINITY])
    const lastMs = Math.max(1e-9, this.#granuleMs * this.#of([0.1, 1, this.#buckets / 2, this.#buckets]))
    const limit = this.#limitNear(this.#limit + this.#below(5) - 2)
    if (what === 'update') this.#limit = limit
    this.#both(what, (limiter) => {
      if (what === 'check') return limiter.check(key, cost).toJSON()
      if (what === 'usage') return limiter.usage(key, lastMs)
      if (what === 'give back') return limiter.refund(limiter.check(key, cost))
      if (what === 'refund') return limiter.refund(key, cost)
      if (what === 'penalize') return limiter.penalize(key, Math.min(cost, COUNT))
      if (what === 'block') return limiter.block(key, ms)
      if (what === 'unblock') return limiter.unblock(key)
      return what === 'clear' ? limiter.clear(key) : limiter.update('default', { limit })
    })
  }

  /** Decides handles and strings one by one. Reads every figure of one decision in ten. */
  #oneByOne(length: number): void {
    this.#found.operations += length
    this.#found.singly += length
    const isByHandle = this.#next() < 0.7
    const few = this.#next() < 0.3 ? 3 : this.#keys.length
    const keys = Array.from({ length }, () => this.#below(Math.min(few, this.#keys.length)))
    const costs = Array.from({ length }, () => this.#cost())
    const asked = this.#below(10)
    const isWithin = this.#next() < 0.3
    const limits = Array.from({ length: isWithin ? length : 0 }, () =>
      this.#limitNear(1 + this.#below(2 * this.#limit)),
    )
    this.#both('check', (limiter) =>
      keys.map((key, i) => {
        const options = isWithin ? { limit: limits[i]! } : undefined
        const decided = limiter.check(
          isByHandle ? this.#handles.get(limiter)![key]! : this.#keys[key]!,
          costs[i],
          options,
        )
        return i % 10 === asked ? decided.toJSON() : placeOf(decided)
      }),
    )
  }

  #batch(length: number): void {
    this.#found.operations += length
    const few = this.#next() < 0.3 ? this.#keys.slice(0, 3) : this.#keys
    const keys = Array.from({ length }, () => this.#of(few))
    const costs = this.#next() < 0.5 ? this.#cost() : Array.from({ length }, () => this.#cost())
    const asked = this.#below(length)
    const remaining = this.#next() < 0.3
    this.#both('checkMany', (limiter) => {
      const decided = limiter.checkMany(limiter.pack(keys), costs, { remaining })
      const { allowed } = decided
      return [Buffer.from(allowed), decided.remaining, decided.retryAfterMs(asked)]
    })
  }

  /**
   * Advances the clock by a little, a gap, laps or the whole modulus; or sets it back by a little or by much.
   */
  #turn(): void {
    const window = this.#granuleMs * this.#buckets
    const { modulus, ring } = this.#shape
    const lap = ring * this.#granuleMs
    const roundMs = modulus * this.#granuleMs // ticks wrap, and appear to be ahead
    const ms = this.#of([
      this.#next() * this.#granuleMs,
      this.#granuleMs,
      this.#next() * window,
      lap * this.#below(4),
      lap * (250 + this.#below(12)),
      -this.#granuleMs * (2 + this.#below(5)),
      this.#next() < 0.05 ? lap * 256 * this.#below(3_000) : 0,
      this.#next() < 0.05 ? -7_200_000 : 0,
      this.#next() < 0.1 ? roundMs + this.#granuleMs * (this.#below(200) - 150) : 0,
    ])
    for (const { clock } of this.#pair) clock.ms += ms
  }

  #both(what: string, act: (limiter: Limiter) => unknown): void {
    const [one, other] = this.#pair.map(({ limiter }) => act(limiter))
    if (what === 'checkMany') {
      for (const allowed of (other as [Buffer])[0]) this.#found[allowed === 1 ? 'admitted' : 'refused']++
    }
    if (!isDeepStrictEqual(one, other)) this.#differ(`${what} answers differently`)
    const [a, b] = this.#pair
    if (a.clock.ms !== b.clock.ms) this.#differ(`${what} reads the clock another number of times`)
  }

  #compareMemory(): void {
    this.#found.compared++
    const difference = firstDifference(this.#pair)
    if (difference !== undefined) this.#differ(difference)
  }

  #differ(how: string): void {
    this.#found.difference ??= `${how} (operation ${this.#found.operations}, ${this.#described})`
  }

  /** Mostly 1. Otherwise up to the limit, above the limit, or 0. */
  #cost(): number {
    const { limit } = this.#pair[0].limiter.rule
    const pick = this.#next()
    if (pick < 0.6) return 1
    if (pick < 0.8) return 1 + this.#below(Math.min(limit, 10))
    return this.#of([0, limit, limit - 1, limit + 1, 2 ** 22, 2 ** 40, Math.ceil(limit / 3)])
  }

  #limitNear(limit: number): number {
    const step = this.#limitStep
    const most = this.#mostLimit
    return Math.min(most, Math.max(step, Math.round(limit / step) * step))
  }

  /** How a sliding window is summed. */
  get #sums(): Sums {
    const { counting } = this
    return counting === 'blocks' || counting === 'fenwick' ? counting : 'linear'
  }

  #of<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!
  }

  #below(count: number): number {
    return Math.floor(this.#next() * count)
  }
}
