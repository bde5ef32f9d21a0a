/**
 * The name of a file's rule, as the header holds it: a digest of the whole name, which is compared, and the
 * start of its text, for error messages.
 */
import { createHash } from 'node:crypto'
import { HEADER, RULE_DIGEST_WORDS, RULE_NAME_WORDS } from '../memory/layout.js'
import { textIn, writeText } from '../memory/text.js'
import { read, type Words, write } from '../memory/words.js'

export function writeRuleName(header: Words, name: string): void {
  writeText(header, HEADER.RULE_NAME, RULE_NAME_WORDS, name)
  write(header, HEADER.RULE_NAME_BYTES, Buffer.byteLength(name))
  for (const [i, word] of digestOf(name).entries()) write(header, HEADER.RULE_DIGEST + i, word)
}

/** The reads are plain: the name is written before the file gets its own path, and never after. */
export function isRuleName(words: Words, name: string): boolean {
  return digestOf(name).every((word, i) => read(words, HEADER.RULE_DIGEST + i) === word)
}

/** The name on one line, in quotes. A long name is cut. */
export function ruleNameIn(words: Words): string {
  const text = textIn(words, HEADER.RULE_NAME, RULE_NAME_WORDS)
  const isCut = read(words, HEADER.RULE_NAME_BYTES) > 4 * RULE_NAME_WORDS
  return quoted(isCut ? `${text}…` : text)
}

const MAX_NAME_CHARACTERS = 60

export function quoted(name: string): string {
  const shown = name.length > MAX_NAME_CHARACTERS ? `${name.slice(0, MAX_NAME_CHARACTERS)}…` : name
  return `'${JSON.stringify(shown).slice(1, -1)}'`
}

/** The digest of the name in UTF-16: in UTF-8, all lone surrogates would be the same. */
function digestOf(name: string): Int32Array {
  const digest = createHash('sha256').update(Buffer.from(name, 'utf16le')).digest()
  return Int32Array.from({ length: RULE_DIGEST_WORDS }, (_, i) => digest.readInt32LE(4 * i))
}
