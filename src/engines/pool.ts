import { Outcome } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import type { Signal } from '../core/on-abort.js'
import { Op } from '../memory/request-ring.js'
import type { Costs } from './batch.js'
import { type Chunk, PartitionedBatch } from './partitioned-batch.js'
import { aborted, noThreadsError, overloadedError, workerLostError } from './pool-errors.js'
import { type DecidingEngine, type PoolDecision, PoolRequest, type Settle, writeCheck } from './request.js'
import { RingClient } from './ring-client.js'
import type { SharedLimiter } from './share.js'
import { Threads } from './threads.js'
import type { RingTask } from './worker.js'

export interface PoolSettings {
  readonly minThreads: number
  readonly maxThreads: number
  /** Keys that may wait for an answer before more is refused. */
  readonly maxPending: number
  readonly resourceLimits: object | undefined
}

/**
 * An answerer with nothing to do for so long ends, and the next request starts it again, which takes as long as a task of the
 * pool. While it runs, piscina keeps the process alive: so this is how long a process stays that has nothing else to do.
 */
const IDLE_MS = 50
/** Without a request for so long, the keys are dealt to as few threads as at the beginning. */
export const SHRINK_AFTER_MS = 1_000
/** After an answer, the next ones are looked for in so many turns of the event loop: to be told of each costs both sides more. */
const LOOKS = 5
/** A turn that asks for much shows it in parts of so many: the thread decides on the first while the rest is written. */
const SEND_AFTER = 16
/** Answerers of one ring that end, one after another, without an answer: what is asked there is given up. */
const MOST_FAILURES = 10
/** Of the backlog, before they are cut off. */
const MOST_PASSED = 1_024
const LONGEST_TIMER_MS = 2 ** 31 - 1

// As they were when this was loaded: a test that stops the timers of its own code should not stop what it decides by.
const { queueMicrotask, setImmediate } = globalThis

let rings = 0

/**
 * Decides in other threads. Each has a ring of its own (`ring-transport.ts`), and a key is always dealt to the same ring, so its
 * requests are answered in their order. What is asked in one turn of the event loop's microtasks is shown to the threads in
 * parts, the last of them at its end. What has no room in a ring waits here, in one queue, and all that is asked later waits behind it.
 */
export class PoolEngine implements DecidingEngine {
  readonly ruleName: string
  readonly #settings: PoolSettings
  readonly #share: SharedLimiter
  readonly #threads: Threads
  readonly #clients: RingClient[] = []
  /** How many of the clients keys are dealt to. */
  #active: number
  /** One more client is to be dealt to, once it is ready and nothing is under way in the others. */
  #growing: RingClient | undefined = undefined
  readonly #backlog: (PoolRequest | PartitionedBatch)[] = []
  #backlogAt = 0
  /** Keys that wait for an answer. */
  #pending = 0
  #isFlushing = false
  #whenIdle: (() => void)[] = []
  /** Nobody's handle keeps the process alive while an answer is awaited; this does. */
  readonly #alive = setInterval(() => {}, LONGEST_TIMER_MS).unref()
  readonly #shrink: NodeJS.Timeout
  readonly #runs = new Set<Promise<void>>()
  readonly #flushLater = () => this.#flushTurn()

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(share: SharedLimiter, settings: PoolSettings) {
    this.ruleName = share.rule
    this.#share = share
    this.#settings = settings
    this.#threads = new Threads(settings)
    this.#active = settings.minThreads
    for (let i = 0; i < settings.minThreads; i++) this.#addClient()
    this.#shrink = setTimeout(() => this.#setActive(settings.minThreads), SHRINK_AFTER_MS).unref()
  }

  /** Decides about one key. Rejects with one of the errors of `pool-errors.ts`. */
  check(lo: number, hi: number, cost: number): Promise<unknown> {
    const client = this.#clients[this.#ringOf(hi)]!
    if (this.#backlog.length > 0 || this.#growing !== undefined || client.isFull) {
      return this.ask(Op.CHECK, lo, hi, cost)
    }
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    let settle!: Settle
    // Written out here, V8 makes neither this function nor the one to reject with.
    const promise = new Promise<PoolDecision>((resolve) => {
      settle = resolve
    })
    writeCheck(client.memory, client.add(settle), lo, hi, cost)
    if (client.unsent >= SEND_AFTER) this.#show(client)
    this.#count(1)
    return promise
  }

  /** Asks about one key. Rejects with one of the errors of `pool-errors.ts`. */
  ask(op: Op, lo: number, hi: number, cost: number, signal?: Signal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(aborted(signal.reason, false))
    return this.#submit(new PoolRequest(this, op, lo, hi, cost), signal)
  }

  /** The same, about so many milliseconds. */
  askAbout(op: Op, lo: number, hi: number, ms: number): Promise<unknown> {
    const request = new PoolRequest(this, op, lo, hi, 0)
    request.ms = ms
    return this.#submit(request)
  }

  /** Gives back what the decision charged. Once: nothing is given back a second time. */
  giveBack(decision: PoolDecision): Promise<unknown> {
    if (decision.outcome !== Outcome.CHARGED) return Promise.resolve(0)
    const refusal = this.#refusal()
    return refusal === undefined ? this.takeBack(decision) : Promise.reject(refusal)
  }

  /** The same for a caller that has gone: however much there is to do, for nobody would try again. */
  takeBack(decision: PoolDecision): Promise<unknown> {
    decision.outcome = Outcome.GIVEN_BACK
    const request = new PoolRequest(this, Op.GIVE_BACK, decision.lo, decision.hi, decision.cost)
    request.charge = decision
    return this.#admit(request)
  }

  /** Decides many keys; those of one thread in order. */
  askMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean, signal?: Signal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(aborted(signal.reason, false))
    const batch = new PartitionedBatch(fingerprints, costs, withRemaining)
    if (batch.length === 0) batch.answer(0)
    return batch.length === 0 ? batch.promise : this.#submit(batch, signal)
  }

  /** Resolves when each of the threads that stay has answered. */
  async ready(): Promise<void> {
    await Promise.all(this.#clients.slice(0, this.#settings.minThreads).map((_, ring) => this.#flush(ring)))
  }

  /** Lets every thread add what it has counted to the statistics of all. */
  async flush(): Promise<void> {
    // A thread at rest has done so.
    await Promise.all(
      this.#clients.map((client, ring) => !(client.isAtRest && client.isEmpty) && this.#flush(ring)),
    )
  }

  #flush(ring: number): Promise<unknown> {
    const request = new PoolRequest(this, Op.FLUSH, 0, 0, 0)
    request.ring = ring
    return this.#admit(request)
  }

  /** Answers all requests, then ends the threads. No call may follow. */
  async close(): Promise<void> {
    while (this.#pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    clearInterval(this.#alive)
    clearTimeout(this.#shrink)
    for (const client of this.#clients) client.close()
    await Promise.all(this.#runs)
    await this.#threads.close()
  }

  #submit(request: PoolRequest | PartitionedBatch, signal?: Signal): Promise<unknown> {
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    if (signal !== undefined) request.endBy(signal)
    return this.#admit(request)
  }

  #admit(request: PoolRequest | PartitionedBatch): Promise<unknown> {
    if (this.#backlog.length > 0 || !this.#place(request)) this.#backlog.push(request)
    this.#count(request.length)
    return request.promise
  }

  /** So many more keys wait. */
  #count(keys: number): void {
    if (this.#pending === 0) this.#alive.ref()
    this.#pending += keys
    if (this.#isFlushing) return
    this.#isFlushing = true
    queueMicrotask(this.#flushLater)
  }

  /** Why nothing can be asked now. */
  #refusal(): unknown {
    const { maxPending } = this.#settings
    return this.#pending >= maxPending ? overloadedError(this.#pending, maxPending) : undefined
  }

  /** Shows the threads all that this turn has put into their rings. */
  #flushTurn(): void {
    this.#isFlushing = false
    if (this.#backlog.length > 0) this.#grow()
    for (const client of this.#clients) {
      if (client.unsent > 0) this.#show(client)
      this.#listen(client)
    }
  }

  #show(client: RingClient): void {
    if (client.send()) this.#start(client)
  }

  /** Puts a request, or what there is room for of a batch, into the rings; false: it has to wait. */
  #place(request: PoolRequest | PartitionedBatch): boolean {
    if (this.#growing?.isReady) {
      // What is under way was dealt out otherwise, and comes first.
      if (this.#clients.some((client) => !client.isEmpty)) return false
      this.#setActive(this.#active + 1)
    }
    if (request instanceof PartitionedBatch) return this.#partition(request)
    const client = this.#clients[request.ring < 0 ? this.#ringOf(request.hi) : request.ring]!
    if (client.isFull) return false
    client.put(request)
    return true
  }

  #partition(batch: PartitionedBatch): boolean {
    if (this.#active === 1) return this.#partitionToOne(batch, this.#clients[0]!)
    const chunks: (Chunk | undefined)[] = []
    while (batch.left > 0) {
      const ring = this.#ringOf(batch.hi)
      const client = this.#clients[ring]!
      const chunk = chunks[ring] ?? client.open(batch)
      if (chunk === undefined) break
      chunk.addOne()
      chunks[ring] = chunk.isFull ? undefined : chunk
      if (chunk.isFull) this.#putWhole(chunk, client)
    }
    chunks.forEach((chunk, ring) => {
      if (chunk !== undefined) this.#clients[ring]!.put(chunk)
    })
    return batch.left === 0
  }

  #partitionToOne(batch: PartitionedBatch, client: RingClient): boolean {
    while (batch.left > 0) {
      const chunk = client.open(batch)
      if (chunk === undefined) return false
      chunk.addAll()
      this.#putWhole(chunk, client)
    }
    return true
  }

  /** Enough for the thread to begin with, while the rest is dealt. */
  #putWhole(chunk: Chunk, client: RingClient): void {
    client.put(chunk)
    this.#show(client)
  }

  /** By bits that do not say which set a key is in. */
  #ringOf(hi: number): number {
    return this.#active === 1 ? 0 : ((hi >>> 16) * this.#active) >>> 16
  }

  #listen(client: RingClient): void {
    if (client.isListening || client.isEmpty) return
    client.isListening = true
    const next = client.looks > 0 ? undefined : client.nextAnswer()
    // Never at once, as a microtask: a thread that keeps up would leave the event loop no turn.
    if (next === undefined) setImmediate(() => this.#hear(client))
    else void next.then(() => this.#hear(client))
  }

  #hear(client: RingClient): void {
    client.isListening = false
    client.stopWaiting()
    client.looks = this.#settle(client) > 0 ? LOOKS : client.looks - 1
    this.#listen(client)
  }

  #settle(client: RingClient): number {
    const keys = client.settle()
    if (keys > 0) {
      client.failures = 0
      this.#threads.succeeded()
      this.#forget(keys)
    }
    return keys
  }

  /** So many keys wait no more. */
  #forget(keys: number): void {
    this.#pending -= keys
    this.#sendBacklog()
    if (this.#pending > 0) return
    this.#alive.unref()
    this.#shrink.refresh()
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #sendBacklog(): void {
    const backlog = this.#backlog
    if (backlog.length === 0) return
    let at = this.#backlogAt
    for (; at < backlog.length; at++) {
      const request = backlog[at]!
      if (request.isSettled) this.#pending -= request instanceof PartitionedBatch ? request.left : 1
      else if (!this.#place(request)) break
    }
    if (at === backlog.length) backlog.length = at = 0
    else if (at > MOST_PASSED) {
      backlog.splice(0, at)
      at = 0
    }
    this.#backlogAt = at
    this.#flushTurn()
  }

  /** Begins to start one more thread, if there may be one. */
  #grow(): void {
    if (this.#growing !== undefined || this.#active === this.#settings.maxThreads) return
    const client = this.#clients[this.#active] ?? this.#addClient()
    this.#growing = client
    if (client.start()) this.#start(client)
  }

  #setActive(clients: number): void {
    if (this.#pending > 0 && clients < this.#active) return
    this.#active = clients
    this.#growing = undefined
  }

  #addClient(): RingClient {
    const client = new RingClient(++rings, this)
    this.#clients.push(client)
    return client
  }

  #start(client: RingClient): void {
    const { id, memory, starts: start } = client
    const task: RingTask = { id, start, ring: memory.buffer, limiter: this.#share, idleMs: IDLE_MS }
    const run = this.#threads
      .run(task, () => client.giveUp(start))
      .catch((error: unknown) => this.#lost(client, start, error))
    this.#runs.add(run)
    void run.finally(() => this.#runs.delete(run))
  }

  /** The worker of this ring died, unless it had already handed the ring to the next one. */
  #lost(client: RingClient, start: number, error: unknown): void {
    if (start !== client.starts) return
    if (client === this.#growing) this.#growing = undefined
    client.recover()
    const answered = this.#settle(client)
    const lost = client.failInFlight(workerLostError(error))
    client.failures = answered + lost > 0 ? 0 : client.failures + 1
    const isNone = error instanceof MillraceError // of the thread itself none is
    const isHopeless = isNone || client.failures >= MOST_FAILURES
    if (isHopeless) client.failures = MOST_FAILURES - 1 // what is asked next is tried once
    const givenUp = isHopeless ? client.abandon(isNone ? error : noThreadsError(error)) : 0
    if (!client.isEmpty) {
      this.#show(client)
      this.#listen(client)
    }
    if (lost + givenUp > 0) this.#forget(lost + givenUp)
  }
}
