/**
 * Keys, in the two forms in which a server has them.
 *
 * A *fresh string* is cut out of a buffer for the decision, as an HTTP parser does for a header and libuv for
 * an address. It is flat, has one byte per character, and V8 has not hashed it yet. A *cached string* is kept
 * per key, and V8 stored its hash in it when a Map was filled. The Map also finds this string equal by its
 * address, without comparing characters: the best case of a Map. Millrace reads the characters of both.
 */

declare global {
  interface Buffer {
    /**
     * The undocumented function of every Node.js version that `toString('latin1', start, end)` calls; a tenth
     * cheaper.
     */
    latin1Slice(start: number, end: number): string
  }
}

/** Keys look like `user:10000042`: 13 characters, as long as most IPv4 addresses. */
export const KEY_PREFIX = 'user:1'
export const KEY_LENGTH = 13

/** A contender's source of keys: `keyAt(i)` is key `i`, a string or a handle. */
export type KeyAt<Key> = (index: number) => Key

/** Creates the string of a key at each call. Longer keys have zeros before their number. */
export function freshKeys(count: number, length = KEY_LENGTH): KeyAt<string> {
  const text = Buffer.allocUnsafeSlow(count * length)
  for (let i = 0; i < count; i++) {
    text.write(KEY_PREFIX + String(i).padStart(length - KEY_PREFIX.length, '0'), i * length, 'latin1')
  }
  return (index) => text.latin1Slice(index * length, (index + 1) * length)
}

/** Keeps one string per key. V8 caches its hash in the string as soon as a Map holds it. */
export function cachedKeys(count: number, length = KEY_LENGTH): KeyAt<string> {
  const make = freshKeys(count, length)
  const keys = Array.from({ length: count }, (_, i) => make(i))
  return (index) => keys[index]!
}

/** `length` indices below `count`, in a pseudo-random order that is the same in every process. */
export function randomOrder(count: number, length: number): Int32Array {
  const order = new Int32Array(length)
  let state = 0x9e3779b9
  for (let i = 0; i < length; i++) {
    // xorshift32 (G. Marsaglia, Xorshift RNGs, 2003): its period is 2^32 - 1, far longer than any order here.
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    order[i] = Math.floor((state >>> 0) * 2 ** -32 * count)
  }
  return order
}

/** Every index below `count` once, in ascending order. */
export function inOrder(count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => i)
}
