import type { Clock } from '../core/clock.js'
import type { Arenas } from '../memory/arenas.js'
import { COUNT } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'
import { addonForArena, type ChosenAddon } from './addon.js'
import { readsDefaultClock } from './default-clock.js'
import { CALL, CALL_WORDS, paramsFor, STATUS } from './native-params.js'

/** Allocates the memory of one call for each of `rules` rules. */
export const callsFor = (rules: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(4 * CALL_WORDS * rules))

/** The part of that memory for one rule. */
export const callOf = (calls: Int32Array, rule: number): Int32Array =>
  calls.subarray(rule * CALL_WORDS, (rule + 1) * CALL_WORDS)

/**
 * Decides by several rules in one call of the addon, because a call takes as long as a decision. The addon
 * prefetches the cache lines of all rules at once. The `NativeSingle` of each rule has the part of its rule
 * in `calls`, and reads the result there.
 */
export class NativeSeries {
  /** Whether the addon reads the clock. Otherwise the caller has taken the reading. */
  readonly readsClock: boolean
  readonly #run: () => void
  readonly #arenas: Arenas
  readonly #words: Int32Array
  readonly #doubles: Float64Array

  /** Returns undefined if there is no addon, or if the arenas are in a file. */
  static for(chosen: ChosenAddon, arenas: Arenas, clock: Clock, calls: Int32Array): NativeSeries | undefined {
    const [first] = arenas
    if (!(first.buffer instanceof SharedArrayBuffer)) return undefined
    const addons = arenas.map((arena) => addonForArena(chosen, arena))
    const [addon] = addons
    if (addon === undefined || addons.includes(undefined)) return undefined
    const words = arenas.map((arena) => arena.words)
    const run = addon.series(words, arenas.map(paramsFor), calls)
    return new NativeSeries(run, arenas, readsDefaultClock(addon, clock), calls)
  }

  constructor(run: () => void, arenas: Arenas, readsClock: boolean, calls: Int32Array) {
    this.readsClock = readsClock
    this.#run = run
    this.#arenas = arenas
    this.#words = calls
    this.#doubles = new Float64Array(calls.buffer)
  }

  /** Whether the addon accepts this cost. */
  accepts(cost: number): boolean {
    return cost > 0 && cost < COUNT
  }

  /**
   * Decides by the rules in order, up to the first rule that does not admit the cost. Returns the number of
   * rules before that one. Each of them has charged the cost. `nowMs` is the reading, unless the addon reads
   * the clock.
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
    words[CALL.READS_CLOCK] = 0 // the calls of one rule use this word, too
    let admitted = 0
    while (admitted < this.#arenas.length && (this.#statusOf(admitted) & STATUS.DONE) !== 0) admitted++
    return admitted
  }

  /** Whether these are the arenas, by their records, that it decides on. */
  isOf(rules: readonly { readonly arena: Arena }[]): boolean {
    return this.#arenas.every((arena, i) => arena === rules[i]!.arena)
  }

  /** Whether the last call refused by this rule. Otherwise TypeScript decides by it. */
  isRefusedBy(rule: number): boolean {
    return (this.#statusOf(rule) & STATUS.REFUSED) !== 0
  }

  /** The reading of the last call, in milliseconds. */
  get nowMs(): number {
    return this.#doubles[CALL.NOW_MS]!
  }

  #statusOf(rule: number): number {
    return this.#words[rule * CALL_WORDS + CALL.STATUS]!
  }
}
