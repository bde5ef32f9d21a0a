/**
 * The arenas of a limiter's rules, one for each rule, in one buffer. Each begins at a multiple of a page, so
 * that its cells are aligned as in a buffer of its own. All have the seed of the first arena, so one hash
 * finds a key in each. The header of the first arena has what a limiter has only once: the decisions in
 * its statistics, the count of changed limits, the time of a file.
 */

import type { CountedWindow } from '../core/algorithms.js'
import type { MillraceError } from '../core/errors.js'
import { MOST_RULES, type Rules } from '../core/rule.js'
import { goesBySystemTime } from '../core/rule-algorithms.js'
import {
  allocate,
  arenaIn,
  arenaOf,
  checkBuffer,
  drawSeeds,
  type Seeds,
  shapeOf,
  shareError,
  writeHeader,
} from './arena.js'
import { HEADER, type OnFull, type Shape } from './layout.js'
import { announceChange, changeLimit } from './limit.js'
import { type Arena, changeRecord } from './records.js'
import { hasValidUnit, writeUnit } from './unit.js'
import { read, type Words, write } from './words.js'

export const seedsOf = ({ words }: Arena): Seeds => [read(words, HEADER.SEED_0), read(words, HEADER.SEED_1)]

/** The arenas of a limiter's rules, in the order of the rules. */
export type Arenas = readonly [Arena, ...Arena[]]

/** Where a limiter counts: for each rule an arena, and its name. */
export interface RuleMemory {
  readonly arenas: Arenas
  readonly names: readonly [string, ...string[]]
  /** The option `nearLimit` of the limiter, if it was given. */
  readonly nearLimit?: number | undefined
}

const PAGE_WORDS = 1_024

/** The arenas of several rules: where each begins, and how long they are together, in words. */
export interface Plan {
  readonly shapes: readonly Shape[]
  readonly starts: readonly number[]
  readonly words: number
}

/** @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` */
export function planFor(rules: Rules, maxKeys: number): Plan {
  const shapes = rules.map((rule) => shapeOf(rule, maxKeys))
  const starts: number[] = []
  let words = 0
  for (const shape of shapes) {
    starts.push(nextPage(words))
    words = nextPage(words) + shape.words
  }
  return { shapes, starts, words }
}

const nextPage = (words: number): number => Math.ceil(words / PAGE_WORDS) * PAGE_WORDS

/** @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` */
export function createArenas(rules: Rules, maxKeys: number, onFull: OnFull, originMs: number): Arenas {
  const { shapes, starts, words } = planFor(rules, maxKeys)
  const buffer = allocate(words, maxKeys)
  const arenas = rules.map((rule, i): Arena => {
    const shape = shapes[i]!
    const own = new Int32Array(buffer, 4 * starts[i]!, shape.words)
    return arenaOf(buffer, own, shape, rule, originMs, onFull)
  })
  writeHeaders(
    arenas.map((arena) => arena.words),
    shapes,
    rules,
    onFull,
    originMs,
  )
  return arenas as [Arena, ...Arena[]]
}

/**
 * The arenas of rules in an area of other memory, whose words are 0 or have been written by this function for the same
 * rules. `like` is an arena of the same limiter: its seed and its origin hold for them, too.
 */
export function placeArenas(
  buffer: SharedArrayBuffer,
  from: number,
  { shapes, starts }: Plan,
  rules: Rules,
  like: Arena,
): Arenas {
  const { onFull, originMs } = like
  const arenas = rules.map((rule, i): Arena => {
    const shape = shapes[i]!
    const words = new Int32Array(buffer, 4 * (from + starts[i]!), shape.words)
    write(words, HEADER.FOLLOWING, rules.length - 1 - i)
    writeUnit(words, rule.unit)
    writeHeader(words, shape, rule, onFull, originMs, seedsOf(like))
    return arenaOf(buffer, words, shape, rule, originMs, onFull)
  })
  return arenas as [Arena, ...Arena[]]
}

/** The rules with windows that begin by another clock, which is `offsetMs` ahead of the limiter's. */
export function alignedTo(offsetMs: number, rules: Rules): Rules {
  const wholeMs = Math.round(offsetMs) // so that windows begin at whole milliseconds of the limiter's clock
  const aligned = rules.map((rule) => (goesBySystemTime(rule.align) ? { ...rule, offsetMs: wholeMs } : rule))
  return aligned as [Rules[0], ...Rules[0][]]
}

/** Writes the headers of arenas whose other words are all 0. */
export function writeHeaders(
  headers: readonly Int32Array[],
  shapes: readonly Shape[],
  rules: Rules,
  onFull: OnFull,
  originMs: number,
  seeds: Seeds = drawSeeds(),
): void {
  for (const [i, rule] of rules.entries()) {
    const header = headers[i]!
    writeHeader(header, shapes[i]!, rule, onFull, originMs, seeds)
    write(header, HEADER.FOLLOWING, rules.length - 1 - i)
    writeUnit(header, rule.unit)
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_SHARE` if `buffer` does not hold as many arenas from word `from` on */
export function attachArenas(buffer: unknown, count: number, from = 0): Arenas {
  const invalid = (expected: string, value: unknown = buffer) => shareError(expected, value)
  const arenas = arenasIn(checkBuffer(buffer), invalid, from)
  if (arenas.length !== count) throw invalid(`the memory of ${count} rules`, `that of ${arenas.length}`)
  return arenas
}

/** Reads all arenas of a buffer. @throws the error of `invalid` if it holds others than of this version */
export function arenasIn(
  buffer: ArrayBufferLike,
  invalid: (expected: string, value?: unknown) => MillraceError,
  from = 0,
): Arenas {
  const first = arenaIn(buffer, invalid, from)
  const arenas: [Arena, ...Arena[]] = [first]
  const following = read(first.words, HEADER.FOLLOWING)
  if (!(following >= 0 && following < MOST_RULES))
    throw invalid(`at most ${MOST_RULES} arenas`, following + 1)
  for (let end = from + first.shape.words; arenas.length <= following; ) {
    const start = nextPage(end)
    const arena = arenaIn(buffer, invalid, start)
    if (!isNext(arena.words, first.words, following - arenas.length)) {
      throw invalid('arenas of Millrace with the same seed, one after the other')
    }
    arenas.push(arena)
    end = start + arena.shape.words
  }
  if (!arenas.every(({ words }) => hasValidUnit(words))) throw invalid('arenas with valid units')
  return arenas
}

/** Whether an arena is one of those after `first`, with as many after itself. */
function isNext(words: Words, first: Words, following: number): boolean {
  const isSame = (at: number) => read(words, at) === read(first, at)
  return read(words, HEADER.FOLLOWING) === following && isSame(HEADER.SEED_0) && isSame(HEADER.SEED_1)
}

/** The number of words from the start of the first arena to the end of the last. */
export function wordsOf(arenas: Arenas): number {
  const { words } = arenas.at(-1)!
  return words.byteOffset / 4 + words.length
}

/**
 * Changes the window of one rule, for all threads, and its limit if one is given. `nowMs` is a reading of the
 * clock.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_CLOCK`
 */
export function changeWindowOf(
  arenas: Arenas,
  rule: number,
  window: CountedWindow,
  limit: number | undefined,
  nowMs: number,
): void {
  changeRecord(arenas[rule]!, window, limit, nowMs)
  announceChange(arenas[0].words)
}

/** Changes the limit of one rule, for all threads. */
export function changeLimitOf(arenas: Arenas, rule: number, limit: number): void {
  changeLimit(arenas[rule]!.words, limit, arenas[0].words)
}
