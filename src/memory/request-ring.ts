/**
 * The part of a request ring's map that the addon shares (`native/request_server.h`).
 * `engines/pool/ring-transport.ts` has the protocol.
 */

/** The index, in the ring's words, of the cursor that counts the replies that the server has published. */
export const REPLIED = 16
/**
 * The indexes of the cursors that count the requests that the server has begun, and finished. While a request
 * is in flight, ACCEPTED is COMPLETED + 1. REPLIED follows COMPLETED later. The server writes both by plain
 * stores: the client reads them only after the worker died.
 */
export const ACCEPTED = 17
export const COMPLETED = 18
/**
 * The most requests in flight in one ring, a power of two. A request has four words, and a separate slot for
 * its reply. So four requests share a cache line: the client, whose stores wait for lines that the server
 * holds, waits once for four requests, and writes to no slot to request a decision.
 */
export const SLOTS = 1024
export const REQUESTS_AT = 64
export const REQUEST_BITS = 2
export const SLOT_BITS = 4
/** The words of a slot, which is one cache line. */
export const SLOT_WORDS = 1 << SLOT_BITS
export const SLOTS_AT = REQUESTS_AT + (SLOTS << REQUEST_BITS)

/** The fields of a request, as offsets in words. */
export const OP = 0
export const LO = 1
export const HI = 2
export const COST = 3
/** COST of a batch in which each key has a cost of its own. */
export const EACH = -1

/**
 * The fields of a slot, as offsets in words. Of a decision: where its charge is. The request of a batch has
 * its area in WAY, its number of keys in CHARGED_TICK, and in REFUNDS 1 if it asks for `remaining`. A PEEK
 * and an ATTEMPT have the limit of their call in LIMIT, or RULE_LIMIT. A USAGE has the index of its rule in
 * WAY, and a CHARGE_MORE a bit for each rule that charges nothing.
 *
 * With several rules, the slot has the decision of the first rule, and `engines/pool/ring-transport.ts` says where
 * those of the others are.
 */
export const WAY = 0
export const CHARGED_TICK = 1
export const REFUNDS = 2
export const LIMIT = 3
export const REMAINING = 4
/** The `Outcome` of a decision; of a batch, the number of refused keys. */
export const OUTCOME = 5
/** With several rules: the index of the rule that refused, or -1 for an admission. */
export const REFUSING = 12
/** In a GIVE_BACK: how many units the rule gives back. */
export const UNITS = 13
/** In the reply that is a refusal: 1 if the key was blocked. An admission need not have it. */
export const BLOCKED = 13
/**
 * In the reply to a BATCH: how many keys were refused, how many of these were blocked, how many were admitted that a rule
 * would have refused if it were enforced, and how many admissions left a key near its limit. At `OF_RULE` in the slot of each rule: the same in the name of the rule.
 */
export const OF_ALL = 6
export const OF_RULE = 10
/**
 * Offsets in doubles. NUMBER is a request's milliseconds, or the cost that a CHARGE_MORE begins at, and the
 * reply of every operation that returns one number. Of a decision, and in a GIVE_BACK: the reading of its charge.
 */
export const NUMBER = 3
export const RETRY_AFTER_MS = 4
export const RESET_MS = 5
/** With several rules of which one has a unit: the cost, in place of COST, which is too short. */
export const QUANTITY = 7

/** LIMIT of a request without a limit of its own. */
export const RULE_LIMIT = 0
/** LIMIT of a request whose limit is 0. */
const NOTHING = -1
/** `Infinity`, in LIMIT and REMAINING. */
const UNLIMITED = 0x7fffffff

/** The word of LIMIT for the limit of a request. */
export function wordOfLimit(limit: number | undefined): number {
  if (limit === undefined) return RULE_LIMIT
  return limit === 0 ? NOTHING : wordOfUnits(limit)
}

/** The limit of a request by the word of LIMIT. */
export function limitOfWord(word: number): number | undefined {
  if (word === RULE_LIMIT) return undefined
  return word === NOTHING ? 0 : unitsOfWord(word)
}

/** The word of LIMIT and REMAINING for a limit of a decision, and for what is left of it. */
export const wordOfUnits = (units: number): number => (units === Number.POSITIVE_INFINITY ? UNLIMITED : units)

export const unitsOfWord = (word: number): number => (word === UNLIMITED ? Number.POSITIVE_INFINITY : word)

/** The index of the request that belongs to a slot, in words. */
export const requestOf = (slot: number): number =>
  REQUESTS_AT + ((slot - SLOTS_AT) >> (SLOT_BITS - REQUEST_BITS))

/** The operations that a client can request. */
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
  /** Adds the decisions that the worker has counted to the shared statistics. */
  FLUSH: 10,
  BATCH: 11,
  /** CHECK by the limit in the slot. The addon leaves it to TypeScript. */
  CHECK_WITHIN: 12,
  CLEAR_ALL: 13,
  /** A CHECK for `wait`, by the limit in the slot or RULE_LIMIT. Its refusal is never charged. */
  ATTEMPT: 14,
  /** Charges, without a decision, what its cost is above that in NUMBER. */
  CHARGE_MORE: 15,
} as const
export type Op = (typeof Op)[keyof typeof Op]
