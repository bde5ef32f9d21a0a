// Random memory, as another process could have written it, and batches on this memory.
import {
  ADM,
  BUCKETS,
  HASH,
  HEADER,
  HI,
  LIVE,
  MAX_TOTAL,
  MOST_RECORDS,
  NAMES_AT,
  type Shape,
  SUMS,
  shapeFor,
  TICK,
} from '#millrace/memory/layout.js'
import { currentWord, recordIn } from '#millrace/memory/records.js'
import { PARAM, PARAM_COUNT } from '#millrace/native/native-params.js'
import { NUMBERS, type Values } from './values.js'

/** Arguments of `admitMany`. */
export interface Call {
  words: unknown
  fingerprints: unknown
  costs: unknown
  allowed: unknown
  at: unknown
  seen: unknown
  params: unknown
  remaining: unknown
}

export interface Play {
  readonly call: Call
  /** The memory on both sides of the arena, which must stay 0. */
  readonly beside: readonly Int32Array[]
  /** The arena at first. */
  readonly given: Given
}

/** A copy of an arena as it was before the calls, by one of its records. */
export class Given {
  readonly record: number
  readonly #words: Int32Array
  readonly #before: Int32Array
  readonly #shape: Shape

  constructor(words: Int32Array, shape: Shape, record: number) {
    this.record = record
    this.#words = words
    this.#before = words.slice()
    this.#shape = shape
  }

  /** Whether CURRENT names another record. Then no decision may be made. */
  get isOutdated(): boolean {
    return recordIn(this.#words[HEADER.CURRENT]!) !== this.record
  }

  /** The first word of a cell of another record that has changed, or undefined. */
  changedOther(): string | undefined {
    const { ways, waysAt, wayWords } = this.#shape
    for (let way = 0; way < ways; way++) {
      const base = waysAt + way * wayWords
      if ((this.#before[base + HI]! & ~HASH) === this.record) continue
      for (let i = base; i < base + wayWords; i++) {
        if (this.#words[i] !== this.#before[i]) return `word ${i - base} of a cell of another record changed`
      }
    }
    return undefined
  }
}

const BESIDE = 64

/** A batch on an arena of random words that holds some of its keys. Uses the memory `on`, or new memory. */
export function playOn(values: Values, on?: SharedArrayBuffer | ArrayBuffer): Play {
  const sets = 2 + values.below(4)
  const cellBuckets = values.of([1, 2, 3, 10, 60, 255, 256])
  const sums = values.of(['linear', ...SUMS] as const)
  const cells = shapeFor(1_000 * cellBuckets, cellBuckets, sets, sums)
  const buckets = values.chance(0.7) ? cellBuckets : 1 + values.below(cells.mostBuckets)
  const windowMs = values.chance(0.8) ? 1_000 * buckets : 1 + values.below(1e6)
  const record = values.chance(0.3) ? 0 : values.below(MOST_RECORDS)
  const shift = values.chance(0.3) ? 0 : values.below(2 ** 32)
  const shape = { ...cells, windowMs, buckets, record, shift }
  const count = values.below(values.chance(0.9) ? 12 : 200)
  const { words, beside } = memoryFor(values, shape.words, on)
  const nowMs = values.chance(0.8) ? 1e9 + values.below(1e6) : values.of(NUMBERS)
  const fingerprints = Int32Array.from({ length: 2 * count }, (_, i) =>
    i % 2 === 0 || values.chance(0.1) ? values.word() : values.word() & HASH,
  )
  scribble(values, words)
  for (let i = 0; i < count; i++) {
    const lo = fingerprints[2 * i]!
    const way = 16 * Math.floor(((lo >>> 0) * sets) / 2 ** 32) + values.below(16)
    if (values.chance(0.2)) continue
    words[NAMES_AT + way] = lo
    const base = shape.waysAt + way * shape.wayWords
    words[base + HI] = (fingerprints[2 * i + 1]! & HASH) | (values.chance(0.9) ? record : values.below(128))
    words[base + ADM] = values.chance(0.5) ? LIVE + values.below(20) : LIVE | values.word()
    const tick = Math.floor((nowMs * buckets) / windowMs) + shift
    if (values.chance(0.8))
      words[base + TICK] =
        (tick + values.of([0, 0, 0, -1, 1, -300, 300, -(2 ** 20), 2 ** 30])) % shape.modulus
    if (values.chance(0.5)) words.fill(values.of([0, 1, -1]), base + BUCKETS, base + shape.wayWords)
  }
  const params = new Float64Array(PARAM_COUNT)
  params[PARAM.WINDOW_MS] = windowMs
  params[PARAM.ORIGIN_MS] = values.chance(0.8) ? 1e9 - values.below(1e6) : values.of(NUMBERS)
  params[PARAM.BUCKETS] = buckets
  params[PARAM.SETS] = sets
  params[PARAM.CELL_BUCKETS] = cellBuckets
  params[PARAM.SUMS] = SUMS.indexOf(sums)
  params[PARAM.RECORD] = record
  params[PARAM.SHIFT] = shift
  params[PARAM.IS_SMOOTH] = values.below(2)
  params[PARAM.LIMIT] = values.chance(0.8) ? 1 + values.below(40) : MAX_TOTAL
  words[HEADER.CURRENT] = anyCurrent(values, record, params[PARAM.LIMIT]!)
  params[PARAM.SUSPECT_FROM] = values.below(40)
  params[PARAM.NEAR_FROM] = values.chance(0.8) ? values.below(40) : values.of(NUMBERS)
  params[PARAM.TO] = count
  params[PARAM.FROM] = values.chance(0.7) ? 0 : values.below(count + 1)
  params[PARAM.NOW_MS] = nowMs
  params[PARAM.READS_CLOCK] = values.below(2)
  const costOf = () => (values.chance(0.95) ? values.below(6) : values.of(NUMBERS))
  const costs = values.chance(0.5) ? costOf() : Float64Array.from({ length: count }, costOf)
  const remaining = values.chance(0.5) ? undefined : new Int32Array(count)
  const call = {
    words,
    fingerprints,
    costs,
    allowed: new Uint8Array(count),
    at: new Float64Array(count),
    seen: new Int32Array(4 * count),
    params,
    remaining,
  }
  return { call, beside, given: new Given(words, shape, record) }
}

/** Mostly the word with which calls decide; otherwise another record or any word. */
export function anyCurrent(values: Values, record: number, limit: number): number {
  if (values.chance(0.9)) return currentWord(record, limit)
  return values.chance(0.5) ? currentWord(values.below(MOST_RECORDS), limit) : values.word()
}

/** Half of the new arenas have memory beside them that shows a write out of bounds. */
function memoryFor(
  values: Values,
  length: number,
  on: SharedArrayBuffer | ArrayBuffer | undefined,
): { words: Int32Array; beside: readonly Int32Array[] } {
  if (on !== undefined) return { words: new Int32Array(on as ArrayBuffer, 0, length), beside: [] }
  if (values.chance(0.5)) return { words: new Int32Array(new SharedArrayBuffer(4 * length)), beside: [] }
  const all = new Int32Array(length + 2 * BESIDE)
  const beside = [all.subarray(0, BESIDE), all.subarray(BESIDE + length)]
  return { words: all.subarray(BESIDE, BESIDE + length), beside }
}

/** Fills the words with runs of edge values and random values. */
function scribble(values: Values, words: Int32Array): void {
  for (let i = 0; i < words.length; ) {
    const end = Math.min(words.length, i + 1 + values.below(200))
    const word = values.of([0, -1, 1, 0x7fffffff, -0x80000000, LIVE, undefined])
    for (; i < end; i++) words[i] = word ?? values.word()
  }
}
