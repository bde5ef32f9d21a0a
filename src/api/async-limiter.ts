/// <reference lib="esnext.disposable" preserve="true" />

import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { SharedLimiter } from '../engines/share.js'
import type { Key, KeyHandle, PackedKeys } from '../memory/keys.js'
import type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  LimiterRule,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from './call-options.js'
import type { LimiterStats } from './limiter.js'
import type { AsyncReservation } from './reservation.js'

/**
 * A limiter that decides on the worker threads of a pool. Its methods are those of {@link Limiter}, as
 * promises. {@link createLimiter} and {@link openLimiter} return one for `engine: 'pool'`.
 *
 * The requests of one key are decided in the order of the calls. Every figure of a decision is computed by
 * the worker.
 *
 * A method rejects with the errors that {@link Limiter} throws. Requests to the workers also reject with:
 * - `ERR_MILLRACE_OVERLOADED`: `pool.maxPending` keys are pending already; nothing was charged.
 * - `ERR_MILLRACE_WORKER_LOST`: the worker died during this request; it may be charged (`mayBeCharged` is
 *   true), of several rules perhaps in the first ones only.
 * - `ERR_MILLRACE_NO_THREADS`: no worker can be started; of a batch, other workers may have charged a part
 *   (`mayBeCharged`).
 *
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 *
 * const limiter = createLimiter({ limit: 100, window: '1m', engine: 'pool', pool: { maxThreads: 2 } })
 * await limiter.ready()
 * const decision = await limiter.check('user:42')
 * if (!decision.allowed) console.log(`retry after ${decision.retryAfterSeconds} s`)
 * await limiter.close()
 * ```
 */
export interface AsyncLimiter extends AsyncDisposable {
  /**
   * Resolves when the `pool.minThreads` workers that always run have started. Without it, the first calls
   * wait for the start. Of a limiter on Redis or Memcached: when the server has been found usable, however long that
   * takes. It rejects if the server can't keep counts, or refuses the password.
   * @returns a promise without a value
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_WORKER_LOST`,
   * `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_OUTAGE`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.ready() // before the server listens
   * ```
   */
  ready(): Promise<void>

  /** The rule with its present limit. If there are several: the first one. */
  readonly rule: LimiterRule

  /** All rules with their present limits, in order. */
  readonly rules: readonly LimiterRule[]

  /**
   * Decides whether the key may use `cost` units now. If so, charges them.
   *
   * Cost 0 is allowed unless the key is blocked, and needs no room in the table. A cost above the limit is
   * refused with `retryAfterMs: Infinity`.
   * @param key the key to limit: a string of 1 to 65,536 characters, or a handle
   * @param cost units to charge, an integer of 0 or more. Default: 1
   * @param options a limit for this call only, and a signal that aborts the call
   * @returns a promise of the decision. Being over the limit is no error: `allowed` is false
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_COST`,
   * `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_OVERLOADED`,
   * `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_ABORTED`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const signal = AbortSignal.timeout(50)
   * const { allowed, retryAfterSeconds } = await limiter.check('user:42', 1, { signal })
   * if (!allowed) console.log(`Retry-After: ${retryAfterSeconds}`)
   * ```
   */
  check(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision>

  /**
   * The same as `check`, for callers who prefer exceptions: it rejects if the request is refused.
   * @param key the key, or its handle
   * @param cost units to charge, an integer of 0 or more. Default: 1
   * @param options a limit for this call only, and a signal that aborts the call
   * @returns a promise of the decision, whose `allowed` is true
   * @throws {MillraceLimited} (rejects) if the request is refused; its `decision` says for how long, and by its
   * `source` whether the store did not answer
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiter.check}
   * @example
   * ```ts
   * import { MillraceLimited } from 'millrace'
   *
   * try {
   *   await limiter.checkOrThrow('user:42')
   * } catch (error) {
   *   if (!(error instanceof MillraceLimited)) throw error
   *   console.log(`Retry-After: ${error.decision.retryAfterSeconds}`)
   * }
   * ```
   */
  checkOrThrow(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision>

  /**
   * Charges `cost` units like `check`, for a request whose cost is known only afterwards. `commit` then gives
   * back what was not used, or charges what was used in addition.
   * @param key the key, or its handle
   * @param cost units to charge, an integer of 0 or more: the most that the request may use
   * @param options a limit for this call only, and a signal that aborts the call
   * @returns a promise of the decision, with `commit` and `cancel`. A refusal reserves nothing
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiter.check}
   * @example
   * ```ts
   * const reservation = await limiter.reserve('user:42', 1_000) // at most so many tokens
   * if (reservation.decision.allowed) await reservation.commit(812) // so many were used
   * ```
   */
  reserve(key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<AsyncReservation>

  /**
   * Returns the decision that `check` would return now, but charges nothing and gives the key no place in the
   * table.
   * @param key the key, or its handle
   * @param cost units to decide about, an integer of 0 or more. Default: 1
   * @param options a limit for this call only, and a signal that aborts the call
   * @returns a promise of the decision. Its `remaining` does not subtract `cost`
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiter.check}
   * @example
   * ```ts
   * console.log(`${(await limiter.peek('user:42')).remaining} requests left`)
   * ```
   */
  peek(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision>

  /**
   * Decides many keys in one call. It checks all keys and costs before it sends the first. The batch is split
   * over the running workers; a key that stands twice is decided twice, in order. Each key is decided for
   * itself: a refused key does not stop the others.
   * @param keys an array of at most 67,108,864 keys, or packed keys of this limiter
   * @param costs one cost for all keys, or an array with one cost for each. Default: 1
   * @param options `remaining: true` also computes what each key has left; a signal aborts the call
   * @returns a promise of the decisions, by the index of the key
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiter.check}. If the batch was split,
   * a part of it may be charged: see `mayBeCharged` of the error
   * @example
   * ```ts
   * const batch = await limiter.checkMany(['user:42', 'ip:10.0.0.1'], [1, 5])
   * for (let i = 0; i < batch.length; i++) if (batch.allowed[i] === 0) console.log(batch.retryAfterMs(i))
   * ```
   */
  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs?: Costs,
    options?: CheckManyOptions & CallOptions,
  ): Promise<BatchDecision>

  /**
   * Hashes keys once, into one typed array, for repeated calls of `checkMany`. It runs on the calling thread.
   * @param keys an array of at most 67,108,864 keys
   * @returns the packed keys. They stay valid as long as this limiter, and only this limiter accepts them
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const tenants = limiter.pack(['tenant:1', 'tenant:2'])
   * console.log((await limiter.checkMany(tenants)).allowed)
   * ```
   */
  pack(keys: readonly Key[]): PackedKeys

  /**
   * Hashes a key once, on the calling thread. The handle replaces the key in every method of this limiter.
   * @param key a string of 1 to 65,536 characters
   * @returns the handle. It stays valid when another key takes the place of this one
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const user = limiter.handle('user:42') // once for each connection
   * console.log((await limiter.check(user)).allowed) // once for each message
   * ```
   */
  handle(key: string): KeyHandle

  /**
   * Waits until the key is admitted. Pending calls for the same key in this thread are served in the order of
   * the calls, so small costs don't overtake a large one. Every attempt counts in the statistics.
   * @param key the key, or its handle
   * @param options the cost, a limit for this call only, and a signal that ends the wait
   * @returns a promise of the decision, which is always an admission
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_NEVER_ADMITTED` for a cost above the limit or a key that
   * is blocked for ever; `ERR_MILLRACE_CLOSED` also when the limiter is closed meanwhile; the reason of the
   * signal; and the errors of {@link AsyncLimiter.check} except `ERR_MILLRACE_ABORTED`;
   * `ERR_MILLRACE_OUTAGE` on Redis or Memcached, if an attempt had no reply: asked again, it might be charged twice.
   * @example
   * ```ts
   * await limiter.wait('upstream', { cost: 5, signal: AbortSignal.timeout(2_000) })
   * console.log('5 units are charged')
   * ```
   */
  wait(key: Key, options?: WaitOptions): Promise<Decision>

  /**
   * Counts the units that the key has used lately. Whole buckets count, so the result may include units from
   * up to one granularity earlier.
   * @param key the key, or its handle
   * @param lastMs how far back to count: above 0, at most the window of the rule. Default: that window
   * @param options the rule to count by, if there are several
   * @returns a promise of the units; 0 for an unknown key
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_DURATION`,
   * `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_FOREIGN_HANDLE`,
   * `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * console.log(`${await limiter.usage('user:42', '10s')} units in the last 10 seconds`)
   * ```
   */
  usage(key: Key, lastMs?: Duration, options?: UsageOptions): Promise<number>

  /**
   * Gives back exactly the charge of a decision, while it still counts. A second call gives back nothing.
   * After `ERR_MILLRACE_OVERLOADED` and `ERR_MILLRACE_NO_THREADS` the charge stands, and the call can be
   * repeated.
   * @param decision a decision of this limiter
   * @returns a promise of the units given back: the cost, or 0 if nothing was charged, the charge has left the
   * window, or it may count no more after a refund by key, `clear`, or (token bucket) a block or a refusal
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_FOREIGN_DECISION`, `ERR_MILLRACE_OVERLOADED`,
   * `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const decision = await limiter.check('user:42', 10)
   * if (decision.allowed) await limiter.refund(decision) // the request was answered from a cache
   * ```
   */
  refund(decision: Decision): Promise<number>
  /**
   * Takes up to `cost` units out of the key's counts, the oldest first.
   * @param key the key, or its handle
   * @param cost the most units to take out, an integer of 0 or more
   * @returns a promise of how many units were taken out: less than `cost` if the key had used less
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_COST`,
   * `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`,
   * `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * console.log(`gave back ${await limiter.refund('user:42', 3)} units`)
   * ```
   */
  refund(key: Key, cost: number): Promise<number>

  /**
   * Charges `cost` units without a decision, also beyond the limit.
   *
   * A bucket counts at most 4,194,303 units of a key. If the window has more than 256 buckets, 64 of them
   * count at most 16,777,215 units together. A full bucket stays at that number, which is over every limit.
   * @param key the key, or its handle
   * @param cost units to charge, an integer from 0 to 4,194,303; with the option `unit`, up to as many times
   * the unit
   * @returns a promise; false if the table has no room for the key
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_COST`,
   * `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`,
   * `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.penalize('ip:10.0.0.1', 20) // a failed login costs as much as 20 requests
   * ```
   */
  penalize(key: Key, cost: number): Promise<boolean>

  /**
   * Refuses every request of the key for `ms`. The new block replaces an earlier one, also if it ends sooner.
   *
   * Each key has 32 possible places in the table. At most half of them stay blocked. One more block ends the
   * one among them that would end soonest, and `stats().blocksEvicted` counts it. Size `maxKeys` for at least
   * three times as many keys as are blocked at once.
   * @param key the key, or its handle
   * @param ms how long: above 0, in steps of 1/16 second, rounded up. `Infinity`, or more than 4 years: for
   * ever
   * @returns a promise; false if the table has no room for the key
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_DURATION`,
   * `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`,
   * `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.block('ip:10.0.0.1', '15m')
   * ```
   */
  block(key: Key, ms: Duration): Promise<boolean>

  /**
   * Ends the block of a key. The units that the key has used still count.
   * @param key the key, or its handle
   * @returns a promise of whether the key was blocked
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE`,
   * `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * if (await limiter.unblock('ip:10.0.0.1')) console.log('unblocked')
   * ```
   */
  unblock(key: Key): Promise<boolean>

  /**
   * Forgets the units that the key has used, and ends its block.
   * @param key the key, or its handle
   * @returns a promise without a value
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_FOREIGN_HANDLE`,
   * `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.clear('user:42') // the user has upgraded
   * ```
   */
  clear(key: Key): Promise<void>

  /**
   * Forgets the units that all keys have used, and ends all blocks, for all threads and processes of this
   * limiter. The statistics stay. Decisions may go on meanwhile. A key that gets its place in the table at
   * that moment may keep the counts of the key whose place it takes.
   *
   * It runs on one worker, whose other requests wait until it is done. A key takes 1 to 10 microseconds, by
   * the number of buckets in which it has used units.
   * @returns a promise without a value. Calls that are pending meanwhile are decided before or after it
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_CLOCK`, `ERR_MILLRACE_OVERLOADED`,
   * `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.clearAll() // a new month begins, with a full quota for each key
   * ```
   */
  clearAll(): Promise<void>

  /**
   * Changes a rule, for all threads and processes of this limiter at once. Earlier admissions stay. If the
   * window changes, all that a key has used and that a window as long as the new one still covers counts for
   * one new window: from the key's last charge on, at the latest from its next decision on. So nothing is
   * forgotten, and a key may be refused too early for one window at most. A decision from before the change
   * can't be given back after that.
   *
   * A limiter can have 64 windows in its life.
   * Pending decisions may still use the earlier limit.
   * A limiter on a server changes in its own process only. Its promise resolves when all keys that the process knows have
   * been brought to the new window.
   * @param rule the name of the rule: `'default'` unless the options gave another
   * @param change the new settings of the rule
   * @param change.limit the new limit
   * @param change.window the new window
   * @param change.granularity the new granularity
   * @returns a promise without a value
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`,
   * `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * await limiter.update('default', { limit: 1_000, window: '1h' })
   * await limiter.update('default', { limit: 200 })
   * ```
   */
  update(rule: string, change: RuleChange): Promise<void>

  /**
   * Returns what {@link attachLimiter} needs to join this limiter from another thread. The attached limiter
   * decides on that thread, on the same counts.
   * @returns an object for `workerData` or `postMessage`
   * @throws {MillraceError} `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * import { Worker } from 'node:worker_threads'
   *
   * new Worker('./server.mjs', { workerData: limiter.share() }) // there: attachLimiter(workerData)
   * ```
   */
  share(): SharedLimiter

  /**
   * Returns the keys that were refused most. The first call begins to count. Until then a refusal costs nothing more.
   * At most 1,024 keys are counted at the same time, so memory is bounded. A further key takes the place of the one with
   * the least count, and goes on from that count: `error` says by how much its own may be too high. A key that is missing
   * was refused no more often than the least of the 1,024 counts.
   *
   * Counted are the refusals of this limiter in this thread that are events (`docs/reference/events.md`), of keys that
   * were given as texts. Rows show keys as events do.
   * @param options what to count, and how many keys to return
   * @returns a promise of the keys, the most refused first
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * for (const { key, count, error } of await limiter.top({ by: 'refused' })) console.log(key, count, error)
   * ```
   */
  top(options: TopOptions): Promise<TopKey[]>

  /**
   * Returns the counters of this limiter.
   * @returns a promise of the counts of all threads, complete for this thread and the pool. Of each other
   * thread, the last 255 decisions may be missing
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_WORKER_LOST`, `ERR_MILLRACE_NO_THREADS`,
   * `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const { allowed, denied, evictedLive } = await limiter.stats()
   * if (evictedLive > 0) console.warn('maxKeys is too small', { allowed, denied, evictedLive })
   * ```
   */
  stats(): Promise<LimiterStats>

  /**
   * Waits for the pending requests, then ends the workers. Pending `wait` calls reject. The counts stay for
   * other threads, and counts in a file stay for the next process that opens it. A second call does nothing.
   * @returns a promise that resolves when the workers have exited
   * @example
   * ```ts
   * await limiter.close()
   * ```
   */
  close(): Promise<void>
}
