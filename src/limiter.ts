import type { Clock } from './core/clock.js'
import { type Decision, MadeDecision } from './core/decision.js'
import { type Duration, parseDuration } from './core/duration.js'
import { MillraceError } from './core/errors.js'
import { checkLimit, type Edge } from './core/rule.js'
import { type BatchDecision, type Costs, MadeBatch } from './engines/batch.js'
import { type EngineStatistics, InlineEngine } from './engines/inline.js'
import { type FilePlace, type SharedLimiter, shareOf } from './engines/share.js'
import { Waiters } from './engines/waiters.js'
import type { Arena } from './memory/arena.js'
import { Hasher } from './memory/hash.js'
import {
  checkKeyString,
  checkOwner,
  fingerprintsOf,
  type Key,
  KeyHandle,
  MAX_KEY_LENGTH,
  PackedKeys,
} from './memory/keys.js'
import { HEADER } from './memory/layout.js'
import { read } from './memory/words.js'

export type LimiterStats = EngineStatistics

/** The file that a limiter's counts live in. */
export interface LimiterFile {
  readonly place: FilePlace
  /** This limiter decides no more. */
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
  readonly #hasher: Hasher
  readonly #waiters: Waiters
  readonly #ruleName: string
  readonly #file: LimiterFile | undefined
  #engine: InlineEngine | undefined

  /** @internal */
  constructor(arena: Arena, ruleName: string, clock: Clock, file?: LimiterFile) {
    this.#arena = arena
    this.#file = file
    this.#clock = clock
    this.#ruleName = ruleName
    this.#hasher = new Hasher(read(arena.words, HEADER.SEED_0), read(arena.words, HEADER.SEED_1))
    this.#waiters = new Waiters(clock)
    this.#engine = new InlineEngine(arena, ruleName, clock)
  }

  /** What this limiter holds keys to, now. */
  get rule(): { name: string; limit: number; windowMs: number; granularityMs: number; edge: Edge } {
    const { shape, edge } = this.#arena
    const { windowMs, buckets } = shape
    const { limit } = this.#open()
    return { name: this.#ruleName, limit, windowMs, granularityMs: windowMs / buckets, edge }
  }

  /**
   * Decides whether the key may use `cost` units now, and charges them if so. Cost 0 is allowed unless the key is blocked;
   * a cost above the limit is refused with `retryAfterMs: Infinity`.
   */
  check(key: Key, cost = 1): Decision {
    const engine = this.#engine
    if (engine === undefined) throw closed()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCost(cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      return engine.checkNow(hasher.lo, hasher.hi, cost)
    }
    const handle = this.#owned(key)
    const decision = engine.checkNow(handle.lo, handle.hi, cost, handle.way)
    if (handle.way !== engine.way) handle.way = engine.way // a store makes the handle's cache line dirty
    return decision
  }

  /** Decides the same, but charges nothing and gives the key no place. */
  peek(key: Key, cost = 1): Decision {
    const engine = this.#open()
    checkCost(cost)
    const { lo, hi } = this.#fingerprint(key)
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
    const engine = this.#open()
    const packed = keys instanceof PackedKeys ? keys : this.pack(keys)
    checkOwner(packed, this, 'keys')
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    if (typeof remaining !== 'boolean') {
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'remaining', remaining, 'a boolean')
    }
    checkCosts(costs, packed.length)
    return new MadeBatch(engine, packed.fingerprints, costs, remaining)
  }

  /** Hashes keys once, into one typed array, for `checkMany`. */
  pack(keys: readonly Key[]): PackedKeys {
    this.#open()
    if (!Array.isArray(keys)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, 'an array of keys, or packed keys')
    }
    return new PackedKeys(this, fingerprintsOf(keys, this.#hasher, this))
  }

  /** Hashes a key once: the handle is accepted wherever a key is, by this limiter, for ever. */
  handle(key: string): KeyHandle {
    this.#open()
    checkKeyString(key, 'key')
    this.#hasher.hash(key)
    return new KeyHandle(this, this.#hasher.lo, this.#hasher.hi)
  }

  /**
   * Waits until the key is admitted, and resolves with that decision. Who waits for the same key (in this thread) is
   * served in order. Rejects with the signal's reason; with `ERR_MILLRACE_NEVER_ADMITTED` for a cost above the limit or
   * a key blocked for ever; with `ERR_MILLRACE_CLOSED` when the limiter is closed. Every try counts in the statistics.
   */
  async wait(key: Key, options: { cost?: number; signal?: AbortSignal } = {}): Promise<Decision> {
    this.#open()
    checkOptions(options, ['cost', 'signal'])
    const { cost = 1, signal } = options
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'signal', signal, 'an AbortSignal')
    }
    checkCost(cost)
    const { lo, hi } = this.#fingerprint(key)
    const want = {
      line: `${lo}:${hi}`,
      decide: () => this.#open().checkNow(lo, hi, cost),
      never: () => neverAdmitted(cost, this.#open().limit),
    }
    return this.#waiters.wait(want, signal)
  }

  /**
   * Units charged to the key in the last part of the window, counted in whole granules: `lastMs` above 0, at most (and
   * by default) the window.
   */
  usage(key: Key, lastMs: Duration = this.#arena.shape.windowMs): number {
    const engine = this.#open()
    const ms = parseDuration(lastMs, 'lastMs')
    const { lo, hi } = this.#fingerprint(key)
    return engine.usage(lo, hi, Math.min(ms, this.#arena.shape.windowMs))
  }

  /** Gives back exactly what this decision charged, while it still counts. Returns how many units that was. */
  refund(decision: Decision): number
  /** Takes up to `cost` units out of the key's counts, the oldest first. Returns how many. */
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    const engine = this.#open()
    if (what instanceof MadeDecision) {
      if (what.source !== engine) {
        throw new MillraceError(
          'ERR_MILLRACE_FOREIGN_DECISION',
          'decision',
          what,
          'a decision of this limiter',
        )
      }
      const given = engine.giveBack(what)
      this.#waiters.wakeAll()
      return given
    }
    checkCost(cost)
    const { lo, hi } = this.#fingerprint(what as Key)
    const refunded = engine.refund(lo, hi, cost)
    this.#waiters.wakeAll()
    return refunded
  }

  /** Charges `cost` units without asking, beyond the limit too. False: the table had no room for the key. */
  penalize(key: Key, cost: number): boolean {
    const engine = this.#open()
    checkCost(cost)
    const { lo, hi } = this.#fingerprint(key)
    return engine.penalize(lo, hi, cost)
  }

  /**
   * Refuses everything of the key for `ms` (in sixteenths of a second, rounded up; `Infinity`, or more than 4 years: for
   * ever), in place of any block before. False: the table had no room for the key.
   */
  block(key: Key, ms: Duration): boolean {
    const engine = this.#open()
    const forMs = ms === Number.POSITIVE_INFINITY ? ms : parseDuration(ms, 'ms')
    const { lo, hi } = this.#fingerprint(key)
    return engine.block(lo, hi, forMs)
  }

  /** Ends a block; what the key had used still counts. Returns whether there was one. */
  unblock(key: Key): boolean {
    const engine = this.#open()
    const { lo, hi } = this.#fingerprint(key)
    const unblocked = engine.unblock(lo, hi)
    this.#waiters.wakeAll()
    return unblocked
  }

  /** Forgets what the key has used, and ends its block. */
  clear(key: Key): void {
    const engine = this.#open()
    const { lo, hi } = this.#fingerprint(key)
    engine.clear(lo, hi)
    this.#waiters.wakeAll()
  }

  /**
   * Changes the limit for every thread at once; what has been admitted stays so. `rule` is the rule's name.
   * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`
   */
  update(rule: string, change: { limit: number }): void {
    const engine = this.#open()
    if (rule !== this.#ruleName) {
      throw new MillraceError('ERR_MILLRACE_INVALID_RULE', 'rule', rule, `'${this.#ruleName}'`)
    }
    const limit: unknown = change?.limit
    checkLimit(limit)
    checkOptions(change, ['limit'], 'change')
    engine.limit = limit
    this.#waiters.wakeAll()
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
    engine?.flush()
    this.#engine = undefined
    if (engine !== undefined) this.#file?.release()
    this.#waiters.rejectAll(closed())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #open(): InlineEngine {
    if (this.#engine === undefined) throw closed()
    return this.#engine
  }

  #fingerprint(key: Key): { lo: number; hi: number } {
    if (typeof key !== 'string') return this.#owned(key)
    checkKeyString(key, 'key')
    this.#hasher.hash(key)
    return { lo: this.#hasher.lo, hi: this.#hasher.hi }
  }

  #owned(key: KeyHandle): KeyHandle {
    if (!(key instanceof KeyHandle)) checkKeyString(key, 'key')
    checkOwner(key, this, 'key')
    return key
  }
}

function checkCost(cost: unknown, option = 'cost'): asserts cost is number {
  if (!(Number.isInteger(cost) && (cost as number) >= 0)) throw invalidCost(cost, option)
}

function checkOptions(options: unknown, known: readonly string[], option = 'options'): void {
  if (typeof options !== 'object' || options === null) {
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, options, 'an object')
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, name, `only ${known.join(', ')}`)
    }
  }
}

function checkCosts(costs: unknown, length: number): asserts costs is Costs {
  if (typeof costs !== 'object' || costs === null) return checkCost(costs, 'costs')
  const each = costs as ArrayLike<unknown>
  if (each.length !== length) {
    const expected = `one cost for all, or one for each of the ${length} keys`
    throw new MillraceError('ERR_MILLRACE_INVALID_COST', 'costs', costs, expected)
  }
  for (let i = 0; i < length; i++) checkCost(each[i], `costs[${i}]`)
}

function invalidCost(cost: unknown, option = 'cost'): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_COST', option, cost, 'an integer of 0 or more')
}

function closed(): MillraceError {
  return new MillraceError('ERR_MILLRACE_CLOSED', 'limiter', 'a closed one', 'a limiter that is open')
}

function neverAdmitted(cost: number, limit: number): MillraceError {
  const [option, value, expected] =
    cost > limit
      ? ['cost', cost, `at most the limit, ${limit}`]
      : ['key', 'one that is blocked for ever', 'a key that may be admitted some time']
  return new MillraceError('ERR_MILLRACE_NEVER_ADMITTED', option as string, value, expected as string)
}
