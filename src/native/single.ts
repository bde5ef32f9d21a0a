import type { FiguresDemand } from '../core/figures-demand.js'
import type { Decided, InlineDecision } from '../core/inline-decision.js'
import type { Reading } from '../core/reading.js'
import { changesRefusals } from '../core/verdict.js'
import { COUNT } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'
import { type Addon, addonForArena, type ChosenAddon } from './addon.js'
import { readsDefaultClock } from './default-clock.js'
import { CALL, CALL_WORDS, OPERATION, paramsFor, STATUS } from './native-params.js'

/**
 * Carries out single operations on one arena in the addon. Both sides see the memory of `CALL`: JavaScript
 * writes the operation there and reads the result, so a call has no arguments. A call costs a third of a
 * reading of the clock.
 *
 * Arenas in files are left to TypeScript. The addon keeps a pointer to the arena, and the ArrayBuffer of a
 * file could be transferred away (`native/single_glue.cc`).
 */
export class NativeSingle {
  #run: () => void
  readonly #reading: Reading
  readonly #readsClock: boolean
  readonly #words: Int32Array
  readonly #doubles: Float64Array
  #isUsed: boolean

  /**
   * Returns undefined if there is no addon, or if the arena is in a file. With `call`, it uses
   * that part of the memory of a `NativeSeries`, and takes the time from `reading`.
   */
  static for(
    chosen: ChosenAddon,
    arena: Arena,
    reading: Reading,
    demand: FiguresDemand,
    call?: Int32Array,
  ): NativeSingle | undefined {
    const addon = arena.buffer instanceof SharedArrayBuffer ? addonForArena(chosen, arena) : undefined
    return addon && new NativeSingle(addon, arena, reading, demand, call)
  }

  constructor(addon: Addon, arena: Arena, reading: Reading, demand: FiguresDemand, call?: Int32Array) {
    this.#words = call ?? nextCall()
    // What a series has left in the status of a call is the answer for another key: only a call of its own begins unanswered.
    this.#isUsed = call !== undefined
    this.#doubles = doublesOf(this.#words)
    this.#reading = reading
    this.#readsClock = call === undefined && readsDefaultClock(addon, reading.clock)
    this.#words[CALL.READS_CLOCK] = this.#readsClock ? 1 : 0
    // TypeScript decides again what the addon refuses by a rule that charges or allows refusals.
    this.#words[CALL.LEAVES_REFUSALS] = changesRefusals(arena) ? 1 : 0
    demand.countIn(this.#words, CALL.DEMAND)
    this.#run = () => this.#prepare(addon, arena)
  }

  /**
   * In place of the function of the addon: leaves the first decision to TypeScript, and makes the function before the
   * next operation. That takes as long as all else of a limiter of one rule. The first key is new, and a limiter that is
   * used once needs no function. A rule of a series has its function at once.
   */
  #prepare(addon: Addon, arena: Arena): void {
    if (!this.#isUsed && this.#words[CALL.OPERATION] === OPERATION.CHECK) {
      this.#isUsed = true
      return
    }
    this.#run = addon.single(arena.words, paramsFor(arena), this.#words)
    this.#run()
  }

  /**
   * Reads the clock and decides; `hint` is the way where the key was last, or NO_WAY. Returns false if it
   * decided and charged nothing: the cost is 0 or above the limit, the key has no way, a newer reading is
   * needed, or TypeScript handles refusals. The reading is taken in either case.
   */
  decides(lo: number, hi: number, cost: number, hint: number): boolean {
    if (cost < COUNT) {
      if (!this.#readsClock) this.#takeReading()
      if (this.#runs(lo, hi, cost, hint)) return true
      if (!this.#readsClock) return false
    }
    this.#reading.take()
    return false
  }

  /** Decides by a limit of this call, 1 to `MAX_LIMIT`. Returns whether the addon has decided. */
  decidesWithin(limit: number, lo: number, hi: number, cost: number, hint: number): boolean {
    this.#begin(OPERATION.CHECK_WITHIN, limit)
    const isDecided = this.decides(lo, hi, cost, hint)
    this.#begin(OPERATION.CHECK, limit)
    return isDecided
  }

  /**
   * Decides by the reading that the caller has taken, and by `limit` if there is one. The addon must not read the
   * clock itself. Returns whether it has decided.
   */
  decidesNow(lo: number, hi: number, cost: number, hint: number, limit: number | undefined): boolean {
    if (cost >= COUNT) return false
    this.#doubles[CALL.NOW_MS] = this.#reading.nowMs
    if (limit === undefined) return this.#runs(lo, hi, cost, hint)
    this.#begin(OPERATION.CHECK_WITHIN, limit)
    const isDecided = this.#runs(lo, hi, cost, hint)
    this.#begin(OPERATION.CHECK, limit)
    return isDecided
  }

  /** Carries out the operation in OPERATION. Between operations it is CHECK, so a decision need not set it. */
  #runs(lo: number, hi: number, cost: number, hint: number): boolean {
    const words = this.#words
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    words[CALL.COST] = cost
    words[CALL.WAY] = hint
    this.#run()
    return words[CALL.STATUS] !== STATUS.UNANSWERED
  }

  #begin(operation: number, limit: number): void {
    this.#words[CALL.OPERATION] = operation
    this.#words[CALL.LIMIT] = limit
  }

  /** Has the addon call admissions by this limit suspects whose words come to `from`, and all by another limit. */
  suspect(limit: number, from: number): void {
    this.#words[CALL.SUSPECT_LIMIT] = limit
    this.#words[CALL.SUSPECT_FROM] = from
  }

  /** The result of the last decision: DONE (admitted) or REFUSED, with the bits FIGURES and SUSPECT. */
  get status(): number {
    return this.#words[CALL.STATUS]!
  }

  /** Gives the decision the figures that were computed with it. */
  giveFigures(decision: InlineDecision): void {
    const doubles = this.#doubles
    decision.show(this.#words[CALL.REMAINING]!, doubles[CALL.MS]!, doubles[CALL.ANSWER]!)
  }

  /** The way where the key was. */
  get way(): number {
    return this.#words[CALL.WAY]!
  }

  /** The limit of the decision. */
  get limit(): number {
    return this.#words[CALL.LIMIT]!
  }

  /** The reading of the decision, in milliseconds. */
  get nowMs(): number {
    return this.#doubles[CALL.NOW_MS]!
  }

  /** @see Algorithm.chargedTick */
  get chargedTick(): number {
    return this.#words[CALL.TICK]!
  }

  /** @see Algorithm.chargedStamp */
  get chargedStamp(): number {
    return this.#words[CALL.STAMP]!
  }

  /** @see Algorithm.lastAdm */
  get lastAdm(): number {
    return this.#words[CALL.ADM]!
  }

  /** @see Algorithm.lastUntil */
  get lastUntil(): number {
    return this.#words[CALL.UNTIL]!
  }

  /**
   * Reads the clock. Returns the key's units in the last `lastMs`, or -1 if TypeScript has to answer: the
   * reading is out of range, or another record holds, or the key may have a cell of another record. The reading
   * is taken in either case.
   */
  usage(lo: number, hi: number, lastMs: number): number {
    const words = this.#words
    if (!this.#readsClock) this.#takeReading()
    words[CALL.OPERATION] = OPERATION.USAGE
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    this.#doubles[CALL.MS] = lastMs
    this.#run()
    words[CALL.OPERATION] = OPERATION.CHECK
    if (words[CALL.STATUS] !== STATUS.UNANSWERED) return this.#doubles[CALL.ANSWER]!
    if (this.#readsClock) this.#reading.take()
    return -1
  }

  /** Milliseconds from a refusal until its cost fits, or undefined if the cell has changed since. */
  untilFits({ lo, hi, cost, limit, at, way, tick, adm }: Decided): number | undefined {
    const words = this.#words
    words[CALL.OPERATION] = OPERATION.RETRY_AFTER
    words[CALL.LO] = lo
    words[CALL.HI] = hi
    words[CALL.COST] = cost
    words[CALL.LIMIT] = limit
    words[CALL.WAY] = way
    words[CALL.TICK] = tick
    words[CALL.ADM] = adm
    this.#doubles[CALL.MS] = at
    this.#run()
    words[CALL.OPERATION] = OPERATION.CHECK
    return words[CALL.STATUS] === STATUS.UNANSWERED ? undefined : this.#doubles[CALL.ANSWER]!
  }

  #takeReading(): void {
    this.#reading.take()
    this.#doubles[CALL.NOW_MS] = this.#reading.nowMs
  }
}

const CALLS_PER_CHUNK = 64
let chunk: SharedArrayBuffer | undefined
let usedCalls = 0

/** The memory of one call, in memory for the calls of several limiters of this thread. */
function nextCall(): Int32Array {
  if (chunk === undefined || usedCalls === CALLS_PER_CHUNK) {
    chunk = new SharedArrayBuffer(4 * CALL_WORDS * CALLS_PER_CHUNK)
    usedCalls = 0
  }
  return new Int32Array(chunk, 4 * CALL_WORDS * usedCalls++, CALL_WORDS)
}

/** The doubles of a call. */
const doublesOf = ({ buffer, byteOffset }: Int32Array): Float64Array =>
  new Float64Array(buffer, byteOffset, CALL.OPERATION / 2)
