import type { RemoteRule } from './remote-rule.js'
import type { Operation } from './remote-store.js'

/** One call of a `CountingStore`. */
export interface CountingCall {
  readonly op: Operation
  /** A test's time in milliseconds; 0: that of the store. */
  readonly timeMs: number
  readonly rules: readonly RemoteRule[]
  /** The limits of the call in units, where it has some. */
  readonly limits: readonly (number | undefined)[] | undefined
  /** For each key its name in each rule. */
  readonly names: readonly string[]
  /** For each name the cost, in units. For `block` and `usage`: milliseconds. */
  readonly costs: readonly number[]
  /** Further arguments of the operation. */
  readonly more: readonly string[]
}
