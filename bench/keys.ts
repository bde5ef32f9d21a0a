/**
 * Keys, and the two states that a server's key strings come in.
 *
 * *Made anew*: cut out of a buffer for this decision, as an HTTP parser does it with a header or libuv with an address;
 * flat, one byte a character, and V8 has not hashed it yet. *Cached*: one string kept for each key, in which V8 has left
 * its hash when a Map was filled with it. That Map also finds this very string equal by its address, without a look at
 * the characters: the best case of a Map. Millrace reads the characters of both.
 */

declare global {
  interface Buffer {
    /** What `toString('latin1', start, end)` calls, a tenth cheaper: Node's, undocumented, in every version. */
    latin1Slice(start: number, end: number): string
  }
}

/** Keys look like `user:10000042`: 13 characters, as long as most IPv4 addresses. */
export const KEY_PREFIX = 'user:1'
export const KEY_LENGTH = 13

/** Where a contender's keys come from: `keyAt(i)` is key `i`, whatever a key is there. */
export type KeyAt<Key> = (index: number) => Key

/** Makes the string of a key anew at each call. Keys of other lengths have zeros put before their number. */
export function madeAnew(count: number, length = KEY_LENGTH): KeyAt<string> {
  const text = Buffer.allocUnsafeSlow(count * length)
  for (let i = 0; i < count; i++) {
    text.write(KEY_PREFIX + String(i).padStart(length - KEY_PREFIX.length, '0'), i * length, 'latin1')
  }
  return (index) => text.latin1Slice(index * length, (index + 1) * length)
}

/** Keeps one string for each key; its hash is cached as soon as a Map holds it. */
export function cached(count: number, length = KEY_LENGTH): KeyAt<string> {
  const make = madeAnew(count, length)
  const keys = Array.from({ length: count }, (_, i) => make(i))
  return (index) => keys[index]!
}

/** `length` indices below `count` in an order that looks random and is the same in every process. */
export function randomOrder(count: number, length: number): Int32Array {
  const order = new Int32Array(length)
  let state = 0x9e3779b9
  for (let i = 0; i < length; i++) {
    // xorshift32 (G. Marsaglia, Xorshift RNGs, 2003): its period of 2^32 - 1 is far longer than any order here.
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    order[i] = Math.floor((state >>> 0) * 2 ** -32 * count)
  }
  return order
}

/** Every index once, from 0: the order in which a table is filled. */
export function inOrder(count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => i)
}
