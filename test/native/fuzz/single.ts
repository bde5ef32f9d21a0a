// Random calls of `single` and `series`, and of the functions that they return. Some functions are the last
// holders of their memory.
import { inspect } from 'node:util'
import { ADM, CURRENT_LIMIT, EXTRA_WORDS, HEADER, NAMES_AT, TICK } from '#millrace/memory/layout.js'
import type { Addon } from '#millrace/native/addon.js'
import { CALL, CALL_WORDS, OPERATION, PARAM, PARAM_COUNT, STATUS } from '#millrace/native/native-params.js'
import { random } from '../../algorithms/random.js'
import { anyCurrent, type Given, playOn } from './arena.js'
import { NUMBERS, Values } from './values.js'

/** The function of one limiter, and its memory. */
interface Made {
  readonly run: () => void
  readonly words: Int32Array
  readonly call: Int32Array
  readonly fingerprints: Int32Array
  readonly nowMs: number
  readonly ways: number
  readonly given: Given
  /** The memory after the arena, unless another thread writes to it. */
  readonly behind: Int32Array | undefined
}

const { UNANSWERED, REFUSED, DONE, FIGURES, SUSPECT } = STATUS
const ADMISSIONS = [DONE, DONE | FIGURES, DONE | SUSPECT, DONE | FIGURES | SUSPECT]
const STATUSES: readonly number[] = [UNANSWERED, REFUSED, REFUSED | FIGURES, ...ADMISSIONS]
const MOST_KEPT = 20
/** Enough for the largest arena. */
const BYTES = 4 * 36_864
/** A series has two rules. */
const CALL_BYTES = 2 * 4 * CALL_WORDS

export class SingleCalls {
  calls = 0
  decided = 0
  refused = 0
  readonly #single: (...args: unknown[]) => unknown
  readonly #series: (...args: unknown[]) => unknown
  /** A sequence of its own, so that no other call changes what these calls do. */
  readonly #values: Values
  /** For calls on memory that another thread writes to, so that their results change no other call. */
  readonly #racedValues: Values
  /** Memory that another thread writes to. */
  readonly #raced: SharedArrayBuffer
  readonly #kept: Made[] = []
  readonly #keptRaced: Made[] = []

  constructor(addon: Addon, seed: number, raced: SharedArrayBuffer) {
    this.#single = addon.single as (...args: unknown[]) => unknown
    this.#series = addon.series as (...args: unknown[]) => unknown
    this.#values = new Values(random(seed + 1))
    this.#racedValues = new Values(random(seed + 2))
    this.#raced = raced
  }

  /** Makes a call. Returns a complaint, or undefined if the result was right. */
  call(): string | undefined {
    this.calls++
    const values = this.#values
    if (values.chance(0.2)) return this.#makeOfAnything()
    const isRaced = values.chance(0.2)
    return isRaced
      ? this.#play(this.#racedValues, this.#keptRaced, true)
      : this.#play(values, this.#kept, false)
  }

  #play(values: Values, kept: Made[], isRaced: boolean): string | undefined {
    if (kept.length < 2 || values.chance(0.1)) this.#make(values, kept, isRaced)
    return kept.length === 0 ? undefined : this.#runOne(values, values.of(kept))
  }

  #make(values: Values, kept: Made[], isRaced: boolean): void {
    const memory = isRaced ? this.#raced : new SharedArrayBuffer(BYTES)
    const { call: played, given } = playOn(values, memory)
    const words = played.words as Int32Array
    const params = played.params as Float64Array
    const call = isRaced
      ? new Int32Array(memory, 64, CALL_BYTES / 4)
      : new Int32Array(new SharedArrayBuffer(CALL_BYTES))
    const run = values.chance(0.3)
      ? this.#tryToMake(this.#series, [[words, words], [params, params], call])
      : this.#tryToMake(this.#single, [words, params, call])
    if (typeof run !== 'function') return
    const behind = isRaced ? undefined : new Int32Array(memory, words.byteLength)
    const ways = 16 * params[PARAM.SETS]!
    const made = {
      run: run as () => void,
      words,
      call,
      fingerprints: played.fingerprints as Int32Array,
      nowMs: params[PARAM.NOW_MS]!,
      ways,
      given,
      behind,
    }
    if (kept.length < MOST_KEPT) kept.push(made)
    else kept[values.below(MOST_KEPT)] = made
  }

  #runOne(values: Values, made: Made): string | undefined {
    const { run, words, call, fingerprints, nowMs, ways, given, behind } = made
    const doubles = new Float64Array(call.buffer, call.byteOffset, 3)
    const key = values.below(Math.max(1, fingerprints.length / 2))
    call[CALL.OPERATION] = values.chance(0.9) ? values.below(Object.keys(OPERATION).length) : values.word()
    call[CALL.LO] = fingerprints[2 * key] ?? values.word()
    call[CALL.HI] = fingerprints[2 * key + 1] ?? values.word()
    call[CALL.COST] = values.chance(0.8) ? values.below(5) : values.word()
    call[CALL.WAY] = values.chance(0.5) ? -1 : values.chance(0.7) ? values.below(ways) : values.word()
    call[CALL.READS_CLOCK] = values.below(2)
    call[CALL.LEAVES_REFUSALS] = values.chance(0.8) ? 0 : 1
    call[CALL.SUSPECT_LIMIT] = values.chance(0.8) ? words[HEADER.CURRENT]! & CURRENT_LIMIT : values.word()
    call[CALL.SUSPECT_FROM] = values.below(40)
    call[CALL.DEMAND] = values.chance(0.5) ? values.below(3) : 0
    if (values.chance(0.5)) {
      // The present words of the way, so that RETRY_AFTER finds the cell unchanged.
      const way = Math.min(Math.max(call[CALL.WAY]!, 0), ways - 1)
      const wayWords = Math.floor((words.length - NAMES_AT - ways) / ways) - EXTRA_WORDS
      call[CALL.ADM] = words[NAMES_AT + ways + way * wayWords + ADM] ?? 0
      call[CALL.TICK] = words[NAMES_AT + ways + way * wayWords + TICK] ?? 0
    }
    call[CALL.LIMIT] = values.chance(0.8) ? 1 + values.below(40) : values.word()
    doubles[CALL.NOW_MS] = values.chance(0.8) ? nowMs : values.of(NUMBERS)
    doubles[CALL.MS] = values.chance(0.5)
      ? nowMs
      : values.chance(0.6)
        ? values.below(1e6)
        : values.of(NUMBERS)
    // The second rule of a series.
    call.copyWithin(CALL_WORDS, 0, CALL_WORDS)
    if (values.chance(0.3)) call[CALL_WORDS + CALL.COST] = values.below(40)
    words[HEADER.CURRENT] = anyCurrent(values, given.record, 1 + values.below(40))
    const operation = call[CALL.OPERATION]
    const found = run()
    if (found !== undefined) return `returned ${inspect(found)}`
    if (behind === undefined) return undefined // another thread may have written the result
    if (behind.some((word) => word !== 0)) return 'wrote after the arena'
    for (const status of [call[CALL.STATUS], call[CALL_WORDS + CALL.STATUS]]) {
      if (!STATUSES.includes(status!)) return `found ${status}`
    }
    const isAnswered = call[CALL.STATUS] !== STATUS.UNANSWERED
    if (isAnswered) this.decided++
    if (isAnswered && given.isOutdated && operation !== OPERATION.RETRY_AFTER)
      return `answered ${operation} by a record that is not the present one`
    return given.changedOther()
  }

  /** Some arguments have a wrong type or length, or are on memory that can be transferred away. */
  #makeOfAnything(): string | undefined {
    const values = this.#values
    const { call: given } = playOn(values, new SharedArrayBuffer(BYTES))
    const args: unknown[] = [given.words, given.params, new Int32Array(new SharedArrayBuffer(CALL_BYTES))]
    const place = values.below(3)
    args[place] = values.any()
    if (place === 1 && values.chance(0.5)) {
      args[1] = Float64Array.from({ length: PARAM_COUNT }, () => values.of(NUMBERS))
    }
    const before = this.refused
    const isSeries = values.chance(0.5)
    const run = isSeries
      ? this.#tryToMake(this.#series, seriesArgs(values, args))
      : this.#tryToMake(this.#single, args)
    if (typeof run === 'function') (run as () => void)()
    else if (this.refused === before) {
      return `${isSeries ? 'series' : 'single'}: ${inspect(run)} of ${inspect(args)}`
    }
    return undefined
  }

  /** Returns the function, undefined after a TypeError or RangeError, or any other error. */
  #tryToMake(make: (...args: unknown[]) => unknown, args: unknown[]): unknown {
    try {
      return make(...args)
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof RangeError)) return error
      this.refused++
      return undefined
    }
  }
}

/** The arguments of a series of one to three equal rules; or of lists that don't match, or of no lists. */
function seriesArgs(values: Values, [words, params, calls]: unknown[]): unknown[] {
  const count = 1 + values.below(3)
  const listOf = (value: unknown) => {
    const length = values.chance(0.8) ? count : values.below(20)
    return values.chance(0.9) ? Array.from({ length }, () => value) : value
  }
  return [listOf(words), listOf(params), calls]
}
