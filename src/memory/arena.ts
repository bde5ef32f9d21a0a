import { createRequire } from 'node:module'
import { sumsOf } from '../core/algorithms.js'
import { MillraceError } from '../core/errors.js'
import { lazily } from '../core/lazily.js'
import type { Rule } from '../core/rule.js'
import { ALL_FLAGS } from '../core/rule-options.js'
import {
  HEADER,
  HEADER_WORDS,
  isBuckets,
  LAYOUT_VERSION,
  MAGIC,
  MIN_SETS,
  NAMES_AT,
  ON_FULL,
  type OnFull,
  type Shape,
  SUMS,
  type Sums,
  setsFor,
  shapeFor,
  TIME_ZONE_WORDS,
} from './layout.js'
import {
  type Arena,
  arenaBy,
  chosenOf,
  currentWord,
  isCurrent,
  readRecord,
  recordIn,
  writeRecord,
} from './records.js'
import { load, read, store, type Words, write } from './words.js'

const require = createRequire(import.meta.url)
const texts = lazily(() => require('./text.js') as typeof import('./text.js'))
const calendar = lazily(() => require('../core/calendar.js') as typeof import('../core/calendar.js'))

export const MAX_WORDS = 2 ** 31 - 1 // so that an index is a 32-bit integer, which V8 does not box

/**
 * Allocates an arena for `maxKeys` keys. All of its address space is reserved at once. A page that was never
 * used takes no memory.
 * @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE`
 */
export function createArena(
  rule: Rule,
  maxKeys: number,
  onFull: OnFull,
  originMs: number,
  sums?: Sums,
): Arena {
  const shape = shapeOf(rule, maxKeys, sums)
  const buffer = allocate(shape.words, maxKeys)
  const words = new Int32Array(buffer, 0, shape.words)
  writeHeader(words, shape, rule, onFull, originMs)
  return arenaOf(buffer, words, shape, rule, originMs, onFull)
}

/** The arena of a rule by its first record. */
export function arenaOf(
  buffer: SharedArrayBuffer,
  words: Int32Array,
  shape: Shape,
  { algorithm, edge, align, period, rate, timeZone, flags }: Rule,
  originMs: number,
  onFull: OnFull,
): Arena {
  return { buffer, words, shape, originMs, algorithm, edge, align, period, rate, timeZone, onFull, flags }
}

/** @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` if it has more than {@link MAX_WORDS} words */
export function shapeOf(rule: Rule, maxKeys: number, sums: Sums = sumsOf(rule)): Shape {
  const shape = shapeFor(rule.windowMs, rule.buckets, setsFor(maxKeys), sums, rule)
  if (shape.words > MAX_WORDS) throw tooLargeError(shape.words, maxKeys)
  return shape
}

/**
 * Writes the header and the first record of an arena whose other words are all 0. Without `seeds`, those of its hash
 * are drawn at random.
 */
export function writeHeader(
  words: Int32Array,
  shape: Shape,
  rule: Rule,
  onFull: OnFull,
  originMs: number,
  seeds = drawSeeds(),
): void {
  write(words, HEADER.VERSION, LAYOUT_VERSION)
  write(words, HEADER.BUCKETS, shape.buckets)
  write(words, HEADER.SETS, shape.sets)
  write(words, HEADER.RANGE_SUM, SUMS.indexOf(shape.sums))
  write(words, HEADER.ON_FULL, ON_FULL.indexOf(onFull))
  write(words, HEADER.RECORDS_USED, 1)
  writeRecord(words, 0, rule, 0, 0)
  write(words, HEADER.CURRENT, currentWord(0, rule.limit))
  write(words, HEADER.FLAGS, rule.flags)
  if (rule.timeZone !== undefined) texts().writeText(words, HEADER.TIME_ZONE, TIME_ZONE_WORDS, rule.timeZone)
  write(words, HEADER.SEED_0, seeds[0])
  write(words, HEADER.SEED_1, seeds[1])
  headerDoubles(words)[HEADER.ORIGIN_MS / 2] = originMs
  store(words, HEADER.MAGIC, MAGIC) // last: a thread that reads MAGIC can read the rest
}

/** The seeds of an arena's hash. */
export type Seeds = readonly [number, number]

/** Random words for several arenas: one at a time, they take as long as the rest of a header. */
const drawn = new Int32Array(64)
let left = 0

/** Draws seeds at random. */
export function drawSeeds(): Seeds {
  if (left === 0) {
    crypto.getRandomValues(drawn)
    left = drawn.length
  }
  left -= 2
  return [drawn[left]!, drawn[left + 1]!]
}

/**
 * Attaches the first arena of a buffer.
 * @throws MillraceError `ERR_MILLRACE_INVALID_SHARE` if `buffer` holds no arena of this version
 */
export function attachArena(buffer: unknown): Arena {
  return arenaIn(checkBuffer(buffer), (expected, value) => shareError(expected, value ?? buffer))
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_SHARE` */
export function checkBuffer(buffer: unknown): SharedArrayBuffer {
  if (buffer instanceof SharedArrayBuffer) return buffer
  throw shareError('the SharedArrayBuffer of limiter.share()', buffer)
}

export function shareError(expected: string, value: unknown): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', value, expected)
}

/**
 * Reads the arena that begins at word `from` of the buffer, by its present record.
 * @throws the error of `invalid` if there is none of this version
 */
export function arenaIn(
  buffer: ArrayBufferLike,
  invalid: (expected: string, value?: unknown) => MillraceError,
  from = 0,
): Arena {
  const bytes = buffer.byteLength - 4 * from
  if (bytes < 4 * NAMES_AT) throw invalid('an arena of Millrace', `${buffer.byteLength} bytes`)
  const header = new Int32Array(buffer, 4 * from, NAMES_AT)
  if (load(header, HEADER.MAGIC) !== MAGIC) throw invalid('an arena of Millrace')
  const version = read(header, HEADER.VERSION)
  if (version !== LAYOUT_VERSION) throw invalid(`layout version ${LAYOUT_VERSION}`, version)
  const originMs = headerDoubles(header)[HEADER.ORIGIN_MS / 2]!
  const buckets = read(header, HEADER.BUCKETS)
  const sets = read(header, HEADER.SETS)
  const current = read(header, HEADER.CURRENT)
  const first = readRecord(header, 0)
  const onFull = ON_FULL[read(header, HEADER.ON_FULL)]
  const sums = SUMS[read(header, HEADER.RANGE_SUM)]
  const flags = read(header, HEADER.FLAGS)
  const hasZone = read(header, HEADER.TIME_ZONE) !== 0
  const timeZone = hasZone ? texts().textIn(header, HEADER.TIME_ZONE, TIME_ZONE_WORDS) : undefined
  if (
    first?.buckets !== buckets ||
    !(isBuckets(first.algorithm, buckets) && sets >= MIN_SETS) ||
    !isCurrent(header, current) ||
    !Number.isFinite(originMs) ||
    onFull === undefined ||
    sums === undefined ||
    (flags & ~ALL_FLAGS) !== 0 ||
    (first.align === 'calendar') !== (timeZone !== undefined) ||
    (timeZone !== undefined && calendar().knownTimeZone(timeZone) === undefined)
  ) {
    throw invalid('an arena of Millrace with a valid header')
  }
  const shape = shapeFor(first.windowMs, buckets, sets, sums, first)
  if (bytes < 4 * shape.words) {
    throw invalid(`${4 * (from + shape.words)} bytes for its shape`, `${buffer.byteLength} bytes`)
  }
  const words = new Int32Array(buffer, 4 * from, shape.words)
  const arena = { ...chosenOf(first), buffer, words, shape, originMs, onFull, flags, timeZone }
  const present = arenaBy(arena, recordIn(current))
  if (present === undefined) throw invalid('an arena of Millrace with valid records')
  return present
}

/** The header as doubles. The index of a double is half of its index in words. */
export function headerDoubles({ buffer, byteOffset }: Words): Float64Array {
  return new Float64Array(buffer, byteOffset, HEADER_WORDS / 2)
}

function tooLargeError(words: number, maxKeys: number, cause?: unknown): MillraceError {
  return new MillraceError(
    'ERR_MILLRACE_ARENA_TOO_LARGE',
    'maxKeys',
    maxKeys,
    `fewer keys or a coarser granularity: this needs ${4 * words} bytes, more than can be allocated`,
    { cause },
  )
}

/** @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` */
export function allocate(words: number, maxKeys: number): SharedArrayBuffer {
  const bytes = 4 * words
  try {
    // It never grows. But V8 aligns only growable buffers to a page, and so a cell of 16 words to a cache
    // line.
    return new SharedArrayBuffer(bytes, { maxByteLength: bytes })
  } catch (cause) {
    throw tooLargeError(words, maxKeys, cause)
  }
}
