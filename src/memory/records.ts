import { areUnits, type CountedWindow } from '../core/algorithms.js'
import { MillraceError } from '../core/errors.js'
import { Reading } from '../core/reading.js'
import { isLimit, type Rule } from '../core/rule.js'
import { MAX_LIMIT } from '../core/rule-algorithms.js'
import { type CountedRule, RECORDED } from '../core/rule-options.js'
import { Ticks } from '../core/ticks.js'
import { again } from '../core/tries.js'
import { BlockTime } from './block-time.js'
import {
  CURRENT_LIMIT,
  CURRENT_RECORD_SHIFT,
  HEADER,
  isWindow,
  MOST_RECORDS,
  type OnFull,
  RECORD,
  RECORD_WORDS,
  RECORDS_AT,
  type Shape,
} from './layout.js'
import { add, compareExchange, load, read, store, type Words, write } from './words.js'

/** The shared memory of one rule, the values of its header, and one of its records. */
export interface Arena extends Chosen {
  /** A SharedArrayBuffer, or an ArrayBuffer that maps a file. Other rules may have arenas in it, too. */
  readonly buffer: ArrayBufferLike
  readonly words: Words
  readonly shape: Shape
  readonly originMs: number
  readonly onFull: OnFull
  readonly flags: Rule['flags']
  readonly timeZone?: Rule['timeZone']
}

/** Ticks of a new record begin so much later that a thread may stall for this time before it notices it. */
const STALL_MS = 3_600_000
const MOST_STALL_TICKS = 2 ** 20

/** What a record says of the rule. */
export type RecordedRule = CountedWindow & Chosen & Pick<CountedRule, 'offsetMs'>

/** CURRENT for a record and a limit. */
export const currentWord = (record: number, limit: number): number => (record << CURRENT_RECORD_SHIFT) | limit
export const recordIn = (current: number): number => current >>> CURRENT_RECORD_SHIFT
export const limitIn = (current: number): number => current & CURRENT_LIMIT

/** Whether CURRENT has a valid limit, and a record that has been given out. */
export function isCurrent(words: Words, current: number): boolean {
  return isLimit(limitIn(current)) && isGivenOut(words, recordIn(current))
}

const isGivenOut = (words: Words, record: number): boolean =>
  record < Math.min(MOST_RECORDS, load(words, HEADER.RECORDS_USED))

/** Writes a record. No other thread uses it yet. */
export function writeRecord(
  words: Words,
  record: number,
  rule: RecordedRule,
  shift: number,
  begun: number,
): void {
  const at = recordAt(record)
  const doubles = doublesOf(words)
  doubles[(at + RECORD.WINDOW_MS) / 2] = rule.windowMs
  doubles[(at + RECORD.OFFSET_MS) / 2] = rule.offsetMs
  write(words, at + RECORD.BUCKETS, rule.buckets)
  write(words, at + RECORD.SHIFT, shift | 0)
  write(words, at + RECORD.UNITS, rule.units)
  for (const { name, record: word, choices } of RECORDED)
    write(words, at + RECORD[word], choices.indexOf(rule[name]))
  write(words, at + RECORD.RATE_LIMIT, rule.rate?.limit ?? 0)
  write(words, at + RECORD.RATE_BURST, rule.rate?.burst ?? 0)
  store(words, at + RECORD.BEGUN, begun)
}

/** The reading at which a record ended, or up to a sixteenth of a second later; the present one if it has not ended. */
export function endOfRecord({ words, originMs }: Arena, record: number, nowMs: number): number {
  const next = record + 1 // it need not have become the present one, and then the one that did was made at the same time
  const begun = isGivenOut(words, next) ? load(words, recordAt(next) + RECORD.BEGUN) : 0
  return begun === 0 ? nowMs : nowMs + Math.min(0, new BlockTime(originMs).leftMs(begun, nowMs))
}

/** A record's rule, or undefined if the record was never given out, or something else has written to it. */
export function readRecord(words: Words, record: number): RecordedRule | undefined {
  if (!isGivenOut(words, record)) return undefined
  const at = recordAt(record)
  const doubles = doublesOf(words)
  const windowMs = doubles[(at + RECORD.WINDOW_MS) / 2]!
  const offsetMs = doubles[(at + RECORD.OFFSET_MS) / 2]!
  const buckets = read(words, at + RECORD.BUCKETS)
  const chosen = Object.fromEntries(
    RECORDED.map(({ name, record: word, choices }) => [name, choices[read(words, at + RECORD[word])]]),
  ) as Recorded
  if (RECORDED.some(({ name }) => chosen[name] === undefined)) return undefined
  if ((chosen.align === 'calendar') !== (chosen.period !== 'none')) return undefined
  const { algorithm } = chosen
  const units = read(words, at + RECORD.UNITS)
  const rate = { limit: read(words, at + RECORD.RATE_LIMIT), burst: read(words, at + RECORD.RATE_BURST) }
  if (!isWindow(algorithm, buckets, windowMs)) return undefined
  if (!Number.isFinite(offsetMs) || !areUnits(algorithm, units, buckets)) return undefined
  if (!(rate.limit === 0 && rate.burst === 0) && !(isLimit(rate.limit) && isLimit(rate.burst)))
    return undefined
  return { windowMs, buckets, ...chosen, units, offsetMs, ...(rate.limit > 0 && { rate }) }
}

/** The options that a record has as an index. */
type Recorded = Pick<CountedRule, (typeof RECORDED)[number]['name']>

/** What an arena keeps of a rule beside its shape. */
export const chosenOf = ({ algorithm, edge, align, period, rate }: Chosen): Chosen => ({
  algorithm,
  edge,
  align,
  period,
  rate,
})
type Chosen = Recorded & Pick<CountedRule, 'rate'>

/** Whether a rule's window is or was that of any record. */
export function hasHadWindow(
  words: Words,
  { windowMs, buckets }: Pick<RecordedRule, 'windowMs' | 'buckets'>,
): boolean {
  for (let record = 0; record < MOST_RECORDS; record++) {
    const rule = readRecord(words, record)
    if (rule?.windowMs === windowMs && rule.buckets === buckets) return true
  }
  return false
}

/** The arena as one of its records counts, or undefined if there is no sound record of this index. */
export function arenaBy(arena: Arena, record: number): Arena | undefined {
  if (record === arena.shape.record) return arena
  const rule = readRecord(arena.words, record)
  // No change gives an arena another algorithm: something else has written to such a record.
  if (rule?.algorithm !== arena.algorithm || !canHold(arena.shape, rule.buckets)) return undefined
  const { windowMs, buckets, units, offsetMs, ...chosen } = rule
  const shift = read(arena.words, recordAt(record) + RECORD.SHIFT) >>> 0
  return { ...arena, ...chosen, shape: { ...arena.shape, windowMs, buckets, record, shift, units, offsetMs } }
}

/** Whether the cells of this shape can count a window of `buckets` granules. */
export function canHold({ leastBuckets, mostBuckets }: Shape, buckets: number): boolean {
  return buckets >= leastBuckets && buckets <= mostBuckets
}

/**
 * Makes another window the present one, with `ownLimit` or with the present limit. `nowMs` is a reading of
 * the clock. Threads and processes notice it at their next decision.
 *
 * Ticks of the new record begin four rings and a margin after those of the present one, at this reading. So
 * two rings are left for a tick that lies a window before this reading, and for one that a thread takes by
 * the present record although it stalls for an hour, or 2^20 granules, before it notices the change.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if all records have been used;
 * `ERR_MILLRACE_INVALID_CLOCK` if doubles can't tell one granule of the window from the next
 */
export function changeRecord(
  arena: Arena,
  window: CountedWindow,
  ownLimit: number | undefined,
  nowMs: number,
): void {
  const { words } = arena
  const { modulus, offsetMs } = arena.shape
  const rule: RecordedRule = { ...chosenOf(arena), offsetMs, ...window }
  new Reading({ now: () => nowMs }, new Ticks(rule.windowMs, rule.buckets, modulus, 0, offsetMs)).take() // or it throws
  const begun = new BlockTime(arena.originMs).wordFor(nowMs, 0) || 1
  for (let tries = 0; ; tries = again(tries)) {
    const current = load(words, HEADER.CURRENT)
    const present = arenaBy(arena, presentRecord(words, current)) ?? arena
    const { shape } = present
    const limit = ownLimit ?? Math.max(1, Math.min(limitIn(current), MAX_LIMIT))
    if (rule.windowMs === shape.windowMs && rule.buckets === shape.buckets) {
      if (compareExchange(words, HEADER.CURRENT, current, currentWord(shape.record, limit)) === current)
        return
      continue
    }
    // After the load of CURRENT: so a record that becomes the present one has a greater index than before.
    const record = add(words, HEADER.RECORDS_USED, 1)
    if (record >= MOST_RECORDS) {
      add(words, HEADER.RECORDS_USED, -1)
      throw noRecordError(rule.windowMs)
    }
    writeRecord(words, record, rule, shiftFrom(shape, rule, nowMs), begun)
    if (compareExchange(words, HEADER.CURRENT, current, currentWord(record, limit)) === current) return
  }
}

/** Changes the limit, and keeps the record. */
export function changeCurrentLimit(words: Words, limit: number): void {
  for (let tries = 0; ; tries = again(tries)) {
    const current = load(words, HEADER.CURRENT)
    const next = currentWord(presentRecord(words, current), limit)
    if (compareExchange(words, HEADER.CURRENT, current, next) === current) return
  }
}

/** The record in CURRENT. If something else has written to CURRENT: the last one that was given out. */
function presentRecord(words: Words, current: number): number {
  if (isCurrent(words, current)) return recordIn(current)
  let record = Math.min(MOST_RECORDS, load(words, HEADER.RECORDS_USED)) - 1
  while (record > 0 && readRecord(words, record) === undefined) record--
  return Math.max(0, record)
}

/** SHIFT of a record that follows the record of `shape`. */
function shiftFrom(shape: Shape, { windowMs, buckets }: RecordedRule, nowMs: number): number {
  const { modulus, ring, offsetMs } = shape
  const present = new Ticks(shape.windowMs, shape.buckets, modulus, shape.shift, offsetMs)
  const next = new Ticks(windowMs, buckets, modulus, 0, offsetMs)
  const finest = Math.min(present.granuleMs, next.granuleMs)
  const margin = Math.min(Math.ceil(STALL_MS / finest), MOST_STALL_TICKS)
  const goal = Math.floor(present.position(nowMs)) + shape.shift + 4 * ring + margin
  return new Ticks(windowMs, buckets, modulus, goal - Math.floor(next.position(nowMs))).wrap(0)
}

const recordAt = (record: number): number => RECORDS_AT + record * RECORD_WORDS

/** The words as doubles, up to the end of the records. */
const doublesOf = ({ buffer, byteOffset }: Words): Float64Array =>
  new Float64Array(buffer, byteOffset, recordAt(MOST_RECORDS) / 2)

function noRecordError(windowMs: number): MillraceError {
  const expected = `a window that it has: it has had ${MOST_RECORDS}, as many as there can be. Create a new limiter`
  return new MillraceError('ERR_MILLRACE_INVALID_RULE', 'window', windowMs, expected)
}
