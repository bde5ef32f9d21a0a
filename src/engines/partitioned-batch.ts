import { secondsOf } from '../core/decision.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { CHARGED_TICK, COST, EACH, OP, Op, OUTCOME, REFUNDS, requestOf, WAY } from '../memory/request-ring.js'
import { type BatchDecision, type Costs, checkEntry } from './batch.js'
import { PendingReply } from './pending-reply.js'
import { isNotStarted, noThreadsError } from './pool-errors.js'
import type { RingRequest } from './request.js'
import { MOST_COST } from './request.js'
import { AREA_KEYS, type Area, type RingMemory } from './ring-transport.js'

/** What other threads said of many keys. */
class PoolBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array
  readonly #retryAfterMs: Float64Array

  constructor(length: number, withRemaining: boolean, retryAfterMs: Float64Array) {
    this.length = length
    this.allowed = new Uint8Array(length)
    if (withRemaining) this.remaining = new Int32Array(length)
    this.#retryAfterMs = retryAfterMs
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    return this.#retryAfterMs[i]!
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const { length, allowed, remaining } = this
    const fields = remaining === undefined ? { length, allowed } : { length, allowed, remaining }
    return inspectAs('BatchDecision', fields, options, inspect)
  }
}

/** Many keys that other threads are asked about: each of its chunks goes to one of them. */
export class PartitionedBatch extends PendingReply<BatchDecision> {
  readonly length: number
  /** The first key that has not been dealt out. */
  next = 0
  readonly #found: PoolBatch
  readonly #retryAfterMs: Float64Array
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  #answered = 0

  constructor(fingerprints: Int32Array, costs: Costs, withRemaining: boolean) {
    super()
    const length = fingerprints.length / 2
    this.length = length
    this.#retryAfterMs = new Float64Array(length)
    this.#found = new PoolBatch(length, withRemaining, this.#retryAfterMs)
    this.#fingerprints = fingerprints
    this.#costs = costs
  }

  get withRemaining(): boolean {
    return this.#found.remaining !== undefined
  }

  /** How many keys are still to be dealt out. */
  get left(): number {
    return this.length - this.next
  }

  /** Of the key that `next` is at. */
  get hi(): number {
    return this.#fingerprints[2 * this.next + 1]!
  }

  /** One cost for all of them, at most MOST_COST; or EACH. */
  get cost(): number {
    return typeof this.#costs === 'number' ? Math.min(this.#costs, MOST_COST) : EACH
  }

  /** Moves the keys from `next` on into an area. */
  copyNext(area: Area, at: number, keys: number): void {
    const i = this.next
    this.next += keys
    area.fingerprints.set(this.#fingerprints.subarray(2 * i, 2 * (i + keys)), 2 * at)
    const costs = this.#costs
    if (typeof costs === 'number') return
    for (let k = 0; k < keys; k++) area.costs[at + k] = Math.min(costs[i + k]!, MOST_COST)
  }

  /** The same, of one key that goes to another ring than the next. */
  addOne(area: Area, at: number): void {
    const i = this.next++
    area.fingerprints[2 * at] = this.#fingerprints[2 * i]!
    area.fingerprints[2 * at + 1] = this.#fingerprints[2 * i + 1]!
    const costs = this.#costs
    if (typeof costs !== 'number') area.costs[at] = Math.min(costs[i]!, MOST_COST)
  }

  /** What is known of the first keys of an area, which are those from the `i`th on here. */
  take(area: Area, keys: number, i: number, refused: number): void {
    this.#found.allowed.set(area.allowed.subarray(0, keys), i)
    if (refused > 0) this.#retryAfterMs.set(area.retryAfterMs.subarray(0, keys), i)
    this.#found.remaining?.set(area.remaining.subarray(0, keys), i)
  }

  /** The same, of the `at`th key of an area, which is the `i`th here. */
  takeOne(area: Area, at: number, i: number, refused: number): void {
    this.#found.allowed[i] = area.allowed[at]!
    if (refused > 0) this.#retryAfterMs[i] = area.retryAfterMs[at]!
    if (this.#found.remaining) this.#found.remaining[i] = area.remaining[at]!
  }

  /** So many more keys are answered. */
  answer(keys: number): void {
    this.#answered += keys
    if (this.#answered === this.length) this.resolve(this.#found)
  }

  /** Some of it, so many keys, will not be answered. */
  lose(keys: number, error: unknown): void {
    const isAll = this.next === keys // that was dealt out
    this.reject(isNotStarted(error) && !isAll ? noThreadsError(error.cause, true) : error)
  }

  protected get isSent(): boolean {
    return this.next > 0
  }
}

/** Keys of one batch, in one area of one ring. */
export class Chunk implements RingRequest {
  readonly areaIndex: number
  length = 0
  readonly #batch: PartitionedBatch
  readonly #area: Area
  readonly #free: (chunk: Chunk) => void
  /** Where in the batch the first of its keys is, if the others follow it there; else where each of them is. */
  readonly #first: number
  #places: Int32Array | undefined = undefined

  constructor(batch: PartitionedBatch, areaIndex: number, area: Area, free: (chunk: Chunk) => void) {
    this.#batch = batch
    this.areaIndex = areaIndex
    this.#area = area
    this.#first = batch.next
    this.#free = free
  }

  get isFull(): boolean {
    return this.length === AREA_KEYS
  }

  /** Takes the next keys of the batch, as many as there is room for: the only ones that this chunk takes. */
  addAll(): void {
    this.length = Math.min(AREA_KEYS, this.#batch.left)
    this.#batch.copyNext(this.#area, 0, this.length)
  }

  /** Takes the next key of the batch. */
  addOne(): void {
    this.#places ??= new Int32Array(Math.min(AREA_KEYS, this.#batch.left))
    this.#places[this.length] = this.#batch.next
    this.#batch.addOne(this.#area, this.length++)
  }

  write({ words }: RingMemory, slot: number): void {
    const request = requestOf(slot)
    words[request + OP] = Op.BATCH
    words[request + COST] = this.#batch.cost
    words[slot + WAY] = this.areaIndex
    words[slot + CHARGED_TICK] = this.length
    words[slot + REFUNDS] = this.#batch.withRemaining ? 1 : 0
  }

  read({ words }: RingMemory, slot: number): void {
    const places = this.#places
    const refused = words[slot + OUTCOME]!
    if (places === undefined) this.#batch.take(this.#area, this.length, this.#first, refused)
    else for (let at = 0; at < this.length; at++) this.#batch.takeOne(this.#area, at, places[at]!, refused)
    this.#batch.answer(this.length)
    this.#free(this)
  }

  reject(error: unknown): void {
    this.#batch.lose(this.length, error)
    this.#free(this)
  }
}
