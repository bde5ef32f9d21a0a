/**
 * Two rings of ringbuf.js, one for requests and one for replies, as a transport. Shared words let both sides
 * sleep and wake by the protocol of `engines/pool/ring-transport.ts`. Both sides write records into the library's
 * storage without a copy, and publish many at once. Reading copies the records, as the library has only
 * `pop`.
 */
import { RingBuffer } from 'ringbuf.js'
import { type Echo, echoAt, REPLY_WORDS, REQUEST_WORDS } from './echo.js'

/**
 * Shared words, each on its own cache line: how many records each side has published, and which side sleeps.
 */
const REQUESTED = 0
const REPLIED = 16
const ASLEEP = 32
const WAITING = 48
const WORDS = 64

/** A power of two. One less can be in flight, because the library keeps one word free. */
const RECORDS = 1024
/** The same as in `engines/pool/ring-server.ts`. */
const REPLIES_PER_STORE = 16
const REPLIES_PER_WAKE = 64
const POLLS_BEFORE_SLEEP = 3000

export interface RingBuffersMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly requests: SharedArrayBuffer
  readonly replies: SharedArrayBuffer
}

/** With the word that stays free, a ring holds a whole number of records. So its end splits no record. */
function ringOf(recordWords: number): SharedArrayBuffer {
  return RingBuffer.getStorageForCapacity(RECORDS * recordWords - 1, Int32Array)
}

/** The client. */
export class RingBuffers {
  readonly memory: RingBuffersMemory = {
    words: new Int32Array(new SharedArrayBuffer(4 * WORDS)),
    requests: ringOf(REQUEST_WORDS),
    replies: ringOf(REPLY_WORDS),
  }
  pollsLeft = 0
  isReceiving = false
  readonly #words = this.memory.words
  readonly #requests = new RingBuffer(this.memory.requests, Int32Array)
  readonly #replies = new RingBuffer(this.memory.replies, Int32Array)
  readonly #popped = new Int32Array(RECORDS * REPLY_WORDS)
  readonly #inFlight: (Echo | undefined)[] = new Array(RECORDS).fill(undefined)
  #next = 0
  #published = 0
  #read = 0
  #answered = 0

  get isFull(): boolean {
    return this.#next - this.#read === RECORDS - 1
  }

  get isEmpty(): boolean {
    return this.#next === this.#read
  }

  get unpublished(): number {
    return this.#next - this.#published
  }

  enqueue(echo: Echo): void {
    this.#inFlight[this.#next++ & (RECORDS - 1)] = echo
  }

  publish(): boolean {
    this.#requests.writeCallbackWithOffset((this.#next - this.#published) * REQUEST_WORDS, this.#write)
    const words = this.#words
    Atomics.store(words, REQUESTED, this.#next)
    if (Atomics.load(words, ASLEEP) === 1) Atomics.notify(words, REQUESTED)
    return false
  }

  readReplies(): number {
    const answered = Atomics.load(this.#words, REPLIED)
    if (answered === this.#answered) return 0
    this.#answered = answered
    const popped = this.#replies.pop(this.#popped)
    for (let at = 0; at < popped; at += REPLY_WORDS) {
      const index = this.#read++ & (RECORDS - 1)
      this.#inFlight[index]!.readAt(this.#popped, at)
      this.#inFlight[index] = undefined
    }
    return popped / REPLY_WORDS
  }

  waitForReply(): Promise<unknown> | undefined {
    Atomics.store(this.#words, WAITING, 1)
    const { async, value } = Atomics.waitAsync(this.#words, REPLIED, this.#answered)
    return async ? value : undefined
  }

  endWait(): void {
    Atomics.store(this.#words, WAITING, 0)
  }

  readonly #write = (storage: ArrayLike<number>, at: number, first: number, again: number, rest: number) => {
    const words = storage as Int32Array
    for (let i = 0; i < first; i += REQUEST_WORDS) this.#writeNext(words, at + i)
    for (let i = 0; i < rest; i += REQUEST_WORDS) this.#writeNext(words, again + i)
    return first + rest
  }

  #writeNext(words: Int32Array, at: number): void {
    this.#inFlight[this.#published++ & (RECORDS - 1)]!.writeAt(words, at)
  }
}

/** The server. It never ends. */
export function serveRingBuffers({ words, requests, replies }: RingBuffersMemory): never {
  const [input, output] = [new RingBuffer(requests, Int32Array), new RingBuffer(replies, Int32Array)]
  const popped = new Int32Array(RECORDS * REQUEST_WORDS)
  let from = 0
  let done = 0
  const write = (storage: ArrayLike<number>, at: number, first: number, again: number, rest: number) => {
    const into = storage as Int32Array
    for (let i = 0; i < first; i += REPLY_WORDS, from += REQUEST_WORDS) echoAt(popped, from, into, at + i)
    for (let i = 0; i < rest; i += REPLY_WORDS, from += REQUEST_WORDS) echoAt(popped, from, into, again + i)
    return first + rest
  }
  for (;;) {
    const published = Atomics.load(words, REQUESTED)
    const records = input.pop(popped) / REQUEST_WORDS
    from = 0
    for (let left = records, sinceWake = 0; left > 0; ) {
      const many = Math.min(left, REPLIES_PER_STORE)
      output.writeCallbackWithOffset(many * REPLY_WORDS, write)
      left -= many
      done += many
      sinceWake += many
      Atomics.store(words, REPLIED, done)
      if (left > 0 && sinceWake < REPLIES_PER_WAKE) continue
      sinceWake = 0
      if (Atomics.load(words, WAITING) === 1) Atomics.notify(words, REPLIED)
    }
    if (records > 0 || poll(words, published)) continue
    Atomics.store(words, ASLEEP, 1)
    Atomics.wait(words, REQUESTED, published)
    Atomics.store(words, ASLEEP, 0)
  }
}

function poll(words: Int32Array, published: number): boolean {
  for (let i = 0; i < POLLS_BEFORE_SLEEP; i++) if (Atomics.load(words, REQUESTED) !== published) return true
  return false
}
