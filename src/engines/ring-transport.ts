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

import { SLOT_BITS, SLOT_WORDS, SLOTS, SLOTS_AT } from '../memory/request-ring.js'

/** Indexes into the words, beside those of `memory/request-ring.ts`; those that different threads write are lines of their own. */
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
