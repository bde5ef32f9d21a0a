import { damagedError } from '../../core/tries.js'
import { ACCEPTED, COMPLETED, REPLIED, SLOTS } from '../../memory/request-ring.js'
import {
  ASLEEP,
  AWAKE,
  CLOSING,
  ENDED,
  REQUESTED,
  type RingMemory,
  STARTING,
  STATE,
  stateOf,
  WAITING,
} from './ring-transport.js'

/**
 * After this many keys the server publishes its replies, and after this many it wakes the client. A store and
 * a wake-up for each reply would cost too much; one of each for all replies would leave the client idle
 * meanwhile.
 */
const KEYS_PER_STORE = 16
const KEYS_PER_WAKE = 64
/**
 * How often an idle server polls the ring before it sleeps: for about 25 us, which is less than a wake-up
 * costs both sides.
 */
const POLLS_BEFORE_SLEEP = 3000
/**
 * After a request that `handleMany` left, the server handles this many one by one before it calls
 * `handleMany` again.
 */
const SINGLE_AFTER_STOP = 8

/** Computes the replies. */
export interface RingHandler {
  /**
   * Handles the request of a slot. `nth` counts the requests since the server last looked for more, from 0.
   * Returns how many keys the request is about. The caller keeps ACCEPTED and COMPLETED.
   */
  handle(slot: number, nth: number): number
  /**
   * Handles requests from one cursor up to before another, and keeps ACCEPTED and COMPLETED. Returns the
   * first one that it left.
   */
  handleMany(from: number, to: number): number
  /** Called before every sleep. */
  beforeSleep(): void
}

/** The server of one ring. It runs on a worker. */
export class RingServer {
  readonly #words: Int32Array
  readonly #memory: RingMemory
  readonly #generation: number
  readonly #idleMs: number
  #handled = 0

  /** The server of this generation (`RingClient.generation`). After `idleMs` without a request it ends. */
  constructor(memory: RingMemory, generation: number, idleMs: number) {
    this.#generation = generation
    this.#memory = memory
    this.#words = memory.words
    this.#idleMs = idleMs
  }

  /**
   * Serves requests until none has come for `idleMs`. Returns at once if the client has cancelled this start.
   */
  run(handler: RingHandler): void {
    const [starting, awake] = [stateOf(this.#generation, STARTING), stateOf(this.#generation, AWAKE)]
    if (Atomics.compareExchange(this.#words, STATE, starting, awake) !== starting) return
    this.#handled = Atomics.load(this.#words, REPLIED)
    for (;;) {
      const published = Atomics.load(this.#words, REQUESTED)
      // More than the ring holds: the memory is damaged. The worker ends with this error.
      if ((published - this.#handled) >>> 0 > SLOTS) throw damagedError()
      if (published !== this.#handled) this.#serveUpTo(published, handler)
      else if (!this.#poll()) {
        handler.beforeSleep()
        if (!this.#sleep()) return
      }
    }
  }

  #serveUpTo(published: number, handler: RingHandler): void {
    const words = this.#words
    let nth = 0
    let keysSinceStore = 0
    let keysSinceWake = 0
    let single = 0
    while (this.#handled !== published) {
      const from = this.#handled
      let keys = single > 0 ? 0 : this.#handleMany(published, handler)
      if (keys === 0) {
        words[ACCEPTED] = (from + 1) | 0
        keys = handler.handle(this.#memory.slot(from), nth)
        words[COMPLETED] = (from + 1) | 0
        this.#handled = (from + 1) | 0
        single = single > 0 ? single - 1 : SINGLE_AFTER_STOP
      }
      nth += (this.#handled - from) | 0
      keysSinceStore += keys
      keysSinceWake += keys
      const isLast = this.#handled === published
      if (!isLast && keysSinceStore < KEYS_PER_STORE) continue
      Atomics.store(words, REPLIED, this.#handled)
      keysSinceStore = 0
      if (!isLast && keysSinceWake < KEYS_PER_WAKE) continue
      this.#wake()
      keysSinceWake = 0
    }
  }

  /**
   * Lets the handler take the next requests together, at most `KEYS_PER_WAKE`. Returns how many it handled,
   * each for one key.
   */
  #handleMany(published: number, handler: RingHandler): number {
    const from = this.#handled
    const left = (published - from) | 0
    // If the worker dies before the handler sets ACCEPTED, only the first request fails.
    this.#words[ACCEPTED] = (from + 1) | 0
    this.#handled = handler.handleMany(from, left > KEYS_PER_WAKE ? (from + KEYS_PER_WAKE) | 0 : published)
    return (this.#handled - from) | 0
  }

  #wake(): void {
    if (Atomics.load(this.#words, WAITING) === 1) Atomics.notify(this.#words, REPLIED)
  }

  /** Polls for a short time. Returns whether there is a new request. */
  #poll(): boolean {
    for (let i = 0; i < POLLS_BEFORE_SLEEP; i++) {
      if (Atomics.load(this.#words, REQUESTED) !== this.#handled) return true
    }
    return false
  }

  /**
   * Sleeps until a request comes. False: this server has ended, and the client starts another one for the
   * next request.
   */
  #sleep(): boolean {
    const words = this.#words
    const awake = stateOf(this.#generation, AWAKE)
    const ended = stateOf(this.#generation, ENDED)
    Atomics.store(words, STATE, stateOf(this.#generation, ASLEEP))
    const isClosing = Atomics.load(words, CLOSING) === 1
    if (!isClosing && Atomics.wait(words, REQUESTED, this.#handled, this.#idleMs) !== 'timed-out') {
      Atomics.store(words, STATE, awake)
      return true
    }
    Atomics.store(words, STATE, ended)
    // The client may have published meanwhile. If it saw ASLEEP, this server must resume. If it saw ENDED, it
    // claims the start of another server, and this compare-exchange lets one of the two succeed.
    if (Atomics.load(words, REQUESTED) === this.#handled) return false
    return Atomics.compareExchange(words, STATE, ended, awake) === ended
  }
}
