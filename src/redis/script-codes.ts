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
 * What a value's bytes mean. That of strict limiters is one more if there is a block, and four more if nodes hold leases:
 * see `strict-value.ts`. It is no small number, so that a value that was cut off ends in another one. Layouts before had
 * 1 and 2, in the first byte, where the version of a sliding counter stands.
 */
export const ValueVersion = {
  COUNTER: 1,
  NARROW: 0x4d03,
  NARROW_BLOCKED: 0x4d04,
  WIDE: 0x4d05,
  WIDE_BLOCKED: 0x4d06,
  NARROW_LEASED: 0x4d07,
  NARROW_LEASED_BLOCKED: 0x4d08,
  WIDE_LEASED: 0x4d09,
  WIDE_LEASED_BLOCKED: 0x4d0a,
} as const

/** Bytes of the record of a node that holds leases, and of what is before its held units: see `strict-value.ts`. */
export const RECORD = { size: 28, held: 18 } as const

/** What leases add to a version. */
export const LEASED = ValueVersion.NARROW_LEASED - ValueVersion.NARROW

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
