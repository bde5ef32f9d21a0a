/**
 * The map of a ring of slots, as far as the addon knows it (`native/slots.h`): a slot takes a request, and then its answer.
 * `engines/ring-transport.ts` tells how it is worked.
 */

/** How many requests the answerer has answered, as an index into the ring's words. */
export const ANSWERED = 16
/**
 * Requests that the answerer has begun with, and done with, of which it tells some later: at most one less. Plain: the asker
 * reads them when it has died.
 */
export const BEGUN = 17
export const DONE = 18
export const SLOTS_AT = 64

/** Requests under way in one ring. A power of two. */
export const SLOTS = 1024
export const SLOT_BITS = 4
/** Words of a slot. */
export const SLOT_WORDS = 1 << SLOT_BITS

/** What a slot holds, as offsets in words: the request ... */
export const OP = 0
export const LO = 1
export const HI = 2
export const COST = 3
/** In place of the cost of a batch: each key has its own. */
export const EACH = -1
/** Where a decision was charged; of a batch its area, its length, and whether it is asked what remains. */
export const WAY = 4
export const CHARGED_TICK = 5
export const REFUNDS = 6
/** ... and the answer. */
export const LIMIT = 7
export const REMAINING = 14
/** Of a batch, how many keys were refused. */
export const OUTCOME = 15
/** Offsets in doubles: milliseconds that were asked about, or any number found; and of a decision. */
export const NUMBER = 4
export const RETRY_AFTER_MS = 5
export const RESET_MS = 6

/** What can be asked. */
export const Op = {
  CHECK: 1,
  PEEK: 2,
  USAGE: 3,
  GIVE_BACK: 4,
  REFUND: 5,
  PENALIZE: 6,
  BLOCK: 7,
  UNBLOCK: 8,
  CLEAR: 9,
  /** Statistics that the thread has kept to itself go to all. */
  FLUSH: 10,
  BATCH: 11,
} as const
export type Op = (typeof Op)[keyof typeof Op]
