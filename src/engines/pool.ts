import { Outcome } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import type { Signal } from '../core/on-abort.js'
import { Op } from '../memory/slots.js'
import type { Costs } from './batch.js'
import { type Chunk, DealtBatch } from './dealt-batch.js'
import { Lane } from './lane.js'
import { aborted, noThreads, overloaded, workerLost } from './pool-errors.js'
import { type AnsweredDecision, type Asker, Request, type Settle, writeCheck } from './request.js'
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
/** A turn that asks for much shows it in parts of so many: the thread decides on the first while the rest is asked. */
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
export class PoolEngine implements Asker {
  readonly ruleName: string
  readonly #settings: PoolSettings
  readonly #share: SharedLimiter
  readonly #threads: Threads
  readonly #lanes: Lane[] = []
  /** How many of the lanes keys are dealt to. */
  #active: number
  /** One more lane is to be dealt to, once it is ready and nothing is under way in the others. */
  #growing: Lane | undefined = undefined
  readonly #backlog: (Request | DealtBatch)[] = []
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
    for (let i = 0; i < settings.minThreads; i++) this.#addLane()
    this.#shrink = setTimeout(() => this.#deal(settings.minThreads), SHRINK_AFTER_MS).unref()
  }

  /** Decides about one key. Rejects with one of the errors of `pool-errors.ts`. */
  check(lo: number, hi: number, cost: number): Promise<unknown> {
    const lane = this.#lanes[this.#ringOf(hi)]!
    if (this.#backlog.length > 0 || this.#growing !== undefined || lane.isFull) {
      return this.ask(Op.CHECK, lo, hi, cost)
    }
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    let settle!: Settle
    // Written out here, V8 makes neither this function nor the one to reject with.
    const promise = new Promise<AnsweredDecision>((resolve) => {
      settle = resolve
    })
    writeCheck(lane.memory, lane.add(settle), lo, hi, cost)
    if (lane.unsent >= SEND_AFTER) this.#show(lane)
    this.#count(1)
    return promise
  }

  /** Asks about one key. Rejects with one of the errors of `pool-errors.ts`. */
  ask(op: Op, lo: number, hi: number, cost: number, signal?: Signal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(aborted(signal.reason, false))
    return this.#submit(new Request(this, op, lo, hi, cost), signal)
  }

  /** The same, about so many milliseconds. */
  askAbout(op: Op, lo: number, hi: number, ms: number): Promise<unknown> {
    const request = new Request(this, op, lo, hi, 0)
    request.ms = ms
    return this.#submit(request)
  }

  /** Gives back what the decision charged. Once: nothing is given back a second time. */
  giveBack(decision: AnsweredDecision): Promise<unknown> {
    if (decision.outcome !== Outcome.CHARGED) return Promise.resolve(0)
    const refusal = this.#refusal()
    return refusal === undefined ? this.takeBack(decision) : Promise.reject(refusal)
  }

  /** The same for a caller that has gone: however much there is to do, for nobody would try again. */
  takeBack(decision: AnsweredDecision): Promise<unknown> {
    decision.outcome = Outcome.GIVEN_BACK
    const request = new Request(this, Op.GIVE_BACK, decision.lo, decision.hi, decision.cost)
    request.charge = decision
    return this.#admit(request)
  }

  /** Decides many keys; those of one thread in order. */
  askMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean, signal?: Signal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(aborted(signal.reason, false))
    const batch = new DealtBatch(fingerprints, costs, withRemaining)
    if (batch.length === 0) batch.answer(0)
    return batch.length === 0 ? batch.promise : this.#submit(batch, signal)
  }

  /** Resolves when each of the threads that stay has answered. */
  async ready(): Promise<void> {
    await Promise.all(this.#lanes.slice(0, this.#settings.minThreads).map((_, ring) => this.#flush(ring)))
  }

  /** Lets every thread add what it has counted to the statistics of all. */
  async flush(): Promise<void> {
    // A thread at rest has done so.
    await Promise.all(this.#lanes.map((lane, ring) => !(lane.isAtRest && lane.isEmpty) && this.#flush(ring)))
  }

  #flush(ring: number): Promise<unknown> {
    const request = new Request(this, Op.FLUSH, 0, 0, 0)
    request.ring = ring
    return this.#admit(request)
  }

  /** Answers what it has been asked, then ends the threads. Nothing may be asked any more. */
  async close(): Promise<void> {
    while (this.#pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    clearInterval(this.#alive)
    clearTimeout(this.#shrink)
    for (const lane of this.#lanes) lane.close()
    await Promise.all(this.#runs)
    await this.#threads.close()
  }

  #submit(asked: Request | DealtBatch, signal?: Signal): Promise<unknown> {
    const refusal = this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    if (signal !== undefined) asked.endBy(signal)
    return this.#admit(asked)
  }

  #admit(asked: Request | DealtBatch): Promise<unknown> {
    if (this.#backlog.length > 0 || !this.#place(asked)) this.#backlog.push(asked)
    this.#count(asked.length)
    return asked.promise
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
    return this.#pending >= maxPending ? overloaded(this.#pending, maxPending) : undefined
  }

  /** Shows the threads all that this turn has put into their rings. */
  #flushTurn(): void {
    this.#isFlushing = false
    if (this.#backlog.length > 0) this.#grow()
    for (const lane of this.#lanes) {
      if (lane.unsent > 0) this.#show(lane)
      this.#listen(lane)
    }
  }

  #show(lane: Lane): void {
    if (lane.send()) this.#start(lane)
  }

  /** Puts a request, or what there is room for of a batch, into the rings; false: it has to wait. */
  #place(asked: Request | DealtBatch): boolean {
    if (this.#growing?.isReady) {
      // What is under way was dealt out otherwise, and comes first.
      if (this.#lanes.some((lane) => !lane.isEmpty)) return false
      this.#deal(this.#active + 1)
    }
    if (asked instanceof DealtBatch) return this.#dealOut(asked)
    const lane = this.#lanes[asked.ring < 0 ? this.#ringOf(asked.hi) : asked.ring]!
    if (lane.isFull) return false
    lane.put(asked)
    return true
  }

  #dealOut(batch: DealtBatch): boolean {
    if (this.#active === 1) return this.#dealToOne(batch, this.#lanes[0]!)
    const chunks: (Chunk | undefined)[] = []
    while (batch.left > 0) {
      const ring = this.#ringOf(batch.hi)
      const lane = this.#lanes[ring]!
      const chunk = chunks[ring] ?? lane.open(batch)
      if (chunk === undefined) break
      chunk.dealOne()
      chunks[ring] = chunk.isFull ? undefined : chunk
      if (chunk.isFull) this.#putWhole(chunk, lane)
    }
    chunks.forEach((chunk, ring) => {
      if (chunk !== undefined) this.#lanes[ring]!.put(chunk)
    })
    return batch.left === 0
  }

  #dealToOne(batch: DealtBatch, lane: Lane): boolean {
    while (batch.left > 0) {
      const chunk = lane.open(batch)
      if (chunk === undefined) return false
      chunk.dealAll()
      this.#putWhole(chunk, lane)
    }
    return true
  }

  /** Enough for the thread to begin with, while the rest is dealt. */
  #putWhole(chunk: Chunk, lane: Lane): void {
    lane.put(chunk)
    this.#show(lane)
  }

  /** By bits that do not say which set a key is in. */
  #ringOf(hi: number): number {
    return this.#active === 1 ? 0 : ((hi >>> 16) * this.#active) >>> 16
  }

  #listen(lane: Lane): void {
    if (lane.isListening || lane.isEmpty) return
    lane.isListening = true
    const next = lane.looks > 0 ? undefined : lane.nextAnswer()
    // Never at once, as a microtask: a thread that keeps up would leave the event loop no turn.
    if (next === undefined) setImmediate(() => this.#hear(lane))
    else void next.then(() => this.#hear(lane))
  }

  #hear(lane: Lane): void {
    lane.isListening = false
    lane.stopWaiting()
    lane.looks = this.#settle(lane) > 0 ? LOOKS : lane.looks - 1
    this.#listen(lane)
  }

  #settle(lane: Lane): number {
    const keys = lane.settle()
    if (keys > 0) {
      lane.failures = 0
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
      const asked = backlog[at]!
      if (asked.isSettled) this.#pending -= asked instanceof DealtBatch ? asked.left : 1
      else if (!this.#place(asked)) break
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
    const lane = this.#lanes[this.#active] ?? this.#addLane()
    this.#growing = lane
    if (lane.start()) this.#start(lane)
  }

  #deal(lanes: number): void {
    if (this.#pending > 0 && lanes < this.#active) return
    this.#active = lanes
    this.#growing = undefined
  }

  #addLane(): Lane {
    const lane = new Lane(++rings, this)
    this.#lanes.push(lane)
    return lane
  }

  #start(lane: Lane): void {
    const { id, memory, starts: start } = lane
    const task: RingTask = { id, start, ring: memory.buffer, limiter: this.#share, idleMs: IDLE_MS }
    const run = this.#threads
      .run(task, () => lane.giveUp(start))
      .catch((error: unknown) => this.#lost(lane, start, error))
    this.#runs.add(run)
    void run.finally(() => this.#runs.delete(run))
  }

  /** The thread that answered the lane has ended; unless it had handed the lane to the next one before. */
  #lost(lane: Lane, start: number, error: unknown): void {
    if (start !== lane.starts) return
    if (lane === this.#growing) this.#growing = undefined
    lane.recover()
    const answered = this.#settle(lane)
    const lost = lane.bury(workerLost(error))
    lane.failures = answered + lost > 0 ? 0 : lane.failures + 1
    const isNone = error instanceof MillraceError // of the thread itself none is
    const isHopeless = isNone || lane.failures >= MOST_FAILURES
    if (isHopeless) lane.failures = MOST_FAILURES - 1 // what is asked next is tried once
    const givenUp = isHopeless ? lane.abandon(isNone ? error : noThreads(error)) : 0
    if (!lane.isEmpty) {
      this.#show(lane)
      this.#listen(lane)
    }
    if (lost + givenUp > 0) this.#forget(lost + givenUp)
  }
}
