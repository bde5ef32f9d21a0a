import { CHARGED_TICK, OP, Op, REFUNDS, WAY } from '../memory/slots.js'
import { Awaited } from './awaited.js'
import { type BatchDecision, type Costs, checkEntry } from './batch.js'
import type { Asked } from './request.js'
import { MOST_COST } from './request.js'
import { AREA_KEYS, type Area, type RingMemory } from './ring-transport.js'

/** What other threads say of many keys: each of its chunks goes to one of them. */
export class DealtBatch extends Awaited<BatchDecision> implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array
  /** The first key that has not been dealt out. */
  next = 0
  readonly #retryAfterMs: Float64Array
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  #answered = 0

  constructor(fingerprints: Int32Array, costs: Costs, withRemaining: boolean) {
    super()
    const length = fingerprints.length / 2
    this.length = length
    this.allowed = new Uint8Array(length)
    if (withRemaining) this.remaining = new Int32Array(length)
    this.#retryAfterMs = new Float64Array(length)
    this.#fingerprints = fingerprints
    this.#costs = costs
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    return this.#retryAfterMs[i]!
  }

  /** How many keys are still to be dealt out. */
  get left(): number {
    return this.length - this.next
  }

  /** Of the key that `next` is at. */
  get hi(): number {
    return this.#fingerprints[2 * this.next + 1]!
  }

  /** Moves the key that `next` is at into an area. */
  dealTo(area: Area, at: number): void {
    const i = this.next++
    const costs = this.#costs
    area.fingerprints[2 * at] = this.#fingerprints[2 * i]!
    area.fingerprints[2 * at + 1] = this.#fingerprints[2 * i + 1]!
    area.costs[at] = Math.min(typeof costs === 'number' ? costs : costs[i]!, MOST_COST)
  }

  /** What is known of the `at`th key of an area, which is the `i`th here. */
  take(area: Area, at: number, i: number): void {
    this.allowed[i] = area.allowed[at]!
    this.#retryAfterMs[i] = area.retryAfterMs[at]!
    if (this.remaining) this.remaining[i] = area.remaining[at]!
  }

  /** So many more keys are answered. */
  answer(keys: number): void {
    this.#answered += keys
    if (this.#answered === this.length) this.resolve(this)
  }

  protected get isSent(): boolean {
    return this.next > 0
  }
}

/** Keys of one batch, in one area of one ring. */
export class Chunk implements Asked {
  readonly areaIndex: number
  length = 0
  readonly #batch: DealtBatch
  readonly #area: Area
  /** Where in the batch each of its keys is. */
  readonly #places: Int32Array
  readonly #free: (chunk: Chunk) => void

  constructor(batch: DealtBatch, areaIndex: number, area: Area, free: (chunk: Chunk) => void) {
    this.#batch = batch
    this.areaIndex = areaIndex
    this.#area = area
    this.#places = new Int32Array(Math.min(AREA_KEYS, batch.length - batch.next))
    this.#free = free
  }

  get isFull(): boolean {
    return this.length === AREA_KEYS
  }

  /** Takes the next key of the batch. */
  deal(): void {
    this.#places[this.length] = this.#batch.next
    this.#batch.dealTo(this.#area, this.length++)
  }

  write({ words }: RingMemory, slot: number): void {
    words[slot + OP] = Op.BATCH
    words[slot + WAY] = this.areaIndex
    words[slot + CHARGED_TICK] = this.length
    words[slot + REFUNDS] = this.#batch.remaining === undefined ? 0 : 1
  }

  read(): void {
    for (let at = 0; at < this.length; at++) this.#batch.take(this.#area, at, this.#places[at]!)
    this.#batch.answer(this.length)
    this.#free(this)
  }

  reject(error: unknown): void {
    this.#batch.reject(error)
    this.#free(this)
  }
}
