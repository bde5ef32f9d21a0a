// What the texts of a file of policies have in common, as JSON and as YAML.
import type { PolicyDocument } from '../../policy.js'

/** A file of policies, parsed. */
export interface ParsedText {
  /** The documents by their keys, in the order of the file. */
  readonly documents: ReadonlyMap<string, unknown>
  /** The offset in the text of a key, or of what is named within its document, as far as it is there. */
  placeOf(key: string, names: readonly string[]): number
}

/** How policies are written in a text. */
export interface TextFormat {
  readonly name: 'JSON' | 'YAML'
  /** @throws TextFault */
  parse(text: string): ParsedText
  /** The text with these documents instead; undefined: without. All else stays as it is. */
  edit(text: string, changes: ReadonlyMap<string, PolicyDocument | undefined>): string
}

/** A fault of a text, at an offset of it in UTF-16 units. */
export class TextFault extends Error {
  readonly at: number
  readonly found: unknown
  readonly expected: string

  constructor(at: number, found: unknown, expected: string) {
    super(expected)
    this.at = at
    this.found = found
    this.expected = expected
  }
}

/** The line and the column of an offset, both from 1 on. */
export function lineAndColumn(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split(/\r\n|\n|\r/)
  return { line: before.length, column: before.at(-1)!.length + 1 }
}
