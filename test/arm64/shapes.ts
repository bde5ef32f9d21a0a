/**
 * Two threads, two words x and y that start at 0, and an outcome that no interleaving of the two programs gives: where
 * it is seen, something reordered them. Each side says what it read, 0 or 1.
 *
 *     store buffering    x = 1; read y      | y = 1; read x      both read 0
 *     message passing    x = 1; y = 1       | read y; read x     y was 1, x was 0
 *     load buffering     read x; y = 1      | read y; x = 1      both read 1
 *
 * In each, `x` and `y` are indices into `words`; what the second side read first is in bit 1 of what it says.
 */
export type Side = (words: Int32Array, x: number, y: number) => number

export interface Shape {
  readonly name: string
  readonly sides: readonly [Side, Side]
  isReordered(first: number, second: number): boolean
  /** Whether a machine that keeps JavaScript's promises may show it. */
  readonly allowed: boolean
}

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
    allowed: true,
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
]
