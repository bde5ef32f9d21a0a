import { createHash } from 'node:crypto'
import { MillraceError } from '../core/errors.js'

/** The longest key of Millrace is 65,536 characters. One more is for the mark. */
const MOST_CHARACTERS = 65_535
/** Begins every key that is not taken as it is. */
const MARK = '\0'

/**
 * The key of Millrace for a key of another package, which may be empty, of any length, or no string: a header
 * that is missing is `undefined`. Different keys stay different; a key of more than 65,535 characters is taken
 * by its SHA-256.
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_KEY` for an object, a function or a symbol
 */
export function keyOf(key: unknown): string {
  if (typeof key !== 'string') return keyOfValue(key)
  if (key.length > MOST_CHARACTERS)
    return `${MARK}#${createHash('sha256').update(key, 'utf16le').digest('hex')}`
  const first = key.charCodeAt(0) // NaN for an empty key
  return first > 0 ? key : MARK + key
}

/** The types of keys beside strings, by letters that no other mark has. */
const LETTERS: Readonly<Record<string, string>> = { number: 'n', bigint: 'i', boolean: 'b', undefined: 'u' }

function keyOfValue(key: unknown): string {
  const letter = key === null ? 'z' : LETTERS[typeof key]
  if (letter !== undefined) return `${MARK}${letter}${String(key)}`
  throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'key', key, 'a string or a number')
}
