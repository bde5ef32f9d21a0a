import { SHAPES } from './shapes.js'

/** Rounds between two clearings of the words. Each round has its own x and y, on separate cache lines. */
const ROUNDS = 1_024
const WORDS_PER_LINE = 16
const WORDS_PER_ROUND = 2 * WORDS_PER_LINE
/** The most iterations of an empty loop before a round, so that either side may be a little late. */
const MAX_DELAY = 24

const SIDES = 2
/** The most iterations of waiting for the other side between two clearings. */
const MAX_SPINS = 200_000

/** The shared memory of a litmus test. */
export interface LitmusMemory {
  /** The number of meetings that each side has reached. */
  readonly arrived: Int32Array
  readonly words: Int32Array
  /** The result of each side in each round. */
  readonly results: Int32Array
  /** 1 when the test has ended. */
  readonly over: Int32Array
}

export function makeMemory(): LitmusMemory {
  const shared = (words: number) => new Int32Array(new SharedArrayBuffer(4 * words))
  return {
    arrived: shared(SIDES * WORDS_PER_LINE),
    words: shared(ROUNDS * WORDS_PER_ROUND),
    results: shared(SIDES * ROUNDS),
    over: shared(1),
  }
}

export interface Observed {
  /** Rounds that both sides started together. */
  readonly rounds: number
  readonly reordered: number
}

/**
 * Runs one side of a shape, round after round, until `isOver` of the first side returns true. The sides start
 * each round together if they can. If the other side is late (it may need this processor), this side does not
 * wait in the remaining rounds up to the next clearing.
 */
export function play(
  memory: LitmusMemory,
  shape: number,
  side: number,
  isOver: (rounds: number) => boolean,
): Observed {
  const { words, results, over } = memory
  const { sides, isReordered } = SHAPES[shape]!
  const act = sides[side]!
  let rounds = 0
  let reordered = 0
  for (let met = 0; ; ) {
    let spins = MAX_SPINS
    let together = 0
    for (let round = 0; round < ROUNDS; round++) {
      const x = round * WORDS_PER_ROUND
      spins = meet(memory, side, ++met, spins)
      if (Atomics.load(memory.arrived, (1 - side) * WORDS_PER_LINE) === met) together++
      for (let i = (met * (side + 3)) % MAX_DELAY; i > 0; i--);
      results[side * ROUNDS + round] = act(words, x, x + WORDS_PER_LINE)
    }
    meetAsleep(memory, side, ++met)
    if (side === 0) {
      for (let round = 0; round < ROUNDS; round++) {
        if (isReordered(results[round]!, results[ROUNDS + round]!)) reordered++
      }
      rounds += together
      words.fill(0)
      if (isOver(rounds)) Atomics.store(over, 0, 1)
    }
    meetAsleep(memory, side, ++met)
    if (Atomics.load(over, 0) === 1) return { rounds, reordered }
  }
}

/** Waits for the other side for at most `spins` iterations. Returns the rest: 0 if it did not come. */
function meet({ arrived }: LitmusMemory, side: number, met: number, spins: number): number {
  Atomics.add(arrived, side * WORDS_PER_LINE, 1)
  let left = spins
  while (left > 0 && Atomics.load(arrived, (1 - side) * WORDS_PER_LINE) < met) left--
  return left
}

/**
 * Waits for the other side: first spinning, then asleep. It spins first because a woken thread often gets the
 * processor of the thread that woke it, so that the two would alternate.
 */
function meetAsleep(memory: LitmusMemory, side: number, met: number): void {
  const { arrived } = memory
  const other = (1 - side) * WORDS_PER_LINE
  const left = meet(memory, side, met, MAX_SPINS)
  Atomics.notify(arrived, side * WORDS_PER_LINE)
  if (left > 0) return
  for (let theirs = Atomics.load(arrived, other); theirs < met; theirs = Atomics.load(arrived, other)) {
    Atomics.wait(arrived, other, theirs)
  }
}
