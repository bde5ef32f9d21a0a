import { SHAPES } from './shapes.js'

/** Rounds between two clearings; each has its own x and y, on cache lines of their own. */
const ROUNDS = 1_024
const WORDS_A_LINE = 16
const WORDS_A_ROUND = 2 * WORDS_A_LINE
/** Turns of an empty loop, at most: one side comes a little later than the other, now this one, now that. */
const MOST_DELAY = 24

const SIDES = 2
/** Turns of waiting for the other side, from one clearing to the next. */
const MOST_SPINS = 200_000

/** What both threads of a litmus test see. */
export interface Ground {
  /** How many rounds each side has come to. */
  readonly arrived: Int32Array
  readonly words: Int32Array
  /** What each side said in each round. */
  readonly said: Int32Array
  /** 1 when it is over. */
  readonly over: Int32Array
}

export function makeGround(): Ground {
  const shared = (words: number) => new Int32Array(new SharedArrayBuffer(4 * words))
  return {
    arrived: shared(SIDES * WORDS_A_LINE),
    words: shared(ROUNDS * WORDS_A_ROUND),
    said: shared(SIDES * ROUNDS),
    over: shared(1),
  }
}

export interface Seen {
  /** Those on which both sides set out together. */
  readonly rounds: number
  readonly reordered: number
}

/**
 * One side of a shape, round after round beside the other, until the first side finds that it is over. Both set out on
 * each round together where they can; where the other keeps this one waiting (it may need this very processor), the rest
 * of the rounds up to the next clearing are let go.
 */
export function play(ground: Ground, shape: number, side: number, isOver: (rounds: number) => boolean): Seen {
  const { words, said, over } = ground
  const { sides, isReordered } = SHAPES[shape]!
  const act = sides[side]!
  let rounds = 0
  let reordered = 0
  for (let met = 0; ; ) {
    let spins = MOST_SPINS
    let together = 0
    for (let round = 0; round < ROUNDS; round++) {
      const x = round * WORDS_A_ROUND
      spins = meet(ground, side, ++met, spins)
      if (Atomics.load(ground.arrived, (1 - side) * WORDS_A_LINE) === met) together++
      for (let i = (met * (side + 3)) % MOST_DELAY; i > 0; i--);
      said[side * ROUNDS + round] = act(words, x, x + WORDS_A_LINE)
    }
    meetForSure(ground, side, ++met)
    if (side === 0) {
      for (let round = 0; round < ROUNDS; round++) {
        if (isReordered(said[round]!, said[ROUNDS + round]!)) reordered++
      }
      rounds += together
      words.fill(0)
      if (isOver(rounds)) Atomics.store(over, 0, 1)
    }
    meetForSure(ground, side, ++met)
    if (Atomics.load(over, 0) === 1) return { rounds, reordered }
  }
}

/** Waits for the other side for at most so many turns. Returns how many are left: 0 where it did not come. */
function meet({ arrived }: Ground, side: number, met: number, spins: number): number {
  Atomics.add(arrived, side * WORDS_A_LINE, 1)
  let left = spins
  while (left > 0 && Atomics.load(arrived, (1 - side) * WORDS_A_LINE) < met) left--
  return left
}

/**
 * Waits for the other side, in the end asleep. Not at once: who is woken is often put on the processor of who woke it, and
 * then they take turns.
 */
function meetForSure(ground: Ground, side: number, met: number): void {
  const { arrived } = ground
  const other = (1 - side) * WORDS_A_LINE
  const left = meet(ground, side, met, MOST_SPINS)
  Atomics.notify(arrived, side * WORDS_A_LINE)
  if (left > 0) return
  for (let theirs = Atomics.load(arrived, other); theirs < met; theirs = Atomics.load(arrived, other)) {
    Atomics.wait(arrived, other, theirs)
  }
}
