import { add, load, type Words } from './words.js'

/** Adds to a counter of two words, the low one first. Any thread, at any time; nothing is lost at 2^32. */
export function count(words: Words, index: number, amount: number): void {
  const before = add(words, index, amount | 0) >>> 0
  if (before + amount >= 2 ** 32) add(words, index + 1, 1)
}

/** What a counter of two words stands at; while one is being added to across 2^32, it may be read that much too low. */
export function readCounter(words: Words, index: number): number {
  for (;;) {
    const high = load(words, index + 1) >>> 0
    const low = load(words, index) >>> 0
    if (load(words, index + 1) >>> 0 === high) return high * 2 ** 32 + low
  }
}
