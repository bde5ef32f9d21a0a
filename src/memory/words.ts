/**
 * Every operation of `memory/`, `algorithms/` and `range-sum/` on shared memory. Each operates on one word. A
 * test replaces this module to run a decision step by step. V8 inlines the functions, so they cost nothing
 * (`npm run bench -- --case words`).
 *
 * `load`, `compareExchange`, `store` and `add` are sequentially consistent. `read` and `write` are plain: a
 * plain read may return an old value, so each use says why that is harmless. What follows a `load` or a
 * `compareExchange` in the program happens after it, plain reads too: both acquire on every machine.
 */
export type Words = Int32Array

const KEEPS_ORDER = process.arch === 'x64'

export function load(words: Words, index: number): number {
  return Atomics.load(words, index)
}

/**
 * Replaces `expected` by `next`. Returns the old value, which is `expected` if and only if it was replaced.
 */
export function compareExchange(words: Words, index: number, expected: number, next: number): number {
  return Atomics.compareExchange(words, index, expected, next)
}

/**
 * The 64 bits of two words, the first of them at an even index. Both change together.
 */
export function loadPair(words: Words, index: number): bigint {
  return Atomics.load(pairs(words), index / 2)
}

/** Replaces 64 bits as {@link compareExchange} does. */
export function compareExchangePair(words: Words, index: number, expected: bigint, next: bigint): bigint {
  return Atomics.compareExchange(pairs(words), index / 2, expected, next)
}

/** Those of a header. */
const pairs = ({ buffer, byteOffset }: Words): BigInt64Array => new BigInt64Array(buffer, byteOffset, 64)

export function store(words: Words, index: number, value: number): void {
  Atomics.store(words, index, value)
}

/** Adds with wrap-around. Returns the old value. */
export function add(words: Words, index: number, value: number): number {
  return Atomics.add(words, index, value)
}

export function read(words: Words, index: number): number {
  return words[index]!
}

/**
 * A read that no later operation overtakes. On x64 a plain read is enough. The processor keeps reads in
 * order, and V8 does not move a read past an atomic operation, which is a call:
 * `test/memory/words-order.test.ts` checks this on each Node.js that the tests run on. Other machines need an
 * atomic load.
 */
export function readInOrder(words: Words, index: number): number {
  return KEEPS_ORDER ? words[index]! : Atomics.load(words, index)
}

export function write(words: Words, index: number, value: number): void {
  words[index] = value
}

/** Wakes all waits on this word, in any thread. Has no effect on the memory of a file. */
export function notify(words: Words, index: number): void {
  Atomics.notify(words, index)
}

/**
 * Whether the word still has this value, after all earlier reads. An atomic load does not hold back the plain
 * reads before it on machines that reorder reads. There it takes a compare-exchange, which changes nothing.
 */
export function isStill(words: Words, index: number, value: number): boolean {
  if (KEEPS_ORDER) return Atomics.load(words, index) === value
  return Atomics.compareExchange(words, index, value, value) === value
}
