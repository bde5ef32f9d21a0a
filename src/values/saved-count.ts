// The value of a key: a version, then the counts of each rule, in the order of the rules. All numbers are of
// `varints.ts`.
//
//   shape, birth, end of the block, end of the value, newest time, serial, entries
//   of each entry, the oldest first: its time less that of the entry before, its units, its serial
//
//   shape    1 more than a checksum of algorithm, window and granules: another limiter's value is an error by name.
//            0: the rule has no count yet, and nothing follows
//   birth    milliseconds in the low 43 bits; above them a count of refunds by key and of clearings, modulo 32
//   block    until when the key is blocked, in milliseconds; 2^48 - 1: for ever
//   end      until when the value must stay, in milliseconds: no change shortens it, so that others see its birth
//   newest   the latest time at which any process has charged: one whose clock is behind it stands still there
//   serial   of the newest entry of a log
//
// The time of an entry is the granule of a sliding window, the number of a sliding counter's window, the beginning of
// a fixed window in milliseconds, the microsecond of a log. A bucket has one entry: the millisecond of its last charge,
// its level then in time units, and as its serial how often it was charged after it was empty, modulo 512.
import { KEY_FAULT } from '../remote/reply-codes.js'
import { VarintReader, VarintWriter } from './varints.js'

const VERSION = 1

/** Units that were charged at one time. */
export interface Entry {
  readonly at: number
  readonly units: number
  readonly serial: number
}

/** The counts of one rule, as the value has them. */
export interface SavedCount {
  readonly shape: number
  readonly born: number
  readonly untilMs: number
  readonly endMs: number
  readonly newest: number
  readonly serial: number
  /** The oldest first. */
  readonly entries: readonly Entry[]
}

/** Why a value can't be read: one of {@link KEY_FAULT}. A store may throw it, too. */
export class ValueFault extends Error {
  readonly code: number

  constructor(code: number) {
    super('a value that can not be read')
    this.code = code
  }
}

export function encodeCounts(counts: readonly (SavedCount | undefined)[]): Uint8Array {
  const writer = new VarintWriter()
  writer.write(VERSION)
  for (const count of counts) {
    if (count === undefined) {
      writer.write(0)
      continue
    }
    const { shape, born, untilMs, endMs, newest, serial, entries } = count
    for (const value of [shape + 1, born, untilMs, endMs, newest, serial, entries.length]) writer.write(value)
    let before = 0
    for (const { at, units, serial: own } of entries) {
      for (const value of [at - before, units, own]) writer.write(value)
      before = at
    }
  }
  return writer.bytes
}

/**
 * @param shapes of the rules
 * @throws ValueFault
 */
export function decodeCounts(bytes: Uint8Array, shapes: readonly number[]): (SavedCount | undefined)[] {
  const reader = new VarintReader(bytes)
  if (reader.read() !== VERSION) throw new ValueFault(KEY_FAULT.VERSION)
  const counts = shapes.map((shape) => {
    const [own] = numbersOf(reader, 1)
    if (own === 0) return undefined
    if (own !== shape + 1) throw new ValueFault(KEY_FAULT.SHAPE)
    const [born, untilMs, endMs, newest, serial, length] = numbersOf(reader, 6) as [
      ...[number, number, number],
      ...[number, number, number],
    ]
    const entries: Entry[] = []
    let before = 0
    for (let i = 0; i < length; i++) {
      const [later, units, ownSerial] = numbersOf(reader, 3) as [number, number, number]
      before += later
      entries.push({ at: before, units, serial: ownSerial })
    }
    return { shape, born, untilMs, endMs, newest, serial, entries }
  })
  if (!reader.isAtEnd) throw new ValueFault(KEY_FAULT.CUT)
  return counts
}

function numbersOf(reader: VarintReader, length: number): number[] {
  const numbers = Array.from({ length }, () => reader.read())
  if (numbers.some(Number.isNaN)) throw new ValueFault(KEY_FAULT.CUT)
  return numbers
}
