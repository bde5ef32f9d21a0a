/** A store for @fastify/rate-limit 11. */
import type { Counts } from './counts.js'
import { keyOf } from './keys.js'
import { type CompatOptions, checkCompatOptions } from './options.js'
import { countsOf, Windows } from './windows.js'

export type { CompatOptions }

/** The options of the plugin, or of a route, that the store reads. */
export interface StoreOptions {
  /** Whether a request beyond the limit begins the window again. */
  continueExceeding?: boolean
  /** Whether each request beyond the limit begins the window again, and gets twice the `Retry-After`. */
  exponentialBackoff?: boolean
  /** How many keys can count, unless the option `maxKeys` of {@link MillraceStore.with} says it. */
  cache?: number
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
  readonly #windows: Windows<Counts>
  readonly #compat: CompatOptions
  readonly #continueExceeding: boolean
  readonly #exponentialBackoff: boolean
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
    return class extends MillraceStore {
      constructor(options?: StoreOptions) {
        super(options, own)
      }
    }
  }

  /**
   * The plugin calls it.
   * @param options the options of the plugin or of a route
   * @param compat how hits are counted: see {@link MillraceStore.with}
   */
  constructor(options: StoreOptions = {}, compat: CompatOptions = {}) {
    const { continueExceeding = false, exponentialBackoff = false } = options
    const maxKeys = compat.maxKeys ?? maxKeysOf(options)
    this.#compat = compat
    this.#continueExceeding = continueExceeding
    this.#exponentialBackoff = exponentialBackoff
    this.#windows = new Windows(countsOf, maxKeys === undefined ? compat : { ...compat, maxKeys })
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
    return new MillraceStore(routeOptions, this.#compat)
  }

  #hit(key: string | number, timeWindow: number, max: number): StoreResult {
    this.#windows.clock.read()
    this.#lastMax = max
    if (timeWindow <= 0) return { current: 1, ttl: timeWindow }
    const counts = this.#windows.of(timeWindow)
    const ownKey = keyOf(key)
    const { hits, resetMs } = counts.hit(ownKey, max)
    const isRenewed = (this.#continueExceeding || this.#exponentialBackoff) && hits > max && hits > 1
    if (!isRenewed) return { current: hits, ttl: resetMs }
    counts.restart(ownKey, max)
    return { current: hits, ttl: this.#continueExceeding ? timeWindow : backoffMs(timeWindow, hits - max) }
  }
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
