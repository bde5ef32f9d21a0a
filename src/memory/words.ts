/**
 * Every operation on shared memory of `memory/` and `algorithms/`, one word each. They go through this one module so
 * that a test can put another in its place and explore a decision step by step; the compiler inlines them, so it
 * costs nothing (`npm run bench -- --case words`).
 *
 * `load`, `compareExchange`, `store` and `add` are sequentially consistent. `read` and `write` are plain: another
 * thread's write may be seen late, so each use says why that is harmless. What stands after a `load` (or a
 * `compareExchange`) in the program happens after it, plain reads too: it is an acquire on every machine.
 */
export type Words = Int32Array

const KEEPS_ORDER = process.arch === 'x64'

export function load(words: Words, index: number): number {
  return Atomics.load(words, index)
}

/** Puts `next` where `expected` stands. Returns what stood there: `expected` if and only if it was replaced. */
export function compareExchange(words: Words, index: number, expected: number, next: number): number {
  return Atomics.compareExchange(words, index, expected, next)
}

export function store(words: Words, index: number, value: number): void {
  Atomics.store(words, index, value)
}

/** Adds with wrap-around. Returns what stood there before. */
export function add(words: Words, index: number, value: number): number {
  return Atomics.add(words, index, value)
}

export function read(words: Words, index: number): number {
  return words[index]!
}

/**
 * A read that nothing after it overtakes. On x64 a plain one is enough: the processor keeps reads in order, and V8 keeps
 * them on their side of an atomic operation, which is a call: `test/memory/words-order.test.ts` looks, on each Node.js that the tests run on.
 * Elsewhere it takes an atomic load.
 */
export function readInOrder(words: Words, index: number): number {
  return KEEPS_ORDER ? words[index]! : Atomics.load(words, index)
}

export function write(words: Words, index: number, value: number): void {
  words[index] = value
}

/** Ends what waits on this word in any thread; of no effect where it is the memory of a file. */
export function notify(words: Words, index: number): void {
  Atomics.notify(words, index)
}

/**
 * Whether `value` still stands there, after all reads before this. An atomic load lets plain reads before it be late on machines
 * that reorder reads: there it takes a compare-exchange, which changes nothing.
 */
export function isStill(words: Words, index: number, value: number): boolean {
  if (KEEPS_ORDER) return Atomics.load(words, index) === value
  return Atomics.compareExchange(words, index, value, value) === value
}
