/**
 * The map of a ring of slots, as far as the addon knows it (`native/slots.h`).
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
/**
 * Requests under way in one ring. A power of two. Each has four words to be asked in, and a slot for the answer: so the asker, whose
 * stores wait for the lines of memory that the answerer has, waits for one of four requests, and for a decision writes to no slot.
 */
export const SLOTS = 1024
export const REQUESTS_AT = 64
export const REQUEST_BITS = 2
export const SLOT_BITS = 4
/** Words of a slot, which is a line. */
export const SLOT_WORDS = 1 << SLOT_BITS
export const SLOTS_AT = REQUESTS_AT + (SLOTS << REQUEST_BITS)

/** What a request holds, as offsets in words. */
export const OP = 0
export const LO = 1
export const HI = 2
export const COST = 3
/** In place of the cost of a batch: each key has its own. */
export const EACH = -1

/** What a slot holds. Where a decision was charged; of a batch that is asked, its area, its length, and whether it asks what remains. */
export const WAY = 0
export const CHARGED_TICK = 1
export const REFUNDS = 2
export const LIMIT = 3
export const REMAINING = 4
/** Of a batch, how many keys were refused. */
export const OUTCOME = 5
/** Offsets in doubles: milliseconds that are asked about, or any number found; and of a decision. */
export const NUMBER = 3
export const RETRY_AFTER_MS = 4
export const RESET_MS = 5

/** Where the request of a slot is, in words. */
export const requestOf = (slot: number): number =>
  REQUESTS_AT + ((slot - SLOTS_AT) >> (SLOT_BITS - REQUEST_BITS))

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
