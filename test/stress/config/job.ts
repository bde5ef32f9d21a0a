// What writers and the judge of their logs agree on.
import type { Policy } from 'millrace/config/lmdb'

/** Writers at a time, each a process with keys of its own. */
export const WRITERS = 2
/** The loops of a writer, each with keys of its own and one write under way. */
export const LANES = 4
const KEYS_A_LANE = 12
/** The keys that `putMany` writes together. */
export const BATCH_KEYS = 150

export interface Job {
  readonly path: string
  /** To which the writer appends a line before each write, and one when it was acknowledged. */
  readonly log: string
  readonly writer: number
  /** Numbers above this one are new. */
  readonly after: number
  readonly seed: number
}

export const keysOf = (writer: number, lane: number): string[] =>
  Array.from({ length: KEYS_A_LANE }, (_, i) => `writer:${writer}:${lane}:${i}`)

export const batchKeysOf = (writer: number): string[] =>
  Array.from({ length: BATCH_KEYS }, (_, i) => `batch:${writer}:${i}`)

const RULES = 16
const LONG_NAME = 60

/** The policy of a write's number: from 60 bytes of JSON to more than a page of LMDB, all of which tell the number. */
export function policyOf(number: number): Policy {
  if (number % 3 > 0) return { limit: number, window: '1m' }
  return {
    rules: Array.from({ length: 1 + (number % RULES) }, (_, i) => ({
      name: `${i}-${number}`.padEnd(LONG_NAME, 'x'),
      limit: number,
      window: `${i + 1}m`,
    })),
  }
}

/** A line of a log: a write has begun, or was acknowledged. Number 0: a deletion. The key `batch`: all of its keys. */
export const lineOf = (event: 'begun' | 'acknowledged', key: string, number: number): string =>
  `${event} ${key} ${number}\n`
