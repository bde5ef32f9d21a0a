import { readInOrder } from '#millrace/memory/words.js'

/**
 * A litmus test: two threads, two words x and y that start at 0, and an outcome that no interleaving of the
 * two programs produces. If it occurs, the compiler or the processor reordered accesses. Each side returns
 * the value it read, 0 or 1.
 *
 *     store buffering    x = 1; read y      | y = 1; read x      both read 0
 *     message passing    x = 1; y = 1       | read y; read x     y was 1, x was 0
 *     load buffering     read x; y = 1      | read y; x = 1      both read 1
 *
 * `x` and `y` are indices into `words`. In message passing, bit 1 of the second side's result is the value of
 * y. The words after each, up to the end of its cache line, are private to a side.
 *
 * `readInOrder` and the decision (`algorithms/window/sliding-window.ts`) mix plain reads with atomic operations. An
 * x64 processor does not reorder these. So a reordering on x64 comes from the compiler: V8 moved a plain read
 * across an atomic operation, or reused the value of an earlier read.
 */
export type Side = (words: Int32Array, x: number, y: number) => number

export interface Shape {
  readonly name: string
  readonly sides: readonly [Side, Side]
  isReordered(first: number, second: number): boolean
  /**
   * Whether this machine may produce the outcome, if the compiler follows the rules of JavaScript and of
   * `readInOrder`.
   */
  readonly allowed: boolean
}

const isX64 = process.arch === 'x64'

const bothReadZero = (first: number, second: number): boolean => first === 0 && second === 0
const bothReadOne = (first: number, second: number): boolean => first === 1 && second === 1
const flagWithoutMessage = (_: number, second: number): boolean => second === 2

/** Both sides run the same program, with x and y swapped. */
const mirrored = (program: Side): readonly [Side, Side] => [program, (words, x, y) => program(words, y, x)]

const sendByCompareExchange: Side = (words, x, y) => {
  Atomics.compareExchange(words, x, 0, 1)
  Atomics.compareExchange(words, y, 0, 1)
  return 0
}

export const SHAPES: readonly Shape[] = [
  {
    name: 'store buffering, plain',
    allowed: true,
    isReordered: bothReadZero,
    sides: mirrored((words, x, y) => {
      words[x] = 1
      return words[y]!
    }),
  },
  {
    name: 'store buffering, compare-exchange and plain read',
    allowed: !isX64,
    isReordered: bothReadZero,
    sides: mirrored((words, x, y) => {
      Atomics.compareExchange(words, x, 0, 1)
      return words[y]!
    }),
  },
  {
    name: 'store buffering, atomic',
    allowed: false,
    isReordered: bothReadZero,
    sides: mirrored((words, x, y) => {
      Atomics.store(words, x, 1)
      return Atomics.load(words, y)
    }),
  },
  {
    name: 'store buffering, compare-exchange and atomic load',
    allowed: false,
    isReordered: bothReadZero,
    sides: mirrored((words, x, y) => {
      Atomics.compareExchange(words, x, 0, 1)
      return Atomics.load(words, y)
    }),
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
    sides: mirrored((words, x, y) => {
      const first = words[x]!
      words[y] = 1
      return first
    }),
  },
  {
    name: 'load buffering, atomic',
    allowed: false,
    isReordered: bothReadOne,
    sides: mirrored((words, x, y) => {
      const first = Atomics.load(words, x)
      Atomics.store(words, y, 1)
      return first
    }),
  },
  {
    name: 'message passing, compare-exchanges and readInOrder',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      sendByCompareExchange,
      (words, x, y) => {
        const flag = readInOrder(words, y)
        return 2 * flag + words[x]!
      },
    ],
  },
  {
    name: 'message passing, plain reads before readInOrder and after a compare-exchange',
    allowed: false,
    isReordered: flagWithoutMessage,
    sides: [
      sendByCompareExchange,
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
    name: 'store buffering, plain reads before and after a compare-exchange',
    allowed: !isX64,
    isReordered: bothReadZero,
    sides: mirrored((words, x, y) => {
      const before = words[y]!
      Atomics.compareExchange(words, x, 0, 1)
      const after = words[y]!
      return before | after
    }),
  },
  {
    name: 'load buffering, plain reads before compare-exchanges',
    allowed: !isX64,
    isReordered: bothReadOne,
    sides: mirrored((words, x, y) => {
      const first = words[x]!
      Atomics.compareExchange(words, y, 0, 1)
      return first
    }),
  },
]
