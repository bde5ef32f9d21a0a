/**
 * Two rings of ringbuf.js, one for requests and one for answers, with what they need beside them to be a transport: words to
 * sleep on, by the rules of `engines/ring-transport.ts`. Both sides write into the library's storage themselves, without a copy
 * of their own, and publish many records at once; `pop` is the one way of the library to take records out, and copies them.
 */
import { RingBuffer } from 'ringbuf.js'
import { ANSWER_WORDS, answerAt, type Echo, REQUEST_WORDS } from './echo.js'

/** Words that both sides see: how often either published something, and who sleeps. Each on a line of its own. */
const ASKED = 0
const ANSWERED = 16
const ASLEEP = 32
const WAITING = 48
const WORDS = 64

/** A power of two; one less are under way at the same time, for the library leaves one word free. */
const RECORDS = 1024
/** As `engines/ring-transport.ts` has them. */
const ANSWERS_PER_STORE = 16
const ANSWERS_PER_WAKE = 64
const LOOKS = 3000

export interface RingBuffersMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly requests: SharedArrayBuffer
  readonly answers: SharedArrayBuffer
}

/** No record is ever split by the end of a ring: with the word that stays free it is a whole number of records. */
function ringOf(recordWords: number): SharedArrayBuffer {
  return RingBuffer.getStorageForCapacity(RECORDS * recordWords - 1, Int32Array)
}

/** The asking side. */
export class RingBuffers {
  readonly memory: RingBuffersMemory = {
    words: new Int32Array(new SharedArrayBuffer(4 * WORDS)),
    requests: ringOf(REQUEST_WORDS),
    answers: ringOf(ANSWER_WORDS),
  }
  looks = 0
  isListening = false
  readonly #words = this.memory.words
  readonly #requests = new RingBuffer(this.memory.requests, Int32Array)
  readonly #answers = new RingBuffer(this.memory.answers, Int32Array)
  readonly #taken = new Int32Array(RECORDS * ANSWER_WORDS)
  readonly #asked: (Echo | undefined)[] = new Array(RECORDS).fill(undefined)
  #next = 0
  #sent = 0
  #read = 0
  #answered = 0

  get isFull(): boolean {
    return this.#next - this.#read === RECORDS - 1
  }

  get isEmpty(): boolean {
    return this.#next === this.#read
  }

  get unsent(): number {
    return this.#next - this.#sent
  }

  put(asked: Echo): void {
    this.#asked[this.#next++ & (RECORDS - 1)] = asked
  }

  send(): boolean {
    this.#requests.writeCallbackWithOffset((this.#next - this.#sent) * REQUEST_WORDS, this.#write)
    const words = this.#words
    Atomics.store(words, ASKED, this.#next)
    if (Atomics.load(words, ASLEEP) === 1) Atomics.notify(words, ASKED)
    return false
  }

  settle(): number {
    const answered = Atomics.load(this.#words, ANSWERED)
    if (answered === this.#answered) return 0
    this.#answered = answered
    const taken = this.#answers.pop(this.#taken)
    for (let at = 0; at < taken; at += ANSWER_WORDS) {
      const place = this.#read++ & (RECORDS - 1)
      this.#asked[place]!.readAt(this.#taken, at)
      this.#asked[place] = undefined
    }
    return taken / ANSWER_WORDS
  }

  nextAnswer(): Promise<unknown> | undefined {
    Atomics.store(this.#words, WAITING, 1)
    const { async, value } = Atomics.waitAsync(this.#words, ANSWERED, this.#answered)
    return async ? value : undefined
  }

  stopWaiting(): void {
    Atomics.store(this.#words, WAITING, 0)
  }

  readonly #write = (storage: ArrayLike<number>, at: number, first: number, again: number, rest: number) => {
    const words = storage as Int32Array
    for (let i = 0; i < first; i += REQUEST_WORDS) this.#writeNext(words, at + i)
    for (let i = 0; i < rest; i += REQUEST_WORDS) this.#writeNext(words, again + i)
    return first + rest
  }

  #writeNext(words: Int32Array, at: number): void {
    this.#asked[this.#sent++ & (RECORDS - 1)]!.writeAt(words, at)
  }
}

/** The answering side, for ever. */
export function answerRingBuffers({ words, requests, answers }: RingBuffersMemory): never {
  const [asked, answered] = [new RingBuffer(requests, Int32Array), new RingBuffer(answers, Int32Array)]
  const taken = new Int32Array(RECORDS * REQUEST_WORDS)
  let from = 0
  let done = 0
  const write = (storage: ArrayLike<number>, at: number, first: number, again: number, rest: number) => {
    const into = storage as Int32Array
    for (let i = 0; i < first; i += ANSWER_WORDS, from += REQUEST_WORDS) answerAt(taken, from, into, at + i)
    for (let i = 0; i < rest; i += ANSWER_WORDS, from += REQUEST_WORDS) answerAt(taken, from, into, again + i)
    return first + rest
  }
  for (;;) {
    const seen = Atomics.load(words, ASKED)
    const records = asked.pop(taken) / REQUEST_WORDS
    from = 0
    for (let left = records, untold = 0; left > 0; ) {
      const many = Math.min(left, ANSWERS_PER_STORE)
      answered.writeCallbackWithOffset(many * ANSWER_WORDS, write)
      left -= many
      done += many
      untold += many
      Atomics.store(words, ANSWERED, done)
      if (left > 0 && untold < ANSWERS_PER_WAKE) continue
      untold = 0
      if (Atomics.load(words, WAITING) === 1) Atomics.notify(words, ANSWERED)
    }
    if (records > 0 || isAskedSoon(words, seen)) continue
    Atomics.store(words, ASLEEP, 1)
    Atomics.wait(words, ASKED, seen)
    Atomics.store(words, ASLEEP, 0)
  }
}

function isAskedSoon(words: Int32Array, seen: number): boolean {
  for (let i = 0; i < LOOKS; i++) if (Atomics.load(words, ASKED) !== seen) return true
  return false
}
