/**
 * The memory between a client (the calling thread) and a server (a task on a worker): a ring of requests, and
 * a ring of reply slots at the same positions. Each ring has one client, and one server at a time. Only
 * requests and replies are copied, replies keep the order of the requests, and after a worker died the
 * cursors name its request in flight.
 *
 *     client   writes requests, publishes many by one Atomics.store(REQUESTED), then wakes an ASLEEP server
 *     server   Atomics.load(REQUESTED), then for each request: ACCEPTED + 1, the reply, COMPLETED + 1;
 *              once for several replies: Atomics.store(REPLIED, COMPLETED), then wakes a WAITING client
 *
 * Each side stores its cursor, then reads whether the other side sleeps. A side that goes to sleep first
 * announces it, then sleeps only if the other cursor is unchanged (`Atomics.wait` compares it once more). All
 * of these operations are sequentially consistent, so one of the two sees the other's store, and no side
 * sleeps while it has work. Requests and slots are accessed by plain operations: the writer writes them
 * before it stores the cursor, and the reader reads them after it has loaded the cursor.
 *
 * The client sets STARTING, and starts a worker task for the ring. It cancels a start by a compare-exchange
 * from STARTING to ENDED. The server begins by a compare-exchange from STARTING to AWAKE. So a cancelled
 * server never begins.
 *
 * Cursors count modulo 2^32, as signed integers. test/model/ring-transport.mjs explores every interleaving of
 * this protocol.
 */

import { SLOT_BITS, SLOT_WORDS, SLOTS, SLOTS_AT } from '../../memory/request-ring.js'

/**
 * Indexes into the ring's words, besides those of `memory/request-ring.ts`. Words that different threads
 * write lie on different cache lines.
 */
/** How many requests the client has published. Only the client writes it. */
export const REQUESTED = 0
/** generation * 4 + the state of the server of that generation: STARTING, AWAKE, ASLEEP or ENDED. */
export const STATE = 32
/** 1 while the client waits for replies. Only the client writes it. */
export const WAITING = 48
/** 1 once the server has to end. */
export const CLOSING = 49
export const ENDED = 0
export const AWAKE = 1
export const ASLEEP = 2
export const STARTING = 3

/**
 * STATE of the server of a generation. The generation is part of the word so that a server that has announced
 * its end can't resume a ring that a later server has left.
 */
export const stateOf = (generation: number, kind: number): number => (generation << 2) | kind
export const kindOf = (state: number): number => state & 3

/** The number of areas for chunks of batches, and the most keys of one chunk. */
export const AREAS = 32
export const AREA_KEYS = 256
const AREAS_AT = SLOTS_AT + SLOTS * SLOT_WORDS
const AREA_WORDS = 7 * AREA_KEYS
/**
 * The index of the first further slot. Behind the areas, each rule after the first has as many slots as the
 * ring: first those of the second rule, then those of the third, and so on. So a decision of several rules
 * has a slot for each rule, at the same position, with the figures and the charge of that rule. A GIVE_BACK
 * has its charges there, and a request with limits of its own has its limits there.
 *
 * Alternatives are worse. Longer slots would move the slots of the ring apart, and the addon and the loops
 * over one rule would multiply by a variable. A table of decisions would need an index, and an owner that
 * frees its entries. A further slot is free when the slot of the ring is. A ring of one rule has no further
 * slots, and the same code reads and writes it. Further slots cost a cache line for each rule and decision,
 * and 64 KiB for each rule and ring. The operating system provides only the pages that are used.
 */
const FURTHER_AT = AREAS_AT + AREAS * AREA_WORDS
const FURTHER_WORDS = SLOTS * SLOT_WORDS

/** The index of the slot of a rule, by the index of the slot in the ring. */
export const slotOfRule = (slot: number, rule: number): number =>
  rule === 0 ? slot : slot - SLOTS_AT + FURTHER_AT + (rule - 1) * FURTHER_WORDS

/** The request and the reply of one chunk of a batch, an entry for each key. */
export interface Area {
  readonly fingerprints: Int32Array
  readonly costs: Int32Array
  readonly allowed: Uint8Array
  readonly remaining: Int32Array
  readonly retryAfterMs: Float64Array
  /** With several rules of which one has a unit: in place of `costs`, on the words of `retryAfterMs`. */
  readonly quantities: Float64Array
  /** The same in place of `remaining`, on the words of `fingerprints`. */
  readonly remainingQuantities: Float64Array
}

/** The memory of one ring, for both sides. */
export class RingMemory {
  readonly buffer: SharedArrayBuffer
  readonly words: Int32Array
  readonly doubles: Float64Array

  /** Allocates memory for this many rules, or uses that of an existing ring. */
  constructor(memory: number | SharedArrayBuffer = 1) {
    const buffer = typeof memory === 'number' ? allocate(memory) : memory
    const bytes = buffer.byteLength
    this.buffer = buffer
    this.words = new Int32Array(buffer, 0, bytes / 4)
    this.doubles = new Float64Array(buffer, 0, bytes / 8)
  }

  /** The index of the cursor's slot in `words`; half of it is the index in `doubles`. */
  slot(cursor: number): number {
    return SLOTS_AT + ((cursor & (SLOTS - 1)) << SLOT_BITS)
  }

  area(index: number): Area {
    const { buffer } = this
    const at = 4 * (AREAS_AT + index * AREA_WORDS)
    const retryAfterMs = new Float64Array(buffer, at, AREA_KEYS)
    return {
      retryAfterMs,
      quantities: retryAfterMs,
      remainingQuantities: new Float64Array(buffer, at + 8 * AREA_KEYS, AREA_KEYS),
      fingerprints: new Int32Array(buffer, at + 8 * AREA_KEYS, 2 * AREA_KEYS),
      costs: new Int32Array(buffer, at + 16 * AREA_KEYS, AREA_KEYS),
      remaining: new Int32Array(buffer, at + 20 * AREA_KEYS, AREA_KEYS),
      allowed: new Uint8Array(buffer, at + 24 * AREA_KEYS, AREA_KEYS),
    }
  }
}

/**
 * Growable, though it never grows: V8 aligns only growable buffers to pages, and so the cache lines of this
 * map.
 */
function allocate(rules: number): SharedArrayBuffer {
  const bytes = 4 * (FURTHER_AT + (rules - 1) * FURTHER_WORDS)
  return new SharedArrayBuffer(bytes, { maxByteLength: bytes })
}
