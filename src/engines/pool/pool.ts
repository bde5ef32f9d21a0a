import type { Costs } from '../../core/batch-decision.js'
import { DecisionCounts } from '../../core/decision-counts.js'
import { MillraceError } from '../../core/errors.js'
import { LONGEST_TIMER_MS } from '../../core/long-timer.js'
import type { Signal } from '../../core/on-abort.js'
import { clearTimeout, queueMicrotask, setImmediate, setTimeout } from '../../core/real-timers.js'
import { unitsOf } from '../../core/units.js'
import { OF_ALL, OF_RULE, Op } from '../../memory/request-ring.js'
import type { SharedLimiter } from '../share.js'
import { Backlog } from './backlog.js'
import { batchCountsIn, type Chunk, type CountChunk, PartitionedBatch } from './partitioned-batch.js'
import {
  type AnyPoolDecision,
  type DecidingEngine,
  type DecidingRule,
  isOf,
  type PoolDecision,
} from './pool-decision.js'
import { abortedError, noThreadsError, overloadedError, workerLostError } from './pool-errors.js'
import { PoolRequest, type RequestOptions, type Resolve, writeCheck } from './request.js'
import { RingClient } from './ring-client.js'
import { slotOfRule } from './ring-transport.js'
import { type ThreadOptions, Threads } from './threads.js'
import type { RingTask } from './worker.js'

export interface PoolSettings extends ThreadOptions {
  /** While this many keys are pending, further calls are refused. */
  readonly maxPending: number
}

/**
 * A server ends after this long without a request. Starting it again costs as much as a piscina task. Until
 * it ends, piscina keeps the process alive.
 */
const IDLE_MS = 50
/** After this long without a request, the keys are partitioned over `minThreads` rings again. */
export const SHRINK_AFTER_MS = 1_000
/** After a reply, the client polls in this many turns of the event loop: a wake-up would cost more. */
const POLLS_AFTER_REPLY = 5
/** The client publishes after this many requests of a turn, so that the worker can start on them. */
const PUBLISH_AFTER = 16
/** After this many servers in a row died without a reply, all requests of their ring are rejected. */
const MAX_FAILURES = 10

let rings = 0

/**
 * Decides on workers. Each worker serves a ring of its own (`ring-transport.ts`). The keys are partitioned
 * over the rings, so the requests of one key are decided in order. The requests of one microtask turn are
 * published in parts, the last part at its end. A request without room in its ring waits in one backlog, and
 * all later requests wait behind it.
 */
export class PoolEngine implements DecidingEngine {
  readonly ruleName: string
  readonly isShadow: boolean
  /** The option `unit`, if there is one rule. */
  readonly unit: number | undefined
  readonly rules: readonly DecidingRule[] | undefined
  readonly countsInUnits: boolean
  /** What the workers have decided for this thread. */
  readonly own: DecisionCounts
  readonly #names: readonly string[]
  readonly #settings: PoolSettings
  readonly #share: SharedLimiter
  readonly #onDamage: (error: MillraceError) => void
  readonly #threads: Threads
  readonly #clients: RingClient[] = []
  /** The number of rings that the keys are partitioned over. */
  #active: number
  /** The ring to add. It becomes active when its server has begun and all rings are empty. */
  #growing: RingClient | undefined = undefined
  readonly #backlog = new Backlog()
  /** How many keys wait for a reply. */
  #pending = 0
  #isFlushScheduled = false
  #whenIdle: (() => void)[] = []
  /** Keeps the process alive while a reply is pending: `Atomics.waitAsync` does not. */
  readonly #keepAlive = setInterval(() => {}, LONGEST_TIMER_MS).unref()
  readonly #shrink: NodeJS.Timeout
  readonly #runs = new Set<Promise<void>>()
  readonly #flushTurn = () => this.#publishAll()
  readonly #countChunk: CountChunk = (memory, slot, keys) => {
    const ofRules = this.#names.map((_, i) => batchCountsIn(memory, slotOfRule(slot, i) + OF_RULE))
    this.own.countBatch(keys, batchCountsIn(memory, slot + OF_ALL), this.#names, ofRules)
  }

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(
    share: SharedLimiter,
    settings: PoolSettings,
    rules: readonly DecidingRule[],
    nearLimit: number | undefined,
    onDamage: (error: MillraceError) => void,
  ) {
    this.own = new DecisionCounts(nearLimit)
    this.#names = rules.map(({ ruleName }) => ruleName)
    this.#onDamage = onDamage
    const [{ ruleName, isShadow = false, unit }] = rules as [DecidingRule]
    this.ruleName = ruleName
    this.isShadow = isShadow
    this.unit = rules.length === 1 ? unit : undefined
    this.rules = rules.length === 1 ? undefined : rules
    this.countsInUnits = rules.length > 1 && rules.some(({ unit }) => unit !== undefined)
    this.#share = share
    this.#settings = settings
    this.#threads = new Threads(settings)
    this.#active = settings.minThreads
    for (let i = 0; i < settings.minThreads; i++) this.#addClient()
    this.#shrink = setTimeout(() => this.#setActive(settings.minThreads), SHRINK_AFTER_MS).unref()
  }

  /** Decides one key, without a signal: the hot path. Rejects with an error of `pool-errors.ts`. */
  check(lo: number, hi: number, cost: number): Promise<unknown> {
    const client = this.#clients[this.#ringOf(hi)]!
    if (!this.#backlog.isEmpty || this.#growing !== undefined || client.isFull) {
      return this.request(Op.CHECK, lo, hi, cost)
    }
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    let resolveDecision!: Resolve
    // V8 inlines this executor: it allocates neither the executor nor the function that rejects.
    const promise = new Promise<AnyPoolDecision>((resolve) => {
      resolveDecision = resolve
    })
    writeCheck(client.memory, client.reserve(resolveDecision), lo, hi, cost)
    if (client.unpublished >= PUBLISH_AFTER) this.#publish(client)
    this.#addPending(1)
    return promise
  }

  /** Sends a request about one key. Rejects with an error of `pool-errors.ts`. */
  request(op: Op, lo: number, hi: number, cost: number, options?: RequestOptions): Promise<unknown> {
    const { limit, signal } = options ?? {}
    if (signal?.aborted) return Promise.reject(abortedError(signal.reason, false))
    const sent = op === Op.CHECK && limit !== undefined ? Op.CHECK_WITHIN : op
    const request = new PoolRequest(this, sent, lo, hi, cost)
    request.limit = limit
    return this.#submit(request, signal)
  }

  /** Sends a request that has milliseconds: a BLOCK, or a USAGE with the index of its rule. */
  requestWithMs(op: Op, lo: number, hi: number, ms: number, rule = 0): Promise<unknown> {
    const request = new PoolRequest(this, op, lo, hi, 0)
    request.number = ms
    request.rule = rule
    return this.#submit(request)
  }

  /** @see isOf */
  owns(decision: unknown): decision is AnyPoolDecision {
    return isOf(this, decision)
  }

  /** @see Changes.chargeMore */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): Promise<unknown> {
    const request = new PoolRequest(this, Op.CHARGE_MORE, lo, hi, actualCost)
    request.number = unitsOf(cost, this.unit ?? 1)
    request.rule = shadowed
    return this.#submit(request)
  }

  /** Gives back the charge of a decision, or that of a part of its cost, once. */
  giveBack(decision: AnyPoolDecision, cost?: number): Promise<unknown> {
    const refusal = isCharged(decision, cost) ? this.#refusal() : undefined
    return refusal === undefined ? this.forceGiveBack(decision, cost) : Promise.reject(refusal)
  }

  /** The same even when the pool is overloaded: the call was aborted, so its caller can't try again. */
  forceGiveBack(decision: AnyPoolDecision, cost?: number): Promise<unknown> {
    if (!isCharged(decision, cost)) return Promise.resolve(0)
    const { lo, hi } = decision.rules[0]!.charge
    const request = new PoolRequest(this, Op.GIVE_BACK, lo, hi, 0)
    request.takeCharges(decision, cost)
    return this.#enqueue(request)
  }

  /** Decides many keys. The keys of one ring are decided in order. */
  checkMany(
    fingerprints: Int32Array,
    costs: Costs,
    withRemaining: boolean,
    signal?: Signal,
  ): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(abortedError(signal.reason, false))
    const batch = new PartitionedBatch(
      fingerprints,
      costs,
      withRemaining,
      this.countsInUnits,
      this.#countChunk,
    )
    if (batch.length === 0) batch.countDecided(0)
    return batch.length === 0 ? batch.promise : this.#submit(batch, signal)
  }

  /** Resolves when each of the `minThreads` workers has replied once. */
  async ready(): Promise<void> {
    await Promise.all(this.#clients.slice(0, this.#settings.minThreads).map((_, ring) => this.#flush(ring)))
  }

  /** How many keys wait for a reply. */
  get pending(): number {
    return this.#pending
  }

  /** Lets each worker add its counts to the shared statistics. A worker at rest has done so already. */
  async flush(): Promise<void> {
    await Promise.all(
      this.#clients.map((client, ring) => !(client.isAtRest && client.isEmpty) && this.#flush(ring)),
    )
  }

  #flush(ring: number): Promise<unknown> {
    const request = new PoolRequest(this, Op.FLUSH, 0, 0, 0)
    request.ring = ring
    return this.#enqueue(request)
  }

  /** Waits for all replies, then ends the workers. No call may follow. */
  async close(): Promise<void> {
    while (this.#pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    clearInterval(this.#keepAlive)
    clearTimeout(this.#shrink)
    for (const client of this.#clients) client.close()
    await Promise.all(this.#runs)
    await this.#threads.close()
  }

  #submit(request: PoolRequest | PartitionedBatch, signal?: Signal): Promise<unknown> {
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    if (signal !== undefined) request.rejectOnAbort(signal)
    return this.#enqueue(request)
  }

  /** Why a call is refused now; undefined if it is not. */
  #refusal(): unknown {
    const { maxPending } = this.#settings
    return this.#pending >= maxPending ? overloadedError(this.#pending, maxPending) : undefined
  }

  #enqueue(request: PoolRequest | PartitionedBatch): Promise<unknown> {
    if (!this.#backlog.isEmpty || !this.#tryEnqueue(request)) this.#backlog.push(request)
    this.#addPending(request.length)
    return request.promise
  }

  #addPending(keys: number): void {
    if (this.#pending === 0) this.#keepAlive.ref()
    this.#pending += keys
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    queueMicrotask(this.#flushTurn)
  }

  /** Publishes what this turn has enqueued since the last part. */
  #publishAll(): void {
    this.#isFlushScheduled = false
    if (!this.#backlog.isEmpty) this.#grow()
    for (const client of this.#clients) {
      if (client.unpublished > 0) this.#publish(client)
      this.#scheduleReceive(client)
    }
  }

  #publish(client: RingClient): void {
    if (client.publish()) this.#startServer(client)
  }

  /** Enqueues a request in its ring, or as much of a batch as fits. False: the rest must wait. */
  #tryEnqueue(request: PoolRequest | PartitionedBatch): boolean {
    if (this.#growing?.isReady) {
      // The requests in flight are partitioned over fewer rings. They must be decided first.
      if (this.#clients.some((client) => !client.isEmpty)) return false
      this.#setActive(this.#active + 1)
    }
    if (request instanceof PartitionedBatch) return this.#partition(request)
    const client = this.#clients[request.ring < 0 ? this.#ringOf(request.hi) : request.ring]!
    if (client.isFull) return false
    client.enqueue(request)
    return true
  }

  #partition(batch: PartitionedBatch): boolean {
    if (this.#active === 1) return this.#partitionToOne(batch, this.#clients[0]!)
    const chunks: (Chunk | undefined)[] = []
    while (batch.keysLeft > 0) {
      const ring = this.#ringOf(batch.hi)
      const client = this.#clients[ring]!
      const chunk = chunks[ring] ?? client.allocateChunk(batch)
      if (chunk === undefined) break
      chunk.addOne()
      chunks[ring] = chunk.isFull ? undefined : chunk
      if (chunk.isFull) this.#enqueueFull(chunk, client)
    }
    chunks.forEach((chunk, ring) => {
      if (chunk !== undefined) this.#clients[ring]!.enqueue(chunk)
    })
    return batch.keysLeft === 0
  }

  #partitionToOne(batch: PartitionedBatch, client: RingClient): boolean {
    while (batch.keysLeft > 0) {
      const chunk = client.allocateChunk(batch)
      if (chunk === undefined) return false
      chunk.addAll()
      this.#enqueueFull(chunk, client)
    }
    return true
  }

  /** Publishes a full chunk at once: the worker decides it while the client partitions the rest. */
  #enqueueFull(chunk: Chunk, client: RingClient): void {
    client.enqueue(chunk)
    this.#publish(client)
  }

  /** The index of a key's ring, by bits of its fingerprint that don't select its sets. */
  #ringOf(hi: number): number {
    return this.#active === 1 ? 0 : ((hi >>> 16) * this.#active) >>> 16
  }

  #scheduleReceive(client: RingClient): void {
    if (client.isReceiving || client.isEmpty) return
    client.isReceiving = true
    const reply = client.pollsLeft > 0 ? undefined : client.waitForReply()
    // Never in a microtask: a worker that keeps up would then leave the event loop no turn.
    if (reply === undefined) setImmediate(() => this.#receive(client))
    else void reply.then(() => this.#receive(client))
  }

  #receive(client: RingClient): void {
    client.isReceiving = false
    client.endWait()
    client.pollsLeft = this.#readReplies(client) > 0 ? POLLS_AFTER_REPLY : client.pollsLeft - 1
    this.#scheduleReceive(client)
  }

  #readReplies(client: RingClient): number {
    const keys = client.readReplies()
    if (keys > 0) {
      client.failures = 0
      this.#threads.succeeded()
      this.#removePending(keys)
    }
    return keys
  }

  #removePending(keys: number): void {
    this.#pending -= keys
    this.#sendBacklog()
    if (this.#pending > 0) return
    this.#keepAlive.unref()
    this.#shrink.refresh()
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #sendBacklog(): void {
    if (this.#backlog.isEmpty) return
    const dropped = this.#backlog.drain((request) => this.#tryEnqueue(request))
    this.#pending -= dropped
    this.#publishAll()
  }

  /** Starts the server of one more ring, if `maxThreads` allows it. */
  #grow(): void {
    if (this.#growing !== undefined || this.#active === this.#settings.maxThreads) return
    const client = this.#clients[this.#active] ?? this.#addClient()
    this.#growing = client
    if (client.claimStart()) this.#startServer(client)
  }

  #setActive(rings: number): void {
    if (this.#pending > 0 && rings < this.#active) return
    this.#active = rings
    this.#growing = undefined
  }

  #addClient(): RingClient {
    const client = new RingClient(++rings, this, this.#onDamage)
    this.#clients.push(client)
    return client
  }

  #startServer(client: RingClient): void {
    const { id, memory, generation } = client
    const task: RingTask = { id, generation, ring: memory.buffer, limiter: this.#share, idleMs: IDLE_MS }
    const run = this.#threads
      .run(task, () => client.cancelStart(generation))
      .then(
        () => this.#handleEnd(client, generation),
        (error: unknown) => this.#handleLoss(client, generation, error),
      )
    this.#runs.add(run)
    void run.finally(() => this.#runs.delete(run))
  }

  /**
   * This server has ended by itself, when its ring was empty. If there are requests, and none has started another
   * server, the server has not seen them, or did not begin: REQUESTED or STATE was damaged.
   */
  #handleEnd(client: RingClient, generation: number): void {
    if (generation !== client.generation) return
    client.noteEnd()
    if (!client.isEmpty) this.#publish(client)
  }

  /** The worker with this server died. Nothing to do if a server of a later generation has begun since. */
  #handleLoss(client: RingClient, generation: number, error: unknown): void {
    if (generation !== client.generation) return
    if (client === this.#growing) this.#growing = undefined
    client.publishFinished()
    const replied = this.#readReplies(client)
    const lost = client.failInFlight(workerLostError(error))
    client.failures = replied + lost > 0 ? 0 : client.failures + 1
    const isNotStarted = error instanceof MillraceError // `Threads` could start no worker
    const isHopeless = isNotStarted || client.failures >= MAX_FAILURES
    if (isHopeless) client.failures = MAX_FAILURES - 1 // the next request gets one try
    const rejected = isHopeless ? client.failAll(isNotStarted ? error : noThreadsError(error)) : 0
    if (!client.isEmpty) {
      this.#publish(client)
      this.#scheduleReceive(client)
    }
    if (lost + rejected > 0) this.#removePending(lost + rejected)
  }
}

/** Whether a part of the cost of a decision, or all of it, has charged any rule. */
const isCharged = ({ rules }: AnyPoolDecision, cost: number | undefined): boolean =>
  rules.some((part: PoolDecision) => part.unitsOf(cost) !== undefined)
