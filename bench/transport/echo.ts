/**
 * The messages of the case `transport`: a request of 4 words and a reply of 12, like the pool's. The reply
 * repeats the words of the request three times; nothing is decided.
 */

import type { RingMemory } from '#millrace/engines/pool/ring-transport.js'
import { requestOf } from '#millrace/memory/request-ring.js'

export const REQUEST_WORDS = 4
export const REPLY_WORDS = 12
/** The sum of a reply's words if the request begins with 0: three times 0 to 3. */
const SUM_OF_ZERO = 3 * 6

/** One request, with the promise of its reply. */
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

  /** Writes the request of a slot. */
  write({ words }: RingMemory, slot: number): void {
    this.writeAt(words, requestOf(slot))
  }

  /** Reads the reply from a slot. */
  read({ words }: RingMemory, slot: number): void {
    this.readAt(words, slot)
  }

  writeAt(words: Int32Array, at: number): void {
    for (let i = 0; i < REQUEST_WORDS; i++) words[at + i] = this.#first + i
  }

  readAt(words: Int32Array, at: number): void {
    let sum = 0
    for (let i = 0; i < REPLY_WORDS; i++) sum += words[at + i]!
    if (sum === REPLY_WORDS * this.#first + SUM_OF_ZERO) this.#resolve()
    else this.reject(new Error(`the reply to ${this.#first} belongs to another request`))
  }

  reject(error: unknown): void {
    this.#reject(error)
  }
}

/** Replies to the request of a slot. */
export function echoInSlot(words: Int32Array, slot: number): void {
  echoAt(words, requestOf(slot), words, slot)
}

/** Reads a request from one array, and writes its reply to another. */
export function echoAt(requests: Int32Array, from: number, replies: Int32Array, at: number): void {
  const w0 = requests[from]!
  const w1 = requests[from + 1]!
  const w2 = requests[from + 2]!
  const w3 = requests[from + 3]!
  replies[at] = w0
  replies[at + 1] = w1
  replies[at + 2] = w2
  replies[at + 3] = w3
  replies[at + 4] = w0
  replies[at + 5] = w1
  replies[at + 6] = w2
  replies[at + 7] = w3
  replies[at + 8] = w0
  replies[at + 9] = w1
  replies[at + 10] = w2
  replies[at + 11] = w3
}
