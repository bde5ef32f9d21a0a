// Numbers of the replies of stores, which scripts write, too.

/** Above the milliseconds of a birth is the count of refunds. */
export const BIRTH_RANGE_MS = 2 ** 43
/** A value of which something was refunded by key, or that was cleared, has 1 to 31 refunds, in turn. */
export const REFUNDS = 31
/**
 * Numbers in the reply for each rule: verdict, remaining, retry, reset, mark, birth. Of an admission the script of packed
 * values gives four: remaining, reset, mark, birth. They are most replies, and each number costs client and server.
 */
export const REPLY_FIELDS = 6
export const REFUSED_FIELDS = REPLY_FIELDS
export const ADMITTED_FIELDS = 4

/** Numbers in the reply to a change, for each rule: see `ChangedPart`. */
export const CHANGED_FIELDS = 5

/** What a rule says of a request. No reply of four numbers begins with a negative one. */
export const Verdict = { REFUSED: -5, ADMITTED: 1, SHADOWED: -6 } as const

/** In place of a mark: nothing was charged; or it was refused because the key is blocked. */
export const NO_MARK = { NOTHING: -1, BLOCKED: -2 } as const

/** A key in the reply that could not be decided: why. */
export const KEY_FAULT = { VERSION: -1, SHAPE: -2, CUT: -3, TYPE: -4, TIME: -8 } as const
export const isFault = (first: number): boolean =>
  (first < 0 && first >= KEY_FAULT.TYPE) || first === KEY_FAULT.TIME
