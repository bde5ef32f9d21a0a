import { ANSWERED, BEGUN, DONE } from '../memory/request-ring.js'
import {
  ASKED,
  ASLEEP,
  AWAKE,
  CLOSING,
  ENDED,
  type RingMemory,
  STARTING,
  STATE,
  stateOf,
  WAITING,
} from './ring-transport.js'

/** Answers shown one by one, and told one by one, would cost the line and a wake-up each; the asker may work on the first meanwhile. */
const KEYS_PER_STORE = 16
const KEYS_PER_WAKE = 64
/** Looks at the ring before going to sleep: about 25 us, less than it takes to be woken and to be waited for meanwhile. */
const LOOKS = 3000

/** After one that could not be answered together with others, so many are answered one by one. */
const SINGLE_AFTER_STOP = 8

/** What answers. */
export interface RingHandler {
  /**
   * Answers the request of a slot, the `nth` of those that follow each other; how many keys it was about. Whoever calls it tells
   * of BEGUN and DONE.
   */
  answer(slot: number, nth: number): number
  /** Answers from one cursor up to before another, telling of BEGUN and DONE itself; the first that it has not answered. */
  answerMany(from: number, to: number): number
  /** Called before every sleep. */
  rest(): void
}

/** The answering side. */
export class RingServer {
  readonly #words: Int32Array
  readonly #memory: RingMemory
  readonly #start: number
  readonly #idleMs: number
  #answered = 0

  /** The `start`th of this ring. After `idleMs` without a request it ends. */
  constructor(memory: RingMemory, start: number, idleMs: number) {
    this.#start = start
    this.#memory = memory
    this.#words = memory.words
    this.#idleMs = idleMs
  }

  /** Answers by `by` until there has been nothing to do for long; not at all where this start has been given up. */
  run(by: RingHandler): void {
    const [starting, awake] = [stateOf(this.#start, STARTING), stateOf(this.#start, AWAKE)]
    if (Atomics.compareExchange(this.#words, STATE, starting, awake) !== starting) return
    this.#answered = Atomics.load(this.#words, ANSWERED)
    for (;;) {
      const asked = Atomics.load(this.#words, ASKED)
      if (asked !== this.#answered) this.#answerUpTo(asked, by)
      else if (!this.#isAskedSoon()) {
        by.rest()
        if (!this.#sleep()) return
      }
    }
  }

  #answerUpTo(asked: number, by: RingHandler): void {
    const words = this.#words
    let nth = 0
    let unshown = 0
    let untold = 0
    let single = 0
    while (this.#answered !== asked) {
      const from = this.#answered
      let keys = single > 0 ? 0 : this.#answerMany(asked, by)
      if (keys === 0) {
        words[BEGUN] = (from + 1) | 0
        keys = by.answer(this.#memory.slot(from), nth)
        words[DONE] = (from + 1) | 0
        this.#answered = (from + 1) | 0
        single = single > 0 ? single - 1 : SINGLE_AFTER_STOP
      }
      nth += (this.#answered - from) | 0
      unshown += keys
      untold += keys
      const isLast = this.#answered === asked
      if (!isLast && unshown < KEYS_PER_STORE) continue
      Atomics.store(words, ANSWERED, this.#answered)
      unshown = 0
      if (!isLast && untold < KEYS_PER_WAKE) continue
      this.#wake()
      untold = 0
    }
  }

  /** As many of the requests at hand as can be answered together; how many keys those were about. */
  #answerMany(asked: number, by: RingHandler): number {
    const from = this.#answered
    const left = (asked - from) | 0
    this.#words[BEGUN] = (from + 1) | 0 // what fails before the first of them is that one's failure
    this.#answered = by.answerMany(from, left > KEYS_PER_WAKE ? (from + KEYS_PER_WAKE) | 0 : asked)
    return (this.#answered - from) | 0
  }

  #wake(): void {
    if (Atomics.load(this.#words, WAITING) === 1) Atomics.notify(this.#words, ANSWERED)
  }

  #isAskedSoon(): boolean {
    for (let i = 0; i < LOOKS; i++) {
      if (Atomics.load(this.#words, ASKED) !== this.#answered) return true
    }
    return false
  }

  /** False: this is the end, and whoever asks again starts another answerer. */
  #sleep(): boolean {
    const words = this.#words
    const awake = stateOf(this.#start, AWAKE)
    const ended = stateOf(this.#start, ENDED)
    Atomics.store(words, STATE, stateOf(this.#start, ASLEEP))
    const isClosing = Atomics.load(words, CLOSING) === 1
    if (!isClosing && Atomics.wait(words, ASKED, this.#answered, this.#idleMs) !== 'timed-out') {
      Atomics.store(words, STATE, awake)
      return true
    }
    Atomics.store(words, STATE, ended)
    // Asked meanwhile: by somebody who saw this one asleep; or who sees ENDED, and then one of the two takes it up.
    if (Atomics.load(words, ASKED) === this.#answered) return false
    return Atomics.compareExchange(words, STATE, ended, awake) === ended
  }
}
