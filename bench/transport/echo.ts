/**
 * What travels in the case `transport`, by either way: a request of 8 words and an answer of 12, as the pool's are, but
 * nothing is decided. The answer says the words of the request, and the first four of them again.
 */
import type { RingMemory } from '#millrace/engines/ring-transport.js'

export const REQUEST_WORDS = 8
export const ANSWER_WORDS = 12
/** In a slot, which takes both, the answer ends where the slot does, and begins on the last words of the request. */
const ANSWER_AT = 4
/** Of the answer's words where the request begins with 0: 0 to 7, and 0 to 3. */
const SUM_OF_ZERO = 28 + 6

/** One request, until it is answered. */
export class Echo {
  readonly promise: Promise<void>
  readonly length = 1
  readonly #first: number
  #resolve!: () => void
  #reject!: (error: unknown) => void

  constructor(first: number) {
    this.#first = first
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Into a slot. */
  write({ words }: RingMemory, slot: number): void {
    this.writeAt(words, slot)
  }

  /** Out of a slot. */
  read({ words }: RingMemory, slot: number): void {
    this.readAt(words, slot + ANSWER_AT)
  }

  writeAt(words: Int32Array, at: number): void {
    for (let i = 0; i < REQUEST_WORDS; i++) words[at + i] = this.#first + i
  }

  readAt(words: Int32Array, at: number): void {
    let sum = 0
    for (let i = 0; i < ANSWER_WORDS; i++) sum += words[at + i]!
    if (sum === ANSWER_WORDS * this.#first + SUM_OF_ZERO) this.#resolve()
    else this.reject(new Error(`the answer to ${this.#first} is another's`))
  }

  reject(error: unknown): void {
    this.#reject(error)
  }
}

/** Answers in a slot. */
export function answerInSlot(words: Int32Array, slot: number): void {
  const [w0, w1, w2, w3] = [words[slot]!, words[slot + 1]!, words[slot + 2]!, words[slot + 3]!]
  const [w4, w5, w6, w7] = [words[slot + 4]!, words[slot + 5]!, words[slot + 6]!, words[slot + 7]!]
  writeAnswer(words, slot + ANSWER_AT, w0, w1, w2, w3, w4, w5, w6, w7)
}

/** Answers a request that lies in one array into another. */
export function answerAt(requests: Int32Array, from: number, answers: Int32Array, at: number): void {
  const [w0, w1, w2, w3] = [requests[from]!, requests[from + 1]!, requests[from + 2]!, requests[from + 3]!]
  const [w4, w5, w6, w7] = [
    requests[from + 4]!,
    requests[from + 5]!,
    requests[from + 6]!,
    requests[from + 7]!,
  ]
  writeAnswer(answers, at, w0, w1, w2, w3, w4, w5, w6, w7)
}

function writeAnswer(
  words: Int32Array,
  at: number,
  w0: number,
  w1: number,
  w2: number,
  w3: number,
  w4: number,
  w5: number,
  w6: number,
  w7: number,
): void {
  words[at] = w0
  words[at + 1] = w1
  words[at + 2] = w2
  words[at + 3] = w3
  words[at + 4] = w4
  words[at + 5] = w5
  words[at + 6] = w6
  words[at + 7] = w7
  words[at + 8] = w0
  words[at + 9] = w1
  words[at + 10] = w2
  words[at + 11] = w3
}
