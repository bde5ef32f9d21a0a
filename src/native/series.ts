import { type Clock, monotonicClock } from '../core/clock.js'
import type { Arenas } from '../memory/arenas.js'
import { COUNT } from '../memory/layout.js'
import { addonForArena } from './addon.js'
import { CALL, CALL_WORDS, paramsFor, STATUS } from './native-params.js'

/** The memory of the calls of as many rules, one after the other. */
export const callsFor = (rules: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(4 * CALL_WORDS * rules))

/** The memory of one rule's calls. */
export const callOf = (calls: Int32Array, rule: number): Int32Array =>
  calls.subarray(rule * CALL_WORDS, (rule + 1) * CALL_WORDS)

/**
 * Decides by several rules in one call of the addon, which takes as long as a decision. It has the cache
 * lines of all rules fetched at once. Each rule's `NativeSingle` has the part of its rule in `calls`, and
 * reads the result there.
 */
export class NativeSeries {
  /** Whether the addon reads the clock. Otherwise the caller has taken the reading. */
  readonly readsClock: boolean
  readonly #run: () => void
  readonly #rules: number
  readonly #words: Int32Array
  readonly #doubles: Float64Array

  /** Returns undefined if there is no addon, or if the arenas are in a file. */
  static for(arenas: Arenas, clock: Clock, calls: Int32Array): NativeSeries | undefined {
    const [first] = arenas
    if (!(first.buffer instanceof SharedArrayBuffer)) return undefined
    const addons = arenas.map(addonForArena)
    const [addon] = addons
    if (addon === undefined || addons.includes(undefined)) return undefined
    const words = arenas.map((arena) => arena.words)
    return new NativeSeries(addon.series(words, arenas.map(paramsFor), calls), addon.readsClock, clock, calls)
  }

  constructor(run: () => void, canReadClock: boolean, clock: Clock, calls: Int32Array) {
    this.readsClock = canReadClock && clock === monotonicClock
    this.#run = run
    this.#rules = calls.length / CALL_WORDS
    this.#words = calls
    this.#doubles = new Float64Array(calls.buffer)
  }

  /** Whether the addon takes such a cost. */
  accepts(cost: number): boolean {
    return cost > 0 && cost < COUNT
  }

  /**
   * Decides by the rules in order, up to the first that does not admit the cost. Returns the number of rules
   * before that one: each has charged it. `nowMs` is the reading, unless the addon reads the clock.
   */
  decide(lo: number, hi: number, cost: number, hint: number, nowMs: number): number {
    const words = this.#words
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    words[CALL.WAY] = hint
    for (let i = CALL.COST; i < words.length; i += CALL_WORDS) words[i] = cost
    this.#doubles[CALL.NOW_MS] = nowMs
    words[CALL.READS_CLOCK] = this.readsClock ? 1 : 0
    this.#run()
    words[CALL.READS_CLOCK] = 0 // for the calls of one rule
    let admitted = 0
    while (admitted < this.#rules && this.#statusOf(admitted) === STATUS.DONE) admitted++
    return admitted
  }

  /** Whether the last call refused by this rule. Otherwise TypeScript decides by it. */
  isRefusedBy(rule: number): boolean {
    return this.#statusOf(rule) === STATUS.REFUSED
  }

  /** The reading of the last call, in milliseconds. */
  get nowMs(): number {
    return this.#doubles[CALL.NOW_MS]!
  }

  #statusOf(rule: number): number {
    return this.#words[rule * CALL_WORDS + CALL.STATUS]!
  }
}
