/**
 * The memory between the thread that asks and one that answers: a ring of requests, and one of slots for their answers at the
 * same places, with one asker and one answerer. Nothing is copied but what is asked and what is found, answers come in the
 * order of the requests, and after the death of a thread the cursors say which request it was at.
 *
 *     asker      the request, then Atomics.store(ASKED, + 1) once for many, then wakes whoever is ASLEEP
 *     answerer   Atomics.load(ASKED), then one by one BEGUN + 1, the answer, DONE + 1; and once for some of them
 *                Atomics.store(ANSWERED, DONE), then wakes who is WAITING
 *
 * Either stores its cursor, then reads whether the other sleeps; who goes to sleep says so, then sleeps only if the cursor is
 * still the one that it knows (`Atomics.wait` compares once more). All of these are sequentially consistent, so one of the two
 * sees the other's store, and nobody sleeps on work. What requests and slots hold is plain: it is written before the cursor is stored and
 * read after the cursor was loaded.
 *
 * Who asks says STARTING, and hands the ring to a thread. One that never comes is given up, by compare-exchange with ENDED; and one that
 * comes begins by compare-exchange with AWAKE: so never both.
 *
 * Cursors count modulo 2^32, as signed integers. Every interleaving of all this is explored by test/model/ring-transport.mjs.
 */

import { ANSWERED, BEGUN, DONE, SLOT_BITS, SLOT_WORDS, SLOTS, SLOTS_AT } from '../memory/slots.js'

/** Indexes into the words, beside those of `memory/slots.ts`; those that different threads write are lines of their own. */
export const ASKED = 0
/** start * 4 + what the answerer that was started so is doing: STARTING, AWAKE, ASLEEP or ENDED. */
export const STATE = 32
/** 1 while the asker waits to be told of answers. The asker alone writes it. */
export const WAITING = 48
/** 1 once the answerer is to end. */
export const CLOSING = 49
export const ENDED = 0
export const AWAKE = 1
export const ASLEEP = 2
export const STARTING = 3

/** STATE of the `start`th answerer. One that said it had ended must not take up what a later one has left. */
export const stateOf = (start: number, state: number): number => (start << 2) | state
export const kindOf = (state: number): number => state & 3

/** Areas for batches, and the keys that go into one. */
export const AREAS = 32
export const AREA_KEYS = 256
const AREAS_AT = SLOTS_AT + SLOTS * SLOT_WORDS
const AREA_WORDS = 7 * AREA_KEYS
const BYTES = 4 * (AREAS_AT + AREAS * AREA_WORDS)

/** What a batch is asked and answered in. */
export interface Area {
  readonly fingerprints: Int32Array
  readonly costs: Int32Array
  readonly allowed: Uint8Array
  readonly remaining: Int32Array
  readonly retryAfterMs: Float64Array
}

/** The memory of one ring, as both sides see it. */
export class RingMemory {
  readonly buffer: SharedArrayBuffer
  readonly words: Int32Array
  readonly doubles: Float64Array

  /** Growable, though it never grows: only then does V8 align it to a page, and what is a line here to a line. */
  constructor(buffer = new SharedArrayBuffer(BYTES, { maxByteLength: BYTES })) {
    this.buffer = buffer
    this.words = new Int32Array(buffer, 0, BYTES / 4)
    this.doubles = new Float64Array(buffer, 0, BYTES / 8)
  }

  /** Where the slot of a cursor begins, in words; in doubles, half of that. */
  slot(cursor: number): number {
    return SLOTS_AT + ((cursor & (SLOTS - 1)) << SLOT_BITS)
  }

  area(index: number): Area {
    const { buffer } = this
    const at = 4 * (AREAS_AT + index * AREA_WORDS)
    return {
      retryAfterMs: new Float64Array(buffer, at, AREA_KEYS),
      fingerprints: new Int32Array(buffer, at + 8 * AREA_KEYS, 2 * AREA_KEYS),
      costs: new Int32Array(buffer, at + 16 * AREA_KEYS, AREA_KEYS),
      remaining: new Int32Array(buffer, at + 20 * AREA_KEYS, AREA_KEYS),
      allowed: new Uint8Array(buffer, at + 24 * AREA_KEYS, AREA_KEYS),
    }
  }
}

/** Answers shown one by one, and told one by one, would cost the line and a wake-up each; the asker may work on the first meanwhile. */
const KEYS_PER_STORE = 16
const KEYS_PER_WAKE = 64
/** Looks at the ring before going to sleep: about 25 us, less than it takes to be woken and to be waited for meanwhile. */
const LOOKS = 3000

/** After one that could not be answered together with others, so many are answered one by one. */
const SINGLE_AFTER_STOP = 8

/** What answers. */
export interface Answering {
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
export class Answerer {
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
  run(by: Answering): void {
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

  #answerUpTo(asked: number, by: Answering): void {
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
  #answerMany(asked: number, by: Answering): number {
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
