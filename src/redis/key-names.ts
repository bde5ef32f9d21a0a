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
export function keyNames(prefix: string, rules: readonly string[]): (key: string) => string[] {
  const head = `mr:1:${prefix}:{`
  const tails = rules.map((rule) => `}:${partOf(rule)}`)
  return (key) => {
    const subject = head + partOf(key)
    return tails.map((tail) => subject + tail)
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
