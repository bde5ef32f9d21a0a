/**
 * The name of a file's rule, as the header holds it: a digest of the whole name, which is compared, and the
 * start of its text, for error messages.
 */
import { createHash } from 'node:crypto'
import { HEADER, RULE_DIGEST_WORDS, RULE_NAME_WORDS } from '../memory/layout.js'
import { read, type Words, write } from '../memory/words.js'

export function writeRuleName(header: Words, name: string): void {
  const text = new Int32Array(RULE_NAME_WORDS)
  new TextEncoder().encodeInto(name, new Uint8Array(text.buffer)) // whole characters only; the rest stays 0
  writeAll(header, HEADER.RULE_NAME, text)
  write(header, HEADER.RULE_NAME_BYTES, Buffer.byteLength(name))
  writeAll(header, HEADER.RULE_DIGEST, digestOf(name))
}

/** The reads are plain: the name is written before the file gets its own path, and never after. */
export function isRuleName(words: Words, name: string): boolean {
  return digestOf(name).every((word, i) => read(words, HEADER.RULE_DIGEST + i) === word)
}

/** The name on one line, in quotes. A long name is cut. */
export function ruleNameIn(words: Words): string {
  const bytes = new Uint8Array(words.slice(HEADER.RULE_NAME, HEADER.RULE_NAME + RULE_NAME_WORDS).buffer)
  const end = bytes.indexOf(0)
  const text = new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
  const isCut = read(words, HEADER.RULE_NAME_BYTES) > 4 * RULE_NAME_WORDS
  return quoted(isCut ? `${text}…` : text)
}

const MAX_NAME_CHARACTERS = 60

export function quoted(name: string): string {
  const shown = name.length > MAX_NAME_CHARACTERS ? `${name.slice(0, MAX_NAME_CHARACTERS)}…` : name
  return `'${JSON.stringify(shown).slice(1, -1)}'`
}

function writeAll(header: Words, at: number, values: Int32Array): void {
  for (const [i, value] of values.entries()) write(header, at + i, value)
}

/** The digest of the name in UTF-16: in UTF-8, all lone surrogates would be the same. */
function digestOf(name: string): Int32Array {
  const digest = createHash('sha256').update(Buffer.from(name, 'utf16le')).digest()
  return Int32Array.from({ length: RULE_DIGEST_WORDS }, (_, i) => digest.readInt32LE(4 * i))
}
