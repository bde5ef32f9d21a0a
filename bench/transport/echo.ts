/**
 * What travels in the case `transport`, by either way: a request of 4 words and an answer of 12, as the pool's are, but
 * nothing is decided. The answer says the words of the request three times.
 */

import type { RingMemory } from '#millrace/engines/ring-transport.js'
import { requestOf } from '#millrace/memory/request-ring.js'

export const REQUEST_WORDS = 4
export const ANSWER_WORDS = 12
/** Of the answer's words where the request begins with 0: three times 0 to 3. */
const SUM_OF_ZERO = 3 * 6

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

  /** For a slot. */
  write({ words }: RingMemory, slot: number): void {
    this.writeAt(words, requestOf(slot))
  }

  /** Out of a slot. */
  read({ words }: RingMemory, slot: number): void {
    this.readAt(words, slot)
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
  answerAt(words, requestOf(slot), words, slot)
}

/** Answers a request that lies in one array into another. */
export function answerAt(requests: Int32Array, from: number, answers: Int32Array, at: number): void {
  const w0 = requests[from]!
  const w1 = requests[from + 1]!
  const w2 = requests[from + 2]!
  const w3 = requests[from + 3]!
  answers[at] = w0
  answers[at + 1] = w1
  answers[at + 2] = w2
  answers[at + 3] = w3
  answers[at + 4] = w0
  answers[at + 5] = w1
  answers[at + 6] = w2
  answers[at + 7] = w3
  answers[at + 8] = w0
  answers[at + 9] = w1
  answers[at + 10] = w2
  answers[at + 11] = w3
}
