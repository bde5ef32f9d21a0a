import type { MillraceError } from '../../core/errors.js'
import { damagedError } from '../../core/tries.js'
import { ACCEPTED, COMPLETED, REPLIED, SLOTS } from '../../memory/request-ring.js'
import { Chunk, type PartitionedBatch } from './partitioned-batch.js'
import { type DecidingEngine, decisionIn } from './pool-decision.js'
import type { InFlight, Resolve, RingRequest } from './request.js'
import {
  AREAS,
  type Area,
  ASLEEP,
  CLOSING,
  ENDED,
  kindOf,
  REQUESTED,
  RingMemory,
  STARTING,
  STATE,
  stateOf,
  WAITING,
} from './ring-transport.js'

/** Further than a server by damaged cursors is from the client's: it takes at most `SLOTS` requests as present. */
const FAR = 4 * SLOTS

/** The client of one ring, with its requests in flight. */
export class RingClient {
  /** Unique among the rings of this thread. */
  readonly id: number
  readonly #engine: DecidingEngine
  readonly #onDamage: (error: MillraceError) => void
  readonly memory: RingMemory
  /**
   * The generation of the newest server: 1 for the first one of this ring, 2 for its replacement; 0 before
   * the first.
   */
  generation = 0
  /** Whether the server of `generation` was started, and has not ended. Unlike STATE, no damage can change it. */
  #hasServer = false
  /** How many servers in a row died without a reply. */
  failures = 0
  /** In how many more turns of the event loop the client polls for replies, before it waits for a wake-up. */
  pollsLeft = 0
  /** Whether a poll is scheduled, or a wait pending. */
  isReceiving = false
  /** The result of the last `#prefetch`; a property, so that V8 can't drop its reads. */
  prefetched = 0
  readonly #words: Int32Array
  /**
   * By slots. Most decisions go to the ring directly, and have only the function that resolves their promise
   * here.
   */
  readonly #inFlight: (InFlight | Resolve | undefined)[] = new Array(SLOTS).fill(undefined)
  readonly #areas: Area[]
  readonly #freeAreas: number[] = Array.from({ length: AREAS }, (_, i) => i)
  /**
   * Cursors: the next request, the first one that isn't published, and the first one whose reply has not been
   * read.
   */
  #next = 0
  #published = 0
  #read = 0

  /** `onDamage` is called when cursors contradict each other. */
  constructor(id: number, engine: DecidingEngine, onDamage: (error: MillraceError) => void = () => {}) {
    this.id = id
    this.#engine = engine
    this.#onDamage = onDamage
    this.memory = new RingMemory(engine.rules?.length)
    this.#words = this.memory.words
    this.#areas = Array.from({ length: AREAS }, (_, i) => this.memory.area(i))
  }

  get isFull(): boolean {
    return ((this.#next - this.#read) | 0) === SLOTS
  }

  get isEmpty(): boolean {
    return this.#next === this.#read
  }

  /** How many requests are enqueued and not yet published. */
  get unpublished(): number {
    return (this.#next - this.#published) | 0
  }

  /** Whether the server has begun. */
  get isReady(): boolean {
    return kindOf(Atomics.load(this.#words, STATE)) !== STARTING
  }

  /** Whether the server sleeps, or there is none. */
  get isAtRest(): boolean {
    const kind = kindOf(Atomics.load(this.#words, STATE))
    return kind === ASLEEP || kind === ENDED
  }

  /** Enqueues a request. The ring must not be full. */
  enqueue(request: RingRequest): void {
    request.write(this.memory, this.reserve(request))
  }

  /** Reserves the next slot, for the caller to write the request. The ring must not be full. */
  reserve(request: InFlight | Resolve): number {
    const cursor = this.#next
    this.#inFlight[cursor & (SLOTS - 1)] = request
    this.#next = (cursor + 1) | 0
    return this.memory.slot(cursor)
  }

  /** An empty chunk for the next keys of a batch; undefined if the ring is full, or no area is free. */
  allocateChunk(batch: PartitionedBatch): Chunk | undefined {
    if (this.isFull) return undefined
    const area = this.#freeAreas.pop()
    if (area === undefined) return undefined
    return new Chunk(batch, area, this.#areas[area]!, ({ areaIndex }) => this.#freeAreas.push(areaIndex))
  }

  /**
   * Publishes all enqueued requests, and wakes the server. True: there is none, and the caller must start
   * `generation`.
   */
  publish(): boolean {
    const words = this.#words
    this.#published = this.#next
    Atomics.store(words, REQUESTED, this.#next)
    if (kindOf(Atomics.load(words, STATE)) === ASLEEP) Atomics.notify(words, REQUESTED)
    return this.claimStart()
  }

  /** True: no server runs, and the caller must start the server of the new `generation`. */
  claimStart(): boolean {
    const state = Atomics.load(this.#words, STATE)
    if (kindOf(state) !== ENDED && this.#hasServer) return false
    const starting = stateOf(this.generation + 1, STARTING)
    const isClaimed = Atomics.compareExchange(this.#words, STATE, state, starting) === state
    if (isClaimed) {
      this.generation++
      this.#hasServer = true
    }
    return isClaimed
  }

  /** Cancels the start of a server. True: it has not begun, and never will. */
  cancelStart(generation: number): boolean {
    const starting = stateOf(generation, STARTING)
    return Atomics.compareExchange(this.#words, STATE, starting, stateOf(generation, ENDED)) === starting
  }

  /** The client no longer waits for a wake-up. */
  endWait(): void {
    Atomics.store(this.#words, WAITING, 0)
  }

  /** Reads all published replies, and settles their promises. Returns how many keys they are about. */
  readReplies(): number {
    const replied = Atomics.load(this.#words, REPLIED)
    // Not a cursor between them: the memory is damaged. The server goes on by its own cursor.
    if ((replied - this.#read) >>> 0 > (this.#next - this.#read) >>> 0) return this.#failDamaged()
    this.#prefetch(replied)
    let keys = 0
    while (this.#read !== replied) {
      const slot = this.memory.slot(this.#read)
      const request = this.#shift()
      if (typeof request === 'function') {
        const decision = decisionIn(this.memory, slot, this.#engine)
        this.#engine.own?.count(decision)
        request(decision)
        keys++
      } else {
        keys += request.length
        request.read(this.memory, slot)
      }
    }
    return keys
  }

  /**
   * Replies lie in the cache of the server's processor. `readReplies` reads each slot between two promises,
   * so their cache misses would follow each other; this loop lets them overlap.
   */
  #prefetch(replied: number): void {
    let prefetched = 0
    for (let at = this.#read; at !== replied; at = (at + 1) | 0)
      prefetched ^= this.#words[this.memory.slot(at)]!
    this.prefetched = prefetched
  }

  /**
   * Resolves when the server publishes a reply; undefined if there are published replies that have not been
   * read.
   */
  waitForReply(): Promise<unknown> | undefined {
    Atomics.store(this.#words, WAITING, 1)
    const { async, value } = Atomics.waitAsync(this.#words, REPLIED, this.#read)
    return async ? value : undefined
  }

  /** The worker died: publishes the replies that it had finished and not published. */
  publishFinished(): void {
    Atomics.store(this.#words, REPLIED, Atomics.load(this.#words, COMPLETED))
  }

  /**
   * The worker died: rejects its request in flight, if there is one, so that the next server begins behind
   * it. The caller has read all replies. Returns how many keys the request is about.
   */
  failInFlight(error: unknown): number {
    const words = this.#words
    const begun = Atomics.load(words, ACCEPTED)
    let keys = 0
    if (begun !== this.#read) {
      for (const cursor of [COMPLETED, REPLIED]) Atomics.store(words, cursor, begun)
      keys = this.#rejectNext(error)
    }
    Atomics.store(words, STATE, stateOf(this.generation, ENDED))
    // Last: reading the replies of the dead server may publish requests. A server that they start would begin at the
    // cursors of before, and decide again what the dead one has decided.
    this.#hasServer = false
    return keys
  }

  /** The server of `generation` has ended by itself. It has stored its cursors, and STATE after them. */
  noteEnd(): void {
    this.#hasServer = false
  }

  /** Rejects every request of the ring, as no server will run. Returns how many keys they are about. */
  failAll(error: unknown): number {
    let keys = 0
    while (this.#read !== this.#next) keys += this.#rejectNext(error)
    this.#goOnFrom(this.#next)
    return keys
  }

  /**
   * The same if a server may run by other cursors. The next requests have cursors that are further away than the ring
   * is long: to that server they are more than the ring holds, and it ends. So it takes none of them for one that it
   * has served, and serves none that it has not.
   */
  #failDamaged(): number {
    const error = damagedError()
    this.#onDamage(error)
    const keys = this.failAll(error)
    this.#goOnFrom((this.#next + FAR) | 0)
    Atomics.notify(this.#words, REQUESTED)
    return keys
  }

  #goOnFrom(cursor: number): void {
    this.#next = cursor
    this.#published = cursor
    this.#read = cursor
    for (const index of [REQUESTED, ACCEPTED, COMPLETED, REPLIED]) Atomics.store(this.#words, index, cursor)
  }

  /** Ends the server when it has no more requests. */
  close(): void {
    Atomics.store(this.#words, CLOSING, 1)
    Atomics.notify(this.#words, REQUESTED)
  }

  #rejectNext(error: unknown): number {
    const request = this.#shift()
    if (typeof request === 'function') {
      request(Promise.reject(error))
      return 1
    }
    request.reject(error)
    return request.length
  }

  /** Removes the oldest request in flight. */
  #shift(): InFlight | Resolve {
    const index = this.#read & (SLOTS - 1)
    const request = this.#inFlight[index]!
    this.#inFlight[index] = undefined
    this.#read = (this.#read + 1) | 0
    return request
  }
}
