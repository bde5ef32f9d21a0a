import { monotonicClock } from '../core/clock.js'
import type { Decided } from '../core/decision.js'
import type { Reading } from '../core/reading.js'
import type { Arena } from '../memory/arena.js'
import { COUNT } from '../memory/layout.js'
import { type Addon, addonFor } from './addon.js'
import { CALL, FOUND, isTaken, planFor, WHAT } from './plan.js'

/**
 * Decides single keys of one arena in the addon. A call costs a third of a reading of the clock, as nothing is handed over:
 * what it is to do and what came of it stand in a few words that both sides see (`native/single.h`).
 *
 * Not where the counts are in a file: that memory is an ArrayBuffer's, which could be transferred away, and the addon keeps a
 * pointer to it only where nobody can do that (`native/single_glue.cc`).
 */
export class NativeSingle {
  readonly #run: () => void
  readonly #reading: Reading
  readonly #readsClock: boolean
  readonly #words: Int32Array
  readonly #doubles: Float64Array

  /** Undefined where there is no addon, or the arena is a file. */
  static for(arena: Arena, reading: Reading): NativeSingle | undefined {
    const addon = addonFor()
    if (addon === undefined || !(arena.buffer instanceof SharedArrayBuffer) || !isTaken(arena))
      return undefined
    return new NativeSingle(addon, arena, reading)
  }

  constructor(addon: Addon, arena: Arena, reading: Reading) {
    this.#words = new Int32Array(new SharedArrayBuffer(4 * CALL.WORDS))
    this.#doubles = new Float64Array(this.#words.buffer)
    this.#reading = reading
    this.#readsClock = addon.readsClock && reading.clock === monotonicClock
    this.#words[CALL.READS_CLOCK] = this.#readsClock ? 1 : 0
    this.#run = addon.single(arena.words, planFor(arena), this.#words)
  }

  /**
   * Reads the clock and decides; `hint` is the way where the key was last, or -1. False: nothing is decided nor charged, and
   * the reading has been taken: of cost 0 or above the limit, of a key in no way, or where another reading is needed.
   */
  decides(lo: number, hi: number, cost: number, hint: number): boolean {
    const words = this.#words
    if (cost > 0 && cost < COUNT) {
      if (!this.#readsClock) this.#takeReading()
      words[CALL.WHAT] = WHAT.CHECK
      words[CALL.LO] = lo
      words[CALL.HI] = hi
      words[CALL.COST] = cost
      words[CALL.WAY] = hint
      this.#run()
      if (words[CALL.FOUND] !== FOUND.NOTHING) return true
      if (!this.#readsClock) return false
    }
    this.#reading.take()
    return false
  }

  get isAdmitted(): boolean {
    return this.#words[CALL.FOUND] === FOUND.ADMITTED
  }

  /** Where the key was. */
  get way(): number {
    return this.#words[CALL.WAY]!
  }

  /** By what it was decided. */
  get limit(): number {
    return this.#words[CALL.LIMIT]!
  }

  get nowMs(): number {
    return this.#doubles[CALL.NOW_MS]!
  }

  /** @see SlidingWindow.chargedTick */
  get chargedTick(): number {
    return this.#words[CALL.TICK]!
  }

  get chargedRefunds(): number {
    return this.#words[CALL.REFUNDS]!
  }

  /** @see SlidingWindow.seenAdm */
  get seenAdm(): number {
    return this.#words[CALL.ADM]!
  }

  /** @see SlidingWindow.seenUntil */
  get seenUntil(): number {
    return this.#words[CALL.UNTIL]!
  }

  /** Reads the clock; units of the key in the last `lastMs`; -1 where the clock's reading is no good. */
  usage(lo: number, hi: number, lastMs: number): number {
    const words = this.#words
    if (!this.#readsClock) this.#takeReading()
    words[CALL.WHAT] = WHAT.USAGE
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    this.#doubles[CALL.MS] = lastMs
    this.#run()
    return words[CALL.FOUND] === FOUND.NOTHING ? -1 : this.#doubles[CALL.ANSWER]!
  }

  /** Milliseconds from the decision until its cost fits, if its cell is as the decision left it; else undefined. */
  untilFits({ lo, hi, cost, limit, at, way, tick, adm }: Decided): number | undefined {
    const words = this.#words
    words[CALL.WHAT] = WHAT.RETRY
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    words[CALL.COST] = cost
    words[CALL.LIMIT] = limit
    words[CALL.WAY] = way
    words[CALL.TICK] = tick
    words[CALL.ADM] = adm
    this.#doubles[CALL.MS] = at
    this.#run()
    return words[CALL.FOUND] === FOUND.NOTHING ? undefined : this.#doubles[CALL.ANSWER]!
  }

  #takeReading(): void {
    this.#reading.take()
    this.#doubles[CALL.NOW_MS] = this.#reading.nowMs
  }
}
