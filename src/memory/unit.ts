/** The unit of a rule in the header of its arena, in two words, the low one first. 0: it has none. */
import { HEADER } from './layout.js'
import { read, type Words, write } from './words.js'

const WORD = 2 ** 32

export function writeUnit(header: Words, unit = 0): void {
  write(header, HEADER.UNIT, (unit % WORD) | 0)
  write(header, HEADER.UNIT + 1, Math.floor(unit / WORD))
}

/** The reads are plain: the unit is written before the arena can be attached, and never after. */
export function unitIn(words: Words): number | undefined {
  const unit = read(words, HEADER.UNIT + 1) * WORD + (read(words, HEADER.UNIT) >>> 0)
  return unit === 0 ? undefined : unit
}

/** Whether the header has no unit, or one from 1 to 2^53 - 1. */
export function hasValidUnit(header: Words): boolean {
  const unit = unitIn(header)
  return unit === undefined || (Number.isSafeInteger(unit) && unit > 0)
}
