import { ANSWERED, BEGUN, DONE, SLOTS } from '../memory/request-ring.js'
import { Chunk, type PartitionedBatch } from './partitioned-batch.js'
import { type DecidingEngine, type InFlight, PoolDecision, type RingRequest, type Settle } from './request.js'
import {
  AREAS,
  type Area,
  ASKED,
  ASLEEP,
  CLOSING,
  ENDED,
  kindOf,
  RingMemory,
  STARTING,
  STATE,
  stateOf,
  WAITING,
} from './ring-transport.js'

/** The asking side of one ring, and what is under way in it. */
export class RingClient {
  /** Tells it from all other rings of this thread. */
  readonly id: number
  readonly #engine: DecidingEngine
  readonly memory = new RingMemory()
  /** Counts the answerers that were started. */
  starts = 0
  /** Answerers that ended, one after another, without an answer. */
  failures = 0
  /** Turns of the event loop in which it is to be looked for answers, before somebody waits to be told. */
  looks = 0
  /** Somebody is to be told when there are answers. */
  isListening = false
  /** What the last look at answers saw, kept so that there is one. */
  touched = 0
  readonly #words = this.memory.words
  /** Of a decision that went to the ring at once, as most do, only whom to answer. */
  readonly #inFlight: (InFlight | Settle | undefined)[] = new Array(SLOTS).fill(undefined)
  readonly #areas: Area[] = Array.from({ length: AREAS }, (_, i) => this.memory.area(i))
  readonly #freeAreas: number[] = Array.from({ length: AREAS }, (_, i) => i)
  #next = 0
  #sent = 0
  #read = 0

  constructor(id: number, engine: DecidingEngine) {
    this.id = id
    this.#engine = engine
  }

  get isFull(): boolean {
    return ((this.#next - this.#read) | 0) === SLOTS
  }

  get isEmpty(): boolean {
    return this.#next === this.#read
  }

  /** How many were put that the answerer does not know of. */
  get unsent(): number {
    return (this.#next - this.#sent) | 0
  }

  /** Whether its answerer has come. */
  get isReady(): boolean {
    return kindOf(Atomics.load(this.#words, STATE)) !== STARTING
  }

  /** Whether its answerer has laid down its work, if it has one. */
  get isAtRest(): boolean {
    const kind = kindOf(Atomics.load(this.#words, STATE))
    return kind === ASLEEP || kind === ENDED
  }

  put(asked: RingRequest): void {
    asked.write(this.memory, this.add(asked))
  }

  /** The slot that is its own now, for the caller to write to. There is room. */
  add(asked: InFlight | Settle): number {
    const cursor = this.#next
    this.#inFlight[cursor & (SLOTS - 1)] = asked
    this.#next = (cursor + 1) | 0
    return this.memory.slot(cursor)
  }

  /** Room for keys of a batch, if there is some. */
  open(batch: PartitionedBatch): Chunk | undefined {
    if (this.isFull) return undefined
    const area = this.#freeAreas.pop()
    if (area === undefined) return undefined
    return new Chunk(batch, area, this.#areas[area]!, ({ areaIndex }) => this.#freeAreas.push(areaIndex))
  }

  /** Shows the answerer all that was put, and wakes it. True: there is none, and the caller is to start one. */
  send(): boolean {
    const words = this.#words
    this.#sent = this.#next
    Atomics.store(words, ASKED, this.#next)
    if (kindOf(Atomics.load(words, STATE)) === ASLEEP) Atomics.notify(words, ASKED)
    return this.start()
  }

  /** True: nobody answers, and the caller is to start the `starts`th answerer. */
  start(): boolean {
    const state = Atomics.load(this.#words, STATE)
    if (kindOf(state) !== ENDED) return false
    const isOurs =
      Atomics.compareExchange(this.#words, STATE, state, stateOf(this.starts + 1, STARTING)) === state
    if (isOurs) this.starts++
    return isOurs
  }

  /** Gives up the `start`th answerer, unless it has come: if this is true, it never will. */
  giveUp(start: number): boolean {
    const starting = stateOf(start, STARTING)
    return Atomics.compareExchange(this.#words, STATE, starting, stateOf(start, ENDED)) === starting
  }

  /** Nobody waits to be told any more. */
  stopWaiting(): void {
    Atomics.store(this.#words, WAITING, 0)
  }

  /** Settles what has been answered; how many keys that was about. */
  settle(): number {
    const answered = Atomics.load(this.#words, ANSWERED)
    this.#touch(answered)
    let keys = 0
    while (this.#read !== answered) {
      const slot = this.memory.slot(this.#read)
      const asked = this.#take()
      if (typeof asked === 'function') {
        asked(new PoolDecision(this.memory, slot, this.#engine))
        keys++
      } else {
        keys += asked.length
        asked.read(this.memory, slot)
      }
    }
    return keys
  }

  /**
   * Answers lie in the cache of the processor that wrote them. InFlight for one after another, each between the promises that it settles,
   * they come one after another; here they come all at once.
   */
  #touch(answered: number): void {
    let touched = 0
    for (let at = this.#read; at !== answered; at = (at + 1) | 0)
      touched ^= this.#words[this.memory.slot(at)]!
    this.touched = touched
  }

  /** Resolves when something is answered that `settle` has not seen; undefined where something is already. */
  nextAnswer(): Promise<unknown> | undefined {
    Atomics.store(this.#words, WAITING, 1)
    const { async, value } = Atomics.waitAsync(this.#words, ANSWERED, this.#read)
    return async ? value : undefined
  }

  /** Its answerer is no more: shows what it had not told of. */
  recover(): void {
    Atomics.store(this.#words, ANSWERED, Atomics.load(this.#words, DONE))
  }

  /**
   * Its answerer is no more, whatever it was doing. The one request that it had begun with and not answered is rejected; the
   * next answerer goes on behind it. Returns how many keys that was about. All answers have been settled.
   */
  failInFlight(error: unknown): number {
    const words = this.#words
    const begun = Atomics.load(words, BEGUN)
    let keys = 0
    if (begun !== this.#read) {
      for (const cursor of [DONE, ANSWERED]) Atomics.store(words, cursor, begun)
      keys = this.#reject(error)
    }
    Atomics.store(words, STATE, stateOf(this.starts, ENDED))
    return keys
  }

  /** Rejects all that is under way, which nobody answers. Returns how many keys that was about. */
  abandon(error: unknown): number {
    let keys = 0
    while (this.#read !== this.#next) keys += this.#reject(error)
    this.#sent = this.#next
    for (const cursor of [ASKED, BEGUN, DONE, ANSWERED]) Atomics.store(this.#words, cursor, this.#next)
    return keys
  }

  close(): void {
    Atomics.store(this.#words, CLOSING, 1)
    Atomics.notify(this.#words, ASKED)
  }

  /** Rejects the next one; how many keys it was about. */
  #reject(error: unknown): number {
    const asked = this.#take()
    if (typeof asked === 'function') {
      asked(Promise.reject(error))
      return 1
    }
    asked.reject(error)
    return asked.length
  }

  #take(): InFlight | Settle {
    const place = this.#read & (SLOTS - 1)
    const asked = this.#inFlight[place]!
    this.#inFlight[place] = undefined
    this.#read = (this.#read + 1) | 0
    return asked
  }
}
