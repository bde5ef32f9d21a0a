import { again } from '../core/tries.js'
import { add, load, type Words } from './words.js'

/**
 * Adds to a 64-bit counter of two words, the low one first; below 0 it subtracts. Threads may add at the same
 * time.
 */
export function count(words: Words, index: number, amount: number): void {
  const before = add(words, index, amount | 0) >>> 0
  if (before + amount >= 2 ** 32) add(words, index + 1, 1)
  else if (before + amount < 0) add(words, index + 1, -1)
}

/**
 * Reads a 64-bit counter. During an addition across 2^32, the result may be too low by 2^32, and during a
 * subtraction across it too high. A counter below 0, from which a thread has subtracted before another one
 * has added, reads as 0.
 */
export function readCounter(words: Words, index: number): number {
  for (let tries = 0; ; tries = again(tries)) {
    const high = load(words, index + 1)
    const low = load(words, index) >>> 0
    if (load(words, index + 1) === high) return Math.max(0, high * 2 ** 32 + low)
  }
}
