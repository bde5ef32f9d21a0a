// Letters and numbers that the scripts and their callers share.

import type { Operation } from '../remote/remote-store.js'
import { BIRTH_RANGE_MS, REFUNDS } from '../remote/reply-codes.js'

/** The operations as scripts get them. */
export const OPERATION_LETTER: Readonly<Record<Operation, string>> = {
  check: 'c',
  try: 't',
  peek: 'p',
  penalize: 'n',
  penalizeAgo: 'a',
  refund: 'r',
  giveBack: 'g',
  block: 'b',
  unblock: 'u',
  clear: 'x',
  usage: 'w',
}

/**
 * What a value's bytes mean. That of strict limiters is one more if there is a block: see `strict-value.ts`. It is no
 * small number, so that a value that was cut off ends in another one. Layouts before had 1 and 2, in the first byte,
 * where the version of a sliding counter stands.
 */
export const ValueVersion = {
  COUNTER: 1,
  NARROW: 0x4d03,
  NARROW_BLOCKED: 0x4d04,
  WIDE: 0x4d05,
  WIDE_BLOCKED: 0x4d06,
} as const

/** A function of scripts: a birth with one more refund. It takes part in no receipt from before. */
export const REFUNDED = `local function refunded(born)
  return (math.floor(born / ${BIRTH_RANGE_MS}) % ${REFUNDS} + 1) * ${BIRTH_RANGE_MS} + born % ${BIRTH_RANGE_MS}
end`

/**
 * What the reply to several keys begins with that one sliding window has admitted at once: reset and mark of all follow,
 * then of each key what remains, and its birth.
 */
export const ALL_ADMITTED = -7

/** A function of scripts: whether an error of a read is about the value, and not about who may read it. */
export const IS_OTHER_TYPE = `local function isOtherType(e) return string.find(e.err, 'WRONGTYPE', 1, true) ~= nil end`

/** An expression of scripts: whether the flags of a rule have this one. */
export const flagIn = (flags: string, flag: number): string => `${flags} % ${2 * flag} >= ${flag}`
