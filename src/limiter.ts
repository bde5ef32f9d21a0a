/// <reference lib="esnext.disposable" preserve="true" />

import {
  blockMs,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkUpdate,
  checkWaitOptions,
  closed,
  foreignDecisionError,
  invalidCostError,
  isDecision,
  neverAdmittedError,
  ownCosts,
  usageMs,
} from './checks.js'
import type { Clock } from './core/clock.js'
import { type Decision, InlineDecision } from './core/decision.js'
import type { Duration } from './core/duration.js'
import { type Inspect, inspectAs } from './core/inspect.js'
import type { Signal } from './core/on-abort.js'
import type { Edge } from './core/rule.js'
import { WordWatch } from './core/word-watch.js'
import { type BatchDecision, type Costs, decideBatch } from './engines/batch.js'
import { InlineEngine, type EngineStatistics as LimiterStats } from './engines/inline.js'
import { type FilePlace, type SharedLimiter, shareOf } from './engines/share.js'
import { WaitQueues } from './engines/wait-queues.js'
import type { Arena } from './memory/arena.js'
import type { Hasher } from './memory/hash.js'
import { KeyReader } from './memory/key-reader.js'
import { checkKeyString, type Key, type KeyHandle, MAX_KEY_LENGTH, type PackedKeys } from './memory/keys.js'
import { HEADER } from './memory/layout.js'

export type { LimiterStats }

/** What a limiter holds keys to. */
export interface LimiterRule {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly granularityMs: number
  readonly edge: Edge
}

export function ruleOf({ shape, edge }: Arena, name: string, limit: number): LimiterRule {
  const { windowMs, buckets } = shape
  return { name, limit, windowMs, granularityMs: windowMs / buckets, edge }
}

/** The file that a limiter's counts live in. */
export interface LimiterFile {
  readonly place: FilePlace
  /** Ends this limiter's mapping of the file: its words may not be touched from then on. */
  release(): void
}

/**
 * A limiter that decides on the calling thread. Made by `createLimiter` or `attachLimiter`. Every method checks what it
 * is given once, here; the way down is `engines/inline.ts`, then `algorithms/sliding-window.ts`.
 *
 * Wherever a key is asked for: a string of 1 to 65,536 characters, or a handle of this limiter; else
 * `ERR_MILLRACE_INVALID_KEY` or `ERR_MILLRACE_FOREIGN_HANDLE`. Wherever a cost is: an integer >= 0, else
 * `ERR_MILLRACE_INVALID_COST`. After `close`, everything but `close` throws `ERR_MILLRACE_CLOSED`.
 */
export class Limiter implements AsyncDisposable {
  readonly #arena: Arena
  readonly #clock: Clock
  readonly #keys: KeyReader
  readonly #hasher: Hasher
  readonly #updates: WordWatch
  readonly #waiters: WaitQueues
  readonly #ruleName: string
  readonly #file: LimiterFile | undefined
  #engine: InlineEngine | undefined

  /** @internal */
  constructor(arena: Arena, ruleName: string, clock: Clock, file?: LimiterFile) {
    this.#arena = arena
    this.#file = file
    this.#clock = clock
    this.#ruleName = ruleName
    this.#keys = new KeyReader(this, arena)
    this.#hasher = this.#keys.hasher
    this.#updates = new WordWatch(arena.words, HEADER.UPDATES)
    this.#waiters = new WaitQueues(clock, this.#updates)
    this.#engine = new InlineEngine(arena, ruleName, clock)
  }

  /** Resolves at once: a limiter that decides on the calling thread has nothing to wait for. @see AsyncLimiter.ready */
  async ready(): Promise<void> {
    this.#open()
  }

  /** What this limiter holds keys to, now. */
  get rule(): LimiterRule {
    return ruleOf(this.#arena, this.#ruleName, this.#open().limit)
  }

  /**
   * Decides whether the key may use `cost` units now, and charges them if so. Cost 0 is allowed unless the key is blocked;
   * a cost above the limit is refused with `retryAfterMs: Infinity`.
   */
  check(key: Key, cost = 1): Decision {
    const engine = this.#engine
    if (engine === undefined) throw closed()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      return engine.checkNow(hasher.lo, hasher.hi, cost)
    }
    const handle = this.#keys.owned(key)
    const decision = engine.checkNow(handle.lo, handle.hi, cost, handle.way)
    if (handle.way !== engine.way) handle.way = engine.way // a store makes the handle's cache line dirty
    return decision
  }

  /** Decides the same, but charges nothing and gives the key no place. */
  peek(key: Key, cost = 1): Decision {
    const engine = this.#open()
    checkCost(cost)
    const { lo, hi } = this.#keys.read(key)
    return engine.peek(lo, hi, cost)
  }

  /**
   * Decides many keys in order, the same key twice too; all of them and their costs are checked before the first is
   * charged. `costs` is one for all (default 1) or one for each key; `remaining` asks for what is left after each.
   */
  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: { remaining?: boolean } = {},
  ): BatchDecision {
    this.#open()
    const { fingerprints } = this.#keys.pack(keys)
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    checkRemaining(remaining)
    const own = ownCosts(costs, fingerprints.length / 2)
    return decideBatch(this.#open(), fingerprints, own, remaining) // asked again: a getter may have closed it
  }

  /** Hashes keys once, into one typed array, for `checkMany`. */
  pack(keys: readonly Key[]): PackedKeys {
    this.#open()
    return this.#keys.pack(keys)
  }

  /** Hashes a key once: the handle is accepted wherever a key is, by this limiter, for ever. */
  handle(key: string): KeyHandle {
    this.#open()
    return this.#keys.handle(key)
  }

  /**
   * Waits until the key is admitted, and resolves with that decision. Who waits for the same key (in this thread) is
   * served in order. Rejects with the signal's reason; with `ERR_MILLRACE_NEVER_ADMITTED` for a cost above the limit or
   * a key blocked for ever; with `ERR_MILLRACE_CLOSED` when the limiter is closed. Every try counts in the statistics.
   */
  async wait(key: Key, options: { cost?: number; signal?: Signal } = {}): Promise<Decision> {
    this.#open()
    const { cost, signal } = checkWaitOptions(options)
    const { lo, hi } = this.#keys.read(key)
    this.#open() // asked again: a getter may have closed it
    const want = {
      lo,
      hi,
      decide: () => this.#open().checkNow(lo, hi, cost),
      never: () => neverAdmittedError(cost, this.#open().limit),
    }
    return this.#waiters.wait(want, signal)
  }

  /**
   * Units charged to the key in the last part of the window, counted in whole granules: `lastMs` above 0, at most (and
   * by default) the window, else `ERR_MILLRACE_INVALID_DURATION`.
   */
  usage(key: Key, lastMs: Duration = this.#arena.shape.windowMs): number {
    const engine = this.#open()
    const ms = usageMs(lastMs, this.#arena.shape.windowMs)
    const { lo, hi } = this.#keys.read(key)
    return engine.usage(lo, hi, ms)
  }

  /**
   * Gives back exactly what this decision charged, while it still counts. Returns how many units that was: 0 where a refund by
   * key, or `clear`, came after it and may have taken them.
   */
  refund(decision: Decision): number
  /** Takes up to `cost` units out of the key's counts, the oldest first. Returns how many. */
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    const engine = this.#open()
    if (what instanceof InlineDecision) {
      if (what.engine !== engine) throw foreignDecisionError(what)
      const given = engine.changes.giveBack(what)
      this.#waiters.wake(what.lo, what.hi)
      return given
    }
    if (isDecision(what)) throw foreignDecisionError(what)
    checkCost(cost)
    const { lo, hi } = this.#keys.read(what as Key)
    const refunded = engine.changes.refund(lo, hi, cost)
    this.#waiters.wake(lo, hi)
    return refunded
  }

  /**
   * Charges `cost` units without asking, beyond the limit too. False: the table had no room for the key.
   *
   * A granule counts at most 4,194,303 units of a key (in windows of more than 256 granules, 64 of them together at most
   * 16,777,215). Penalties that come to more leave it at that, which is over every limit; one larger `cost` is refused with
   * `ERR_MILLRACE_INVALID_COST`.
   */
  penalize(key: Key, cost: number): boolean {
    const engine = this.#open()
    checkPenalty(cost)
    const { lo, hi } = this.#keys.read(key)
    return engine.changes.penalize(lo, hi, cost)
  }

  /**
   * Refuses everything of the key for `ms` (in sixteenths of a second, rounded up; `Infinity`, or more than 4 years: for
   * ever), in place of any block before. False: the table had no room for the key.
   *
   * Of the 32 places that a key may have at most half stay blocked. Beyond that, of the other blocks there the one that ends
   * soonest gives way, and `stats().blocksEvicted` counts it: size `maxKeys` for at least three times as many keys as are
   * blocked at once.
   */
  block(key: Key, ms: Duration): boolean {
    const engine = this.#open()
    const forMs = blockMs(ms)
    const { lo, hi } = this.#keys.read(key)
    const isBlocked = engine.changes.block(lo, hi, forMs)
    this.#waiters.wake(lo, hi) // it may end earlier than the one before
    return isBlocked
  }

  /** Ends a block; what the key had used still counts. Returns whether there was one. */
  unblock(key: Key): boolean {
    const engine = this.#open()
    const { lo, hi } = this.#keys.read(key)
    const unblocked = engine.changes.unblock(lo, hi)
    this.#waiters.wake(lo, hi)
    return unblocked
  }

  /** Forgets what the key has used, and ends its block. */
  clear(key: Key): void {
    const engine = this.#open()
    const { lo, hi } = this.#keys.read(key)
    engine.changes.clear(lo, hi)
    this.#waiters.wake(lo, hi)
  }

  /**
   * Changes the limit for every thread at once; what has been admitted stays so. `rule` is the rule's name.
   * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`
   */
  update(rule: string, change: { limit: number }): void {
    this.#open()
    const limit = checkUpdate(rule, this.#ruleName, change)
    this.#open().limit = limit // asked again: a getter may have closed it
    this.#updates.check()
  }

  /** What `attachLimiter` needs in another thread: structured-cloneable, for `workerData` or `postMessage`. */
  share(): SharedLimiter {
    this.#open()
    return shareOf(this.#arena, this.#ruleName, this.#clock, this.#file?.place)
  }

  /** What has happened in all threads; each one's last 255 decisions may be missing but this thread's. */
  stats(): LimiterStats {
    return this.#open().statistics()
  }

  /**
   * Detaches this limiter, and turns away who waits. The counts stay, for the other threads; and those in a file for whoever
   * opens it next. May be called twice.
   */
  async close(): Promise<void> {
    const engine = this.#engine
    engine?.close()
    this.#engine = undefined
    this.#waiters.close(closed()) // first: it reads the memory
    if (engine !== undefined) this.#file?.release()
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#engine === undefined ? { isClosed: true } : this.rule
    return inspectAs('Limiter', fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #open(): InlineEngine {
    if (this.#engine === undefined) throw closed()
    return this.#engine
  }
}
