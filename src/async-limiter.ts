/// <reference lib="esnext.disposable" preserve="true" />

import {
  blockMs,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkSignal,
  checkUpdate,
  checkWaitOptions,
  closed,
  foreignDecisionError,
  isDecision,
  neverAdmittedError,
  ownCosts,
  usageMs,
} from './checks.js'
import type { Clock } from './core/clock.js'
import type { Decision } from './core/decision.js'
import type { Duration } from './core/duration.js'
import { MillraceError } from './core/errors.js'
import { type Inspect, inspectAs } from './core/inspect.js'
import type { Signal } from './core/on-abort.js'
import { WordWatch } from './core/word-watch.js'
import type { BatchDecision, Costs } from './engines/batch.js'
import { InlineEngine } from './engines/inline.js'
import { PoolEngine, type PoolSettings } from './engines/pool.js'
import { PoolDecision } from './engines/request.js'
import { type SharedLimiter, shareOf } from './engines/share.js'
import { WaitQueues } from './engines/wait-queues.js'
import { type LimiterFile, type LimiterRule, type LimiterStats, ruleOf } from './limiter.js'
import type { Arena } from './memory/arena.js'
import { KeyReader } from './memory/key-reader.js'
import type { Key, KeyHandle, PackedKeys } from './memory/keys.js'
import { HEADER } from './memory/layout.js'
import { Op } from './memory/request-ring.js'

/** Ends one call: it rejects with `ERR_MILLRACE_ABORTED`; what had been decided by then stays charged. */
export interface CallOptions {
  signal?: Signal
}

/**
 * A limiter that decides in the threads of a pool: the methods of {@link Limiter}, which say what each does, as promises.
 * Made by `createLimiter` with `engine: 'pool'`. A decision comes with all its figures. The requests of a key are answered
 * in the order in which they were made.
 *
 * What {@link Limiter} throws, these reject with; and besides with `ERR_MILLRACE_OVERLOADED` where too much waits already
 * (nothing was charged), `ERR_MILLRACE_WORKER_LOST` where the thread ended that was at it (`mayBeCharged`),
 * `ERR_MILLRACE_NO_THREADS` where none can be kept running, and `ERR_MILLRACE_ABORTED` (`mayBeCharged` says which).
 */
export class AsyncLimiter implements AsyncDisposable {
  readonly #arena: Arena
  readonly #ruleName: string
  readonly #clock: Clock
  readonly #file: LimiterFile | undefined
  readonly #keys: KeyReader
  readonly #updates: WordWatch
  readonly #waiters: WaitQueues
  /** For what takes no decision: the limit, and statistics. */
  readonly #inline: InlineEngine
  readonly #pool: PoolEngine
  #closing: Promise<void> | undefined = undefined

  /** @internal @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(arena: Arena, ruleName: string, clock: Clock, settings: PoolSettings, file?: LimiterFile) {
    this.#arena = arena
    this.#ruleName = ruleName
    this.#clock = clock
    this.#file = file
    this.#keys = new KeyReader(this, arena)
    this.#updates = new WordWatch(arena.words, HEADER.UPDATES)
    this.#waiters = new WaitQueues(clock, this.#updates)
    this.#inline = new InlineEngine(arena, ruleName, clock)
    this.#pool = new PoolEngine(this.#shared(), settings)
  }

  /**
   * Resolves when the threads that stay (`pool.minThreads`) have started and can decide at once. Without it, the first calls wait
   * for that. Rejects with `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_WORKER_LOST` and `ERR_MILLRACE_CLOSED`.
   */
  async ready(): Promise<void> {
    await this.#open().ready()
  }

  /** What this limiter holds keys to, now. */
  get rule(): LimiterRule {
    this.#open()
    return ruleOf(this.#arena, this.#ruleName, this.#inline.limit)
  }

  /** @see Limiter.check */
  check(key: Key, cost = 1, options?: CallOptions): Promise<Decision> {
    return this.#request(Op.CHECK, key, cost, options)
  }

  /** @see Limiter.peek */
  peek(key: Key, cost = 1, options?: CallOptions): Promise<Decision> {
    return this.#request(Op.PEEK, key, cost, options)
  }

  /**
   * A batch is dealt out among the threads that decide then; each key's decisions keep their order.
   * @see Limiter.checkMany
   */
  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: { remaining?: boolean } & CallOptions = {},
  ): Promise<BatchDecision> {
    this.#open()
    const { fingerprints } = this.#keys.pack(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    checkRemaining(remaining)
    checkSignal(signal)
    const own = ownCosts(costs, fingerprints.length / 2)
    return (await this.#open().checkMany(fingerprints, own, remaining, signal)) as BatchDecision
  }

  /** Hashes keys once, in this thread and at once. @see Limiter.pack */
  pack(keys: readonly Key[]): PackedKeys {
    this.#open()
    return this.#keys.pack(keys)
  }

  /** Hashes a key once, in this thread and at once. @see Limiter.handle */
  handle(key: string): KeyHandle {
    this.#open()
    return this.#keys.handle(key)
  }

  /** @see Limiter.wait */
  async wait(key: Key, options: { cost?: number; signal?: Signal } = {}): Promise<Decision> {
    this.#open()
    const { cost, signal } = checkWaitOptions(options)
    const { lo, hi } = this.#keys.read(key)
    this.#open() // asked again: a getter may have closed it
    const want = {
      lo,
      hi,
      decide: () => this.#open().request(Op.CHECK, lo, hi, cost) as Promise<Decision>,
      giveBack: (decision: Decision) => this.#giveBack(decision as PoolDecision),
      never: () => neverAdmittedError(cost, this.#inline.limit),
    }
    return this.#waiters.wait(want, signal)
  }

  /** @see Limiter.usage */
  async usage(key: Key, lastMs: Duration = this.#arena.shape.windowMs): Promise<number> {
    const pool = this.#open()
    const ms = usageMs(lastMs, this.#arena.shape.windowMs)
    const { lo, hi } = this.#keys.read(key)
    return (await pool.requestWithMs(Op.USAGE, lo, hi, ms)) as number
  }

  /** @see Limiter.refund */
  refund(decision: Decision): Promise<number>
  /** @see Limiter.refund */
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    const pool = this.#open()
    if (what instanceof PoolDecision && what.engine === pool) {
      const { lo, hi } = what
      const given = (await pool.giveBack(what)) as number
      this.#waiters.wake(lo, hi)
      return given
    }
    if (isDecision(what)) throw foreignDecisionError(what)
    return this.#requestAndWake(Op.REFUND, what as Key, cost as number)
  }

  /** @see Limiter.penalize */
  async penalize(key: Key, cost: number): Promise<boolean> {
    this.#open()
    checkPenalty(cost)
    return (await this.#request<number>(Op.PENALIZE, key, cost)) === 1
  }

  /** @see Limiter.block */
  async block(key: Key, ms: Duration): Promise<boolean> {
    const pool = this.#open()
    const forMs = blockMs(ms)
    const { lo, hi } = this.#keys.read(key)
    const isBlocked = (await pool.requestWithMs(Op.BLOCK, lo, hi, forMs)) === 1
    this.#waiters.wake(lo, hi) // it may end earlier than the one before
    return isBlocked
  }

  /** @see Limiter.unblock */
  async unblock(key: Key): Promise<boolean> {
    return (await this.#requestAndWake(Op.UNBLOCK, key)) === 1
  }

  /** @see Limiter.clear */
  async clear(key: Key): Promise<void> {
    await this.#requestAndWake(Op.CLEAR, key)
  }

  /** Decisions under way may still be by the limit before. @see Limiter.update */
  async update(rule: string, change: { limit: number }): Promise<void> {
    this.#open()
    const limit = checkUpdate(rule, this.#ruleName, change)
    this.#open() // again: a getter may have closed it
    this.#inline.limit = limit
    this.#updates.check()
  }

  /** For `attachLimiter` in another thread, which decides there by itself, on the same counts. @see Limiter.share */
  share(): SharedLimiter {
    this.#open()
    return this.#shared()
  }

  /** What has happened in all threads, those of the pool and this one completely. @see Limiter.stats */
  async stats(): Promise<LimiterStats> {
    await this.#open().flush()
    return this.#inline.statistics()
  }

  /**
   * @internal When a charged decision took effect: as `InlineDecision.effectMs`, but the reading by which it was decided has stayed
   * in its thread. It lies between the question and the answer, in the granule that was charged; any moment there will do for
   * a log, for a window holds the same granules wherever in them it begins.
   */
  effectMs(decision: Decision, askedMs: number, answeredMs: number): number {
    return Math.max(askedMs, this.#inline.estimates.effectOf(decision as PoolDecision, answeredMs))
  }

  /** Answers what is under way, then ends the threads. May be called twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#closing !== undefined ? { isClosed: true } : this.rule
    return inspectAs('AsyncLimiter', fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#waiters.close(closed())
    await this.#pool.close()
    this.#inline.close()
    this.#file?.release()
  }

  #request<T>(op: Op, key: Key, cost: number, options?: CallOptions): Promise<T> {
    try {
      this.#open()
      checkCost(cost)
      const signal = options === undefined ? undefined : signalOf(options)
      const { lo, hi } = this.#keys.read(key)
      const pool = this.#open() // again: a getter may have closed it
      if (op === Op.CHECK && signal === undefined) return pool.check(lo, hi, cost) as Promise<T>
      return pool.request(op, lo, hi, cost, signal) as Promise<T>
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Whoever the decision was for has gone, and would not hear of it either if the thread that is to give it back were lost. */
  #giveBack(decision: PoolDecision): void {
    this.#pool.forceGiveBack(decision).catch((error: unknown) => {
      if (!(error instanceof MillraceError)) throw error
    })
  }

  /** For what may leave the key more room. */
  async #requestAndWake(op: Op, key: Key, cost = 0): Promise<number> {
    const pool = this.#open()
    checkCost(cost)
    const { lo, hi } = this.#keys.read(key)
    const changed = (await pool.request(op, lo, hi, cost)) as number
    this.#waiters.wake(lo, hi)
    return changed
  }

  #open(): PoolEngine {
    if (this.#closing !== undefined) throw closed()
    return this.#pool
  }

  #shared(): SharedLimiter {
    return shareOf(this.#arena, this.#ruleName, this.#clock, this.#file?.place)
  }
}

function signalOf(options: CallOptions): Signal | undefined {
  checkOptions(options, ['signal'])
  const { signal } = options
  checkSignal(signal)
  return signal
}
