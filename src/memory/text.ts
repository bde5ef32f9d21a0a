/** Texts in the header of an arena: UTF-8, then zeros. */
import { read, type Words, write } from './words.js'

/** Writes as many whole characters as fit. */
export function writeText(header: Words, at: number, words: number, text: string): void {
  const own = new Int32Array(words)
  new TextEncoder().encodeInto(text, new Uint8Array(own.buffer)) // the rest stays 0
  for (const [i, word] of own.entries()) write(header, at + i, word)
}

/** The reads are plain: a text is written before others see the arena, and never after. */
export function textIn(header: Words, at: number, words: number): string {
  const own = Int32Array.from({ length: words }, (_, i) => read(header, at + i))
  const bytes = new Uint8Array(own.buffer)
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
}
