import { BaseBatch } from '../../core/base-batch.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { FigureCounts } from '../../core/decision-counts.js'
import {
  CHARGED_TICK,
  COST,
  EACH,
  OP,
  Op,
  OUTCOME,
  QUANTITY,
  REFUNDS,
  requestOf,
  WAY,
} from '../../memory/request-ring.js'
import { PendingReply } from './pending-reply.js'
import { isNotStarted, noThreadsError } from './pool-errors.js'
import type { RingRequest } from './request.js'
import { MOST_COST } from './request.js'
import { AREA_KEYS, type Area, type RingMemory } from './ring-transport.js'

/** A batch that workers have decided. */
class PoolBatch extends BaseBatch {
  readonly #retryAfterMs: Float64Array

  constructor(length: number, remaining: Int32Array | Float64Array | undefined, retryAfterMs: Float64Array) {
    super(length, remaining)
    this.#retryAfterMs = retryAfterMs
  }

  protected waitOf(i: number): number {
    return this.#retryAfterMs[i]!
  }
}

/** Counts what came of the keys of a chunk, by the reply in its slot. */
export type CountChunk = (memory: RingMemory, slot: number, keys: number) => void

/** A `checkMany` call to the pool. Its keys are partitioned by ring, into chunks. */
export class PartitionedBatch extends PendingReply<BatchDecision> {
  readonly length: number
  /** The index of the first key that is in no chunk yet. */
  next = 0
  readonly #decision: PoolBatch
  readonly #retryAfterMs: Float64Array
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  /** Whether the costs and `remaining` are quantities: any of several rules has a unit. */
  readonly #countsInUnits: boolean
  readonly #count: CountChunk
  #decided = 0

  /** @param count counts what came of the keys of a chunk */
  constructor(
    fingerprints: Int32Array,
    costs: Costs,
    withRemaining: boolean,
    countsInUnits: boolean,
    count: CountChunk,
  ) {
    super()
    const length = fingerprints.length / 2
    this.length = length
    this.#retryAfterMs = new Float64Array(length)
    const remaining = countsInUnits ? new Float64Array(length) : new Int32Array(length)
    this.#decision = new PoolBatch(length, withRemaining ? remaining : undefined, this.#retryAfterMs)
    this.#countsInUnits = countsInUnits
    this.#count = count
    this.#fingerprints = fingerprints
    this.#costs = costs
  }

  get withRemaining(): boolean {
    return this.#decision.remaining !== undefined
  }

  /** How many keys are in no chunk yet. */
  get keysLeft(): number {
    return this.length - this.next
  }

  /** The upper half of the fingerprint of the key at `next`. */
  get hi(): number {
    return this.#fingerprints[2 * this.next + 1]!
  }

  /** The cost of every key; EACH if each key has its own. */
  get cost(): number {
    return typeof this.#costs === 'number' ? this.#costs : EACH
  }

  get countsInUnits(): boolean {
    return this.#countsInUnits
  }

  /** Copies the keys from `next` on into an area, as many as `keys`. */
  copyNext(area: Area, at: number, keys: number): void {
    const i = this.next
    this.next += keys
    area.fingerprints.set(this.#fingerprints.subarray(2 * i, 2 * (i + keys)), 2 * at)
    const costs = this.#costs
    if (typeof costs === 'number') return
    for (let k = 0; k < keys; k++) this.#writeCost(area, at + k, costs[i + k]!)
  }

  /** Copies one key, for batches whose neighbouring keys go to different rings. */
  copyOne(area: Area, at: number): void {
    const i = this.next++
    area.fingerprints[2 * at] = this.#fingerprints[2 * i]!
    area.fingerprints[2 * at + 1] = this.#fingerprints[2 * i + 1]!
    const costs = this.#costs
    if (typeof costs !== 'number') this.#writeCost(area, at, costs[i]!)
  }

  /** Reads the replies at the start of an area. They are about the keys from `i` on. */
  readReplies(area: Area, keys: number, i: number, refused: number): void {
    this.#decision.allowed.set(area.allowed.subarray(0, keys), i)
    if (refused > 0) this.#retryAfterMs.set(area.retryAfterMs.subarray(0, keys), i)
    this.#decision.remaining?.set(this.#remainingIn(area).subarray(0, keys), i)
  }

  /** Reads the reply at index `at` of an area. It is about the key at `i`. */
  readReply(area: Area, at: number, i: number, refused: number): void {
    this.#decision.allowed[i] = area.allowed[at]!
    if (refused > 0) this.#retryAfterMs[i] = area.retryAfterMs[at]!
    if (this.#decision.remaining) this.#decision.remaining[i] = this.#remainingIn(area)[at]!
  }

  /** Counts the keys of a chunk by the reply in its slot. */
  countChunk(memory: RingMemory, slot: number, keys: number): void {
    this.#count(memory, slot, keys)
    this.countDecided(keys)
  }

  /** Counts decided keys, and resolves the promise when all are. */
  countDecided(keys: number): void {
    this.#decided += keys
    if (this.#decided < this.length) return
    this.resolve(this.#decision)
  }

  /** A chunk of `keys` keys failed: rejects the promise. */
  fail(keys: number, error: unknown): void {
    const isAll = this.next === keys // no other chunk was sent
    this.reject(isNotStarted(error) && !isAll ? noThreadsError(error.cause, true) : error)
  }

  #writeCost(area: Area, at: number, cost: number): void {
    if (this.#countsInUnits) area.quantities[at] = cost
    else area.costs[at] = Math.min(cost, MOST_COST)
  }

  #remainingIn(area: Area): Int32Array | Float64Array {
    return this.#countsInUnits ? area.remainingQuantities : area.remaining
  }

  protected get isSent(): boolean {
    return this.next > 0
  }
}

/** A part of a batch: keys of one ring, in one of its areas. */
export class Chunk implements RingRequest {
  readonly areaIndex: number
  length = 0
  readonly #batch: PartitionedBatch
  readonly #area: Area
  readonly #free: (chunk: Chunk) => void
  /** The index of its first key in the batch. */
  readonly #first: number
  /** The index of each key in the batch; undefined if they follow the first one. */
  #indexes: Int32Array | undefined = undefined

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

  /** Takes the next keys of the batch, as many as fit. The chunk takes no others. */
  addAll(): void {
    this.length = Math.min(AREA_KEYS, this.#batch.keysLeft)
    this.#batch.copyNext(this.#area, 0, this.length)
  }

  /** Takes the next key of the batch. */
  addOne(): void {
    this.#indexes ??= new Int32Array(Math.min(AREA_KEYS, this.#batch.keysLeft))
    this.#indexes[this.length] = this.#batch.next
    this.#batch.copyOne(this.#area, this.length++)
  }

  write({ words, doubles }: RingMemory, slot: number): void {
    const request = requestOf(slot)
    const { cost, countsInUnits } = this.#batch
    words[request + OP] = Op.BATCH
    words[request + COST] = Math.min(cost, MOST_COST)
    if (countsInUnits) doubles[(slot >>> 1) + QUANTITY] = cost
    words[slot + WAY] = this.areaIndex
    words[slot + CHARGED_TICK] = this.length
    words[slot + REFUNDS] = this.#batch.withRemaining ? 1 : 0
  }

  read(memory: RingMemory, slot: number): void {
    const indexes = this.#indexes
    const refused = memory.words[slot + OUTCOME]!
    if (indexes === undefined) this.#batch.readReplies(this.#area, this.length, this.#first, refused)
    else for (let at = 0; at < this.length; at++) this.#batch.readReply(this.#area, at, indexes[at]!, refused)
    this.#batch.countChunk(memory, slot, this.length)
    this.#free(this)
  }

  reject(error: unknown): void {
    this.#batch.fail(this.length, error)
    this.#free(this)
  }
}

/** What came of the keys of a chunk beside the admissions, by `OF_ALL` or `OF_RULE` of its reply. */
export const batchCountsIn = ({ words }: RingMemory, at: number): Omit<FigureCounts, 'admitted'> => ({
  refused: words[at]!,
  blocked: words[at + 1]!,
  shadowRefused: words[at + 2]!,
  nearLimit: words[at + 3]!,
})
