import { createHash } from 'node:crypto'
import { MillraceError } from '../core/errors.js'

/** A longer name is replaced by its SHA-256. In UTF-16 code units. */
const LONGEST_NAME = 64

/**
 * A key's name on Redis: `mr:1:PREFIX:{KEY}:RULE`. A Cluster places a key by the part in braces, so all rules of
 * one key are on one node. A part has no braces of its own: they are written as `%7B` and `%7D`, `%` as `%25`.
 * A part that is long, or no well-formed text, is `%h` and the SHA-256 of its UTF-16 code units: `%h` is in no
 * other part.
 */
export class KeyNames {
  readonly #prefix: string
  readonly #tails: readonly string[]

  constructor(prefix: string, rules: readonly string[]) {
    this.#prefix = prefix
    this.#tails = rules.map((rule) => `}:${partOf(rule)}`)
  }

  /** The part in braces, which all names of a key have. */
  tagOf(key: string): string {
    return partOf(key)
  }

  /** The names of a key, one for each rule. */
  of(key: string): string[] {
    const subject = `mr:1:${this.#prefix}:{${this.tagOf(key)}`
    return this.#tails.map((tail) => subject + tail)
  }

  /** A name with the prefix that no key has. */
  get unused(): string {
    return `mr:1:${this.#prefix}:{%}:`
  }

  /** The pattern of `SCAN` that all names match. */
  get pattern(): string {
    // What else is in the pattern's alphabet is matched as it stands.
    return `mr:1:${this.#prefix.replace(/[\\*?[\]^]/g, '\\$&')}:{*`
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkPrefix(prefix: unknown): asserts prefix is string {
  if (typeof prefix === 'string' && /^[^{}\0]{1,64}$/.test(prefix) && prefix.isWellFormed()) return
  const expected = '1 to 64 characters without braces and NUL'
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'prefix', prefix, expected)
}

const SPECIAL = /[{}%]/g
const escaped = (character: string): string => (character === '{' ? '%7B' : character === '}' ? '%7D' : '%25')

function partOf(name: string): string {
  if (name.length > LONGEST_NAME || !name.isWellFormed())
    return `%h${createHash('sha256').update(name, 'utf16le').digest('base64url')}`
  return /[{}%]/.test(name) ? name.replace(SPECIAL, escaped) : name
}
