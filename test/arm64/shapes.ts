import { readInOrder } from '#millrace/memory/words.js'

/**
 * Two threads, two words x and y that start at 0, and an outcome that no interleaving of the two programs gives: where
 * it is seen, something reordered them. Each side says what it read, 0 or 1.
 *
 *     store buffering    x = 1; read y      | y = 1; read x      both read 0
 *     message passing    x = 1; y = 1       | read y; read x     y was 1, x was 0
 *     load buffering     read x; y = 1      | read y; x = 1      both read 1
 *
 * In each, `x` and `y` are indices into `words`; what the second side read first is in bit 1 of what it says. The words behind each,
 * up to the end of its cache line, are its side's own.
 *
 * `readInOrder` and the attempt at a decision (`algorithms/sliding-window.ts`) read plainly beside atomic operations. On x64 the processor
 * reorders none of that, so what is seen there was reordered by the compiler: V8 moved a plain read to the other side of an
 * atomic operation, or took the value of an earlier one for it.
 */
export type Side = (words: Int32Array, x: number, y: number) => number

export interface Shape {
  readonly name: string
  readonly sides: readonly [Side, Side]
  isReordered(first: number, second: number): boolean
  /** Whether this machine may show it, with a compiler that keeps JavaScript's promises and those that `readInOrder` rests on. */
  readonly allowed: boolean
}

const isX64 = process.arch === 'x64'

const bothReadZero = (first: number, second: number): boolean => first === 0 && second === 0
const bothReadOne = (first: number, second: number): boolean => first === 1 && second === 1
const flagWithoutMessage = (_: number, second: number): boolean => second === 2

export const SHAPES: readonly Shape[] = [
  {
    name: 'store buffering, plain',
    allowed: true,
    isReordered: bothReadZero,
    sides: [
      (words, x, y) => {
        words[x] = 1
        return words[y]!
      },
      (words, x, y) => {
        words[y] = 1
        return words[x]!
      },
    ],
  },
  {
    name: 'store buffering, compare-exchange and plain read',
    allowed: !isX64,
    isReordered: bothReadZero,
    sides: [
      (words, x, y) => {
        Atomics.compareExchange(words, x, 0, 1)
        return words[y]!
      },
      (words, x, y) => {
        Atomics.compareExchange(words, y, 0, 1)
        return words[x]!
      },
    ],
  },
  {
    name: 'store buffering, atomic',
    allowed: false,
    isReordered: bothReadZero,
    sides: [
      (words, x, y) => {
        Atomics.store(words, x, 1)
        return Atomics.load(words, y)
      },
      (words, x, y) => {
        Atomics.store(words, y, 1)
        return Atomics.load(words, x)
      },
    ],
  },
  {
    name: 'store buffering, compare-exchange and atomic load',
    allowed: false,
    isReordered: bothReadZero,
    sides: [
      (words, x, y) => {
        Atomics.compareExchange(words, x, 0, 1)
        return Atomics.load(words, y)
      },
      (words, x, y) => {
        Atomics.compareExchange(words, y, 0, 1)
        return Atomics.load(words, x)
      },
    ],
  },
  {
    name: 'message passing, plain',
    allowed: true,
    isReordered: flagWithoutMessage,
    sides: [
      (words, x, y) => {
        words[x] = 1
        words[y] = 1
        return 0
      },
      (words, x, y) => {
        const flag = words[y]!
        return 2 * flag + words[x]!
      },
    ],
  },
  {
    name: 'message passing, plain message and atomic flag',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      (words, x, y) => {
        words[x] = 1
        Atomics.store(words, y, 1)
        return 0
      },
      (words, x, y) => {
        const flag = Atomics.load(words, y)
        return 2 * flag + words[x]!
      },
    ],
  },
  {
    name: 'message passing, atomic',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      (words, x, y) => {
        Atomics.store(words, x, 1)
        Atomics.store(words, y, 1)
        return 0
      },
      (words, x, y) => {
        const flag = Atomics.load(words, y)
        return 2 * flag + Atomics.load(words, x)
      },
    ],
  },
  {
    name: 'load buffering, plain',
    allowed: true,
    isReordered: bothReadOne,
    sides: [
      (words, x, y) => {
        const seen = words[x]!
        words[y] = 1
        return seen
      },
      (words, x, y) => {
        const seen = words[y]!
        words[x] = 1
        return seen
      },
    ],
  },
  {
    name: 'load buffering, atomic',
    allowed: false,
    isReordered: bothReadOne,
    sides: [
      (words, x, y) => {
        const seen = Atomics.load(words, x)
        Atomics.store(words, y, 1)
        return seen
      },
      (words, x, y) => {
        const seen = Atomics.load(words, y)
        Atomics.store(words, x, 1)
        return seen
      },
    ],
  },
  {
    name: 'message passing, compare-exchanges and readInOrder',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      (words, x, y) => {
        Atomics.compareExchange(words, x, 0, 1)
        Atomics.compareExchange(words, y, 0, 1)
        return 0
      },
      (words, x, y) => {
        const flag = readInOrder(words, y)
        return 2 * flag + words[x]!
      },
    ],
  },
  {
    name: 'message passing, a word read plainly before readInOrder, and again after a compare-exchange',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      (words, x, y) => {
        Atomics.compareExchange(words, x, 0, 1)
        Atomics.compareExchange(words, y, 0, 1)
        return 0
      },
      (words, x, y) => {
        const before = words[x]!
        const flag = readInOrder(words, y)
        Atomics.compareExchange(words, y + 1, 0, 1)
        const after = words[x]!
        return before > after ? 2 : 2 * flag + after
      },
    ],
  },
  {
    name: 'store buffering, a word read plainly before a compare-exchange, and again after it',
    allowed: !isX64,
    isReordered: bothReadZero,
    sides: [
      (words, x, y) => {
        const before = words[y]!
        Atomics.compareExchange(words, x, 0, 1)
        const after = words[y]!
        return before | after
      },
      (words, x, y) => {
        const before = words[x]!
        Atomics.compareExchange(words, y, 0, 1)
        const after = words[x]!
        return before | after
      },
    ],
  },
  {
    name: 'load buffering, plain reads before compare-exchanges',
    allowed: !isX64,
    isReordered: bothReadOne,
    sides: [
      (words, x, y) => {
        const seen = words[x]!
        Atomics.compareExchange(words, y, 0, 1)
        return seen
      },
      (words, x, y) => {
        const seen = words[y]!
        Atomics.compareExchange(words, x, 0, 1)
        return seen
      },
    ],
  },
]
