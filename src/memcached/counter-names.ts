import { createHash } from 'node:crypto'
import { KeyNames } from '../remote/key-names.js'

/** Memcached takes keys of 250 bytes. The rest is for a window and its index, which have up to 11 and 16 digits. */
const LONGEST_BYTES = 220
const FIT = new RegExp(`^[!-~]{1,${LONGEST_BYTES}}$`)

/**
 * Names of keys on Memcached: `mr:1:PREFIX:{KEY}:RULE:WINDOW_MS:INDEX` is the counter of one fixed window, and
 * `mr:1:PREFIX:{KEY}:RULE:block` the block, under the name of the first rule. What stands before the window is
 * `mr:1:%h` and its SHA-256 if it is long, or has a space, a control character or a character beyond ASCII. No other
 * name begins with that: `%h` is in braces elsewhere.
 */
export class CounterNames {
  readonly #names: KeyNames

  constructor(prefix: string, rules: readonly string[]) {
    this.#names = new KeyNames(prefix, rules)
  }

  /** What the names of a key begin with, one for each rule. */
  of(key: string): string[] {
    return this.#names.of(key).map(fitting)
  }
}

/** The name of the counter of a window. */
export const counterName = (name: string, windowMs: number, index: number): string =>
  `${name}:${windowMs}:${index}`

/** The name of a key's block. */
export const blockName = (name: string): string => `${name}:block`

function fitting(name: string): string {
  if (FIT.test(name)) return name
  return `mr:1:%h${createHash('sha256').update(name).digest('base64url')}`
}
