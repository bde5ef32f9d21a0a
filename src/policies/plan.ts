// What the number says that stands for the plan of a key: by which limiter and which limits the key counts. It is a
// number because a table has one for each key.
import { isUncounted } from '../core/uncounted-limit.js'

/** The number of a key whose policy is not known. */
export const UNKNOWN = -1
/** The plan of keys without a policy: the first member, by its own limits. */
export const DEFAULT_PLAN = 0

/** The index of a member stands above, the value of the limits below: of one rule the limit, of several the index of a list. */
const VALUE_BITS = 24
/** The largest value. */
export const MOST_VALUE = 2 ** VALUE_BITS - 1
/** As many indices of members as a plan has room for. */
export const MOST_WINDOWS = 64

/** The value that stands for the limits of the member itself. */
export const OF_MEMBER = 0
/** The values of the limits that need no count: above all others. */
const OF_ZERO = MOST_VALUE - 1
const OF_INFINITY = MOST_VALUE

export const isKnown = (plan: number): boolean => plan >= 0
export const planFrom = (member: number, value: number): number => member * 2 ** VALUE_BITS + value
export const memberIn = (plan: number): number => plan >>> VALUE_BITS
export const valueIn = (plan: number): number => plan & MOST_VALUE

/** The value of a plan of one rule. */
export const valueOfLimit = (limit: number): number =>
  isUncounted(limit) ? (limit === 0 ? OF_ZERO : OF_INFINITY) : limit

/** Whether the value of a plan of one rule is its limit. */
export const isOwnValue = (value: number): boolean => value < OF_ZERO

/** The limit of a plan of one rule. */
export const limitOfValue = (value: number): number =>
  isOwnValue(value) ? value : value === OF_ZERO ? 0 : Number.POSITIVE_INFINITY
