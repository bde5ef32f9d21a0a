/** A store for @fastify/rate-limit 11. */
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import { AllStores } from './all-stores.js'
import type { Counts } from './counts.js'
import { keyOf } from './keys.js'
import { type CompatOptions, checkCompatOptions } from './options.js'
import { RULE, statsOf } from './stats.js'
import { countsOf, Windows } from './windows.js'

export type { CompatOptions, Limiter, LimiterStats }

/** The options of the plugin, or of a route, that the store reads. */
export interface StoreOptions {
  /** Whether a request beyond the limit begins the window again. */
  continueExceeding?: boolean
  /** Whether each request beyond the limit begins the window again, and gets twice the `Retry-After`. */
  exponentialBackoff?: boolean
  /** How many keys can count, unless the option `maxKeys` of {@link MillraceStore.with} says it. */
  cache?: number
  /** After how many requests beyond the limit the plugin refuses a key as banned. Below 0: never. */
  ban?: number
  /** The route, by whose name its requests are counted. */
  routeInfo?: { readonly method?: string | readonly string[]; readonly url?: string }
  /** In place of the name of the route. */
  groupId?: string
}

/** What the plugin is told of a key. */
export interface StoreResult {
  /** The hits that count. */
  current: number
  /** Milliseconds until hits leave: in a sliding window the oldest one, in a fixed window all. */
  ttl: number
}

/** Called with the result before the method returns. */
export type StoreCallback = (error: Error | null, result?: StoreResult) => void

/** A class of stores, for the option `store` of the plugin. */
export interface StoreClass {
  new (options?: StoreOptions): MillraceStore
  /** Returns what was decided by all stores of this class: see {@link MillraceStore.stats}. */
  stats(): LimiterStats
}

/**
 * A store for the option `store` of @fastify/rate-limit 11. The plugin creates it.
 *
 * In a sliding window, a key is admitted at most `max` times in any `timeWindow`. Hits beyond that count in
 * `current`, and don't hold off the next admission; with `continueExceeding` or `exponentialBackoff` they do.
 *
 * @example
 * ```ts
 * import rateLimit from '@fastify/rate-limit'
 * import { MillraceStore } from 'millrace/compat/fastify-rate-limit'
 *
 * await app.register(rateLimit, { max: 100, timeWindow: '1 minute', store: MillraceStore })
 * ```
 */
export class MillraceStore {
  static readonly #stores = new AllStores()
  readonly #windows: Windows<Counts>
  readonly #compat: CompatOptions
  readonly #continueExceeding: boolean
  readonly #exponentialBackoff: boolean
  readonly #ban: number
  readonly #rule: string
  readonly #all: AllStores
  readonly #decided: DecisionCounts
  /** The same of all stores of the class. */
  readonly #decidedByAll: DecisionCounts
  /** The limit of the last hit. `read` may come without one. */
  #lastMax = Number.POSITIVE_INFINITY

  /**
   * Returns a class of stores that count in another way, or for another number of keys.
   * @param compat how hits are counted, and for how many keys
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
   * @example
   * ```ts
   * const store = MillraceStore.with({ algorithm: 'fixed-window' })
   * await app.register(rateLimit, { max: 100, timeWindow: '1 minute', store })
   * ```
   */
  static with(compat: CompatOptions): StoreClass {
    checkCompatOptions(compat)
    const own = { ...compat }
    const all = new AllStores()
    return class extends MillraceStore {
      constructor(options?: StoreOptions) {
        super(options, own, all)
      }

      static override stats(): LimiterStats {
        return all.stats()
      }
    }
  }

  /**
   * Returns what was decided by all stores of this class, as {@link Limiter.stats} does, with the names of routes in place
   * of rules: `default` are requests of routes without options of their own. The plugin keeps its stores to itself, and
   * its own store has no such method. `keys`, `places` and `bytes` are those of the stores that are still in use.
   * @example
   * ```ts
   * console.log(MillraceStore.stats().own.rules['POST /login'])
   * ```
   */
  static stats(): LimiterStats {
    return MillraceStore.#stores.stats()
  }

  /**
   * The plugin calls it.
   * @param options the options of the plugin or of a route
   * @param compat how hits are counted: see {@link MillraceStore.with}
   */
  constructor(options?: StoreOptions, compat?: CompatOptions)
  /** @internal @param all the stores of this class */
  constructor(options?: StoreOptions, compat?: CompatOptions, all?: AllStores)
  constructor(options: StoreOptions = {}, compat: CompatOptions = {}, all = MillraceStore.#stores) {
    const { continueExceeding = false, exponentialBackoff = false, ban = -1 } = options
    const maxKeys = compat.maxKeys ?? maxKeysOf(options)
    this.#compat = compat
    this.#continueExceeding = continueExceeding
    this.#exponentialBackoff = exponentialBackoff
    this.#windows = new Windows(countsOf, maxKeys === undefined ? compat : { ...compat, maxKeys })
    this.#ban = ban
    this.#rule = ruleOf(options)
    this.#all = all
    this.#decided = new DecisionCounts(compat.nearLimit)
    this.#decidedByAll = all.join(this.#windows, this.#rule, compat.nearLimit)
  }

  /**
   * Counts one hit.
   * @param key a string or a number
   * @param callback gets the hits of the key, with this one; or an error for a key or a window that is none
   * @param timeWindow the window in milliseconds. With 0 or less every hit is the first
   * @param max the limit
   */
  incr(
    key: string | number,
    callback: StoreCallback,
    timeWindow: number,
    max = Number.POSITIVE_INFINITY,
  ): void {
    answer(callback, () => this.#hit(key, timeWindow, max))
  }

  /**
   * Reads the hits of a key, and changes nothing.
   * @param key a string or a number
   * @param callback gets the hits of the key: 0 and a `ttl` of 0 for an unknown one
   * @param timeWindow the window in milliseconds
   * @param max the limit. Default: that of the last hit
   */
  read(key: string | number, callback: StoreCallback, timeWindow: number, max?: number): void {
    answer(callback, () => {
      this.#windows.clock.read()
      if (timeWindow <= 0) return { current: 0, ttl: 0 }
      const count = this.#windows.of(timeWindow).read(keyOf(key), max ?? this.#lastMax)
      return { current: count?.hits ?? 0, ttl: count?.resetMs ?? 0 }
    })
  }

  /**
   * Creates the store of a route, which counts apart.
   * @param routeOptions the options of the route: {@link StoreOptions} and others
   */
  child(routeOptions: StoreOptions | object): MillraceStore {
    return new MillraceStore(routeOptions, this.#compat, this.#all)
  }

  /** The same as the static `stats`, of this store only. */
  stats(): LimiterStats {
    return statsOf([this.#decided], this.#windows.tables)
  }

  #count(hits: number, max: number): void {
    const isBlocked = this.#ban >= 0 && hits - max > this.#ban
    const hit = { hits, allowed: hits <= max, isBlocked }
    for (const decided of [this.#decided, this.#decidedByAll]) decided.countHit(this.#rule, hit, max)
  }

  #hit(key: string | number, timeWindow: number, max: number): StoreResult {
    this.#windows.clock.read()
    this.#lastMax = max
    if (timeWindow <= 0) {
      this.#count(1, max)
      return { current: 1, ttl: timeWindow }
    }
    const counts = this.#windows.of(timeWindow)
    const ownKey = keyOf(key)
    const { hits, resetMs } = counts.hit(ownKey, max)
    this.#count(hits, max)
    const isRenewed = (this.#continueExceeding || this.#exponentialBackoff) && hits > max && hits > 1
    if (!isRenewed) return { current: hits, ttl: resetMs }
    counts.restart(ownKey, max)
    return { current: hits, ttl: this.#continueExceeding ? timeWindow : backoffMs(timeWindow, hits - max) }
  }
}

/** The name of the route whose options these are, as the plugin of Millrace has it. */
function ruleOf({ routeInfo, groupId }: StoreOptions): string {
  if (groupId !== undefined) return groupId
  if (routeInfo?.url === undefined) return RULE
  return `${[routeInfo.method ?? []].flat().join('|')} ${routeInfo.url}`
}

/** Twice as long with each hit beyond the limit. */
function backoffMs(timeWindow: number, exceeding: number): number {
  const ms = timeWindow * 2 ** (exceeding - 1)
  return Number.isSafeInteger(ms) ? ms : Number.MAX_SAFE_INTEGER
}

/** Calls back with the result, or with what it threw. An error of the callback itself is the caller's. */
function answer(callback: StoreCallback, resultOf: () => StoreResult): void {
  let result: StoreResult
  try {
    result = resultOf()
  } catch (error) {
    callback(error as Error)
    return
  }
  callback(null, result)
}

function maxKeysOf(options: StoreOptions | undefined): number | undefined {
  const cache = options?.cache
  return Number.isInteger(cache) && cache! > 0 ? cache : undefined
}
