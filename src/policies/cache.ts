// The cache in front of a configuration store: it answers at memory speed, and goes on while the store is down.

import type { LRUCache } from 'lru-cache'
import { type ConfigChange, type ConfigStore, isSync, type StoredPolicy } from '../config/config-store.js'
import { storeError } from '../config/document-store.js'
import { candidatesOf, MAX_POLICY_KEY, mayHavePolicy, prefixIn } from '../config/policy-keys.js'
import { MillraceError } from '../core/errors.js'
import { LONGEST_TIMER_MS } from '../core/long-timer.js'
import { lruCache } from '../core/lru-cache.js'
import { type CachedPolicy, Entry } from './cache-entry.js'
import { isKnown, UNKNOWN } from './plan.js'

export type { CachedPolicy } from './cache-entry.js'

/** The settings of a cache, checked. */
export interface CacheSettings {
  /** The most keys that are kept. */
  readonly maxKeys: number
  /** After this time a policy is read again. */
  readonly ttlMs: number
  /** For how long a policy is used beyond that, if the store can't be read. */
  readonly maxStaleMs: number
  /** How long a call waits for the store. */
  readonly deadlineMs: number
}

/** What uses the cached policies. */
export interface CacheUser {
  /**
   * The plan for a policy, undefined for a key without one: a number of 0 or more; and the policy to keep, an equal one.
   */
  planOf(found: StoredPolicy | undefined): Pick<CachedPolicy, 'plan' | 'found'>
  /** A key gets another plan; `from` is below 0 if it is not known which it had. */
  moved(key: string, from: number, to: number): void
  /** These keys, or keys with these prefixes, may have other plans by now; undefined: any may. */
  dropped(keys: readonly string[] | undefined): void
  /** The policy of a key has made room for another one: what was linked to it can go. */
  displaced(key: string): void
  /** A policy could not be read. What is known of its key goes on. */
  failed(error: MillraceError): void
}

/** What a load has found, and the generation in which it began. */
interface Found {
  readonly found: StoredPolicy | undefined
  readonly generation: number
}

/** Ages are compared with a time that is taken this often in a TTL: reading a clock costs as much as a look-up. */
const TICKS_PER_TTL = 16
/** A TTL is shortened by up to this part, at random, so that keys that came together are not read again together. */
const JITTER = 0.2
/** After a failure a key is not read again for this long. */
const PAUSE_MS = 100
/** A read that has not ended after this long is given up: another one may start. */
const LONGEST_LOAD_MS = 2_000
const MOST_UNANSWERED = 10_000
/** After the change of a prefix so many of its keys are read at once; the others when they are next asked for. */
const MOST_READ_AHEAD = 1_000

/** The policies of keys as one thread knows them. */
export class PolicyCache {
  readonly #store: ConfigStore
  readonly #findNow: ((keys: readonly string[]) => StoredPolicy | undefined) | undefined
  readonly #settings: CacheSettings
  readonly #user: CacheUser
  readonly #now: () => number
  readonly #entries: LRUCache<string, Entry>
  /** Keys without an answer so far. In an outage, keys that nobody knows don't displace those that are known. */
  readonly #unanswered: LRUCache<string, Entry>
  /** Keys that are being read, also those that have made room for others: each is read once, and its changes count. */
  readonly #reading = new Map<string, Entry>()
  readonly #endWatch: () => void
  readonly #timer: NodeJS.Timeout
  #nowMs: number
  /** An entry that was used since is recent enough: to move it costs as much as to find it. */
  #recentMs = 0
  /** Rises when any policy may have changed. */
  #generation = 0
  #isClosed = false
  readonly statistics = { loads: 0, failures: 0, stale: 0, invalid: 0 }

  constructor(store: ConfigStore, settings: CacheSettings, user: CacheUser, now = () => performance.now()) {
    this.#store = store
    this.#findNow = isSync(store) ? (keys) => store.findNow(keys) : undefined
    this.#settings = settings
    this.#user = user
    this.#now = now
    this.#nowMs = now()
    const { LRUCache } = lruCache()
    this.#entries = new LRUCache<string, Entry>({
      max: settings.maxKeys,
      dispose: (entry) => {
        entry.isKept = false
        if (!this.#isClosed) user.displaced(entry.key)
      },
    })
    this.#unanswered = new LRUCache<string, Entry>({ max: Math.min(settings.maxKeys, MOST_UNANSWERED) })
    this.#endWatch = store.watch((change) => this.#handle(change))
    const tickMs = Math.min(Math.max(settings.ttlMs / TICKS_PER_TTL, 1), LONGEST_TIMER_MS)
    this.#timer = setInterval(() => this.tick(), tickMs).unref()
  }

  /** The number of keys that are kept. */
  get size(): number {
    return this.#entries.size
  }

  /** Takes the time by which ages are compared. A timer does it; a test may, too. */
  tick(): void {
    this.#nowMs = this.#now()
    this.#recentMs = this.#nowMs - this.#settings.ttlMs / TICKS_PER_TTL
    this.#user.dropped(undefined) // who keeps plans asks again, and finds out which have expired
  }

  /**
   * The policy of a key as far as it is known. If it is not, or is too old, it is read: at once from a synchronous
   * store, otherwise in the background.
   */
  peek(key: string): CachedPolicy {
    const entry = this.#entryOf(key)
    if (isKnown(entry.plan) && !isKnown(entry.lastPlan)) {
      entry.lastPlan = entry.plan
      this.#user.moved(entry.key, UNKNOWN, entry.plan)
    }
    if (this.#isFresh(entry)) return entry
    if (this.#findNow !== undefined) this.#loadNow(entry, this.#findNow)
    else void this.#load(entry)
    if (isKnown(entry.plan) && !this.#isFresh(entry)) this.#serveStale(entry)
    return entry
  }

  /** Lets each key be moved when it is next asked for: the plan is the same, and its window another one. */
  moveAll(): void {
    for (const entry of this.#entries.values()) entry.lastPlan = UNKNOWN
  }

  /** Lets a key be moved when it is next asked for. */
  moveAgain(key: string): void {
    const entry = this.#entries.peek(key)
    if (entry !== undefined) entry.lastPlan = UNKNOWN
  }

  keys(): string[] {
    return [...this.#entries.keys()]
  }

  /** Whether this is what `peek` would return at once for its key: nothing is to be read. Counts as a use of it. */
  isCurrent(found: CachedPolicy): boolean {
    const entry = found as Entry
    if (!entry.isKept || !isKnown(entry.lastPlan) || !this.#isFresh(entry)) return false
    if (entry.usedMs !== this.#nowMs) this.#use(entry)
    return true
  }

  /** The policy of a key. Waits until it is known, for at most the deadline. */
  async get(key: string): Promise<CachedPolicy> {
    const entry = this.peek(key)
    if (isKnown(entry.plan)) return entry
    const { loading } = entry as Entry
    if (loading !== undefined) await this.#byDeadline(loading)
    return entry
  }

  /** Asks for the plans of all policies again: numbers have a new meaning. */
  replan(): void {
    for (const entry of this.#entries.values()) {
      if (!isKnown(entry.lastPlan) && !isKnown(entry.plan)) continue
      const { plan } = this.#user.planOf(entry.found)
      if (entry.lastPlan >= 0) entry.lastPlan = plan
      if (isKnown(entry.plan)) entry.plan = plan
    }
  }

  close(): void {
    this.#isClosed = true
    this.#endWatch()
    clearInterval(this.#timer)
    this.#entries.clear()
    this.#unanswered.clear()
    this.#reading.clear()
  }

  #entryOf(key: string): Entry {
    const own = key.length > MAX_POLICY_KEY ? key.slice(0, MAX_POLICY_KEY + 1) : key
    const known = this.#entries.peek(own)
    if (known !== undefined) {
      if (known.usedMs !== this.#nowMs) this.#use(known)
      return known
    }
    const unanswered = this.#unanswered.get(own) ?? this.#reading.get(own)
    if (unanswered !== undefined) return unanswered
    const entry = new Entry(copyOf(own))
    this.#unanswered.set(entry.key, entry)
    return entry
  }

  #use(entry: Entry): void {
    if (entry.usedMs < this.#recentMs) this.#entries.get(entry.key) // away from the least recently used
    entry.usedMs = this.#nowMs
  }

  /** Takes in an entry that has an answer. */
  #keep(entry: Entry): void {
    this.#unanswered.delete(entry.key)
    if (this.#entries.peek(entry.key) !== undefined) return
    entry.usedMs = this.#nowMs
    entry.isKept = true
    this.#entries.set(entry.key, entry)
  }

  #isFresh(entry: Entry): boolean {
    return entry.expiresMs > this.#nowMs && entry.generation === this.#generation
  }

  #serveStale(entry: Entry): void {
    if (entry.usableUntilMs > this.#nowMs) this.statistics.stale++
    else {
      entry.plan = UNKNOWN
      entry.lastPlan = UNKNOWN // it counts by another plan from here on, and is moved back later
      entry.found = undefined
    }
  }

  #loadNow(entry: Entry, findNow: (keys: readonly string[]) => StoredPolicy | undefined): void {
    if (this.#isPaused(entry)) return
    const generation = this.#generation
    this.statistics.loads++
    let found: StoredPolicy | undefined
    try {
      found = findNow(candidatesOf(entry.key))
    } catch (error) {
      this.#fail(entry, error)
      return
    }
    this.#accept(entry, found, generation)
  }

  /** Reads the policy, unless that is happening. Never rejects. */
  #load(entry: Entry): Promise<void> {
    if (entry.loading !== undefined) return entry.loading
    if (this.#isPaused(entry)) return Promise.resolve()
    const generation = this.#generation
    const load = ++entry.loads
    entry.isDirty = false
    this.statistics.loads++
    this.#reading.set(entry.key, entry)
    const giveUp = setTimeout(() => {
      this.#end(entry, load, { error: slowError(this.#store.kind, LONGEST_LOAD_MS) })
    }, LONGEST_LOAD_MS).unref()
    entry.loading = this.#find(entry.key)
      .then(
        (found) => this.#end(entry, load, { found, generation }),
        (error: unknown) => this.#end(entry, load, { error }),
      )
      .finally(() => clearTimeout(giveUp))
    return entry.loading
  }

  /** Takes in what a load has found, unless it was given up. */
  #end(entry: Entry, load: number, outcome: Found | { readonly error: unknown }): void {
    if (entry.loads !== load || this.#isClosed) return
    entry.loads++ // this one is over: an answer after it was given up is out of date
    entry.loading = undefined
    this.#reading.delete(entry.key)
    if ('error' in outcome) this.#fail(entry, outcome.error)
    else this.#accept(entry, outcome.found, outcome.generation)
    if (!entry.isDirty) return
    entry.expiresMs = 0
    entry.pausedUntilMs = 0
    void this.#load(entry)
  }

  /** A store may throw where it should reject. */
  async #find(key: string): Promise<StoredPolicy | undefined> {
    return this.#store.find(candidatesOf(key))
  }

  async #byDeadline(loading: Promise<void>): Promise<void> {
    const { deadlineMs } = this.#settings
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#user.failed(slowError(this.#store.kind, deadlineMs))
        resolve()
      }, deadlineMs)
    })
    await Promise.race([loading, deadline])
    clearTimeout(timer)
  }

  #accept(entry: Entry, found: StoredPolicy | undefined, generation: number): void {
    const nowMs = this.#now()
    if (this.#isBehind(entry, found, nowMs)) return
    const { lastPlan } = entry
    try {
      const { plan, found: kept } = this.#user.planOf(found)
      this.#keep(entry)
      entry.found = kept
      entry.plan = plan
      entry.lastPlan = plan
      entry.olderVersion = 0
      const { ttlMs, maxStaleMs } = this.#settings
      entry.expiresMs = nowMs + ttlMs * (1 - JITTER * Math.random())
      entry.usableUntilMs = nowMs + ttlMs + maxStaleMs
      entry.generation = generation
      entry.pausedUntilMs = 0
      if (plan !== lastPlan) this.#user.moved(entry.key, lastPlan, plan)
    } catch (error) {
      this.#fail(entry, error)
    }
  }

  /**
   * Whether the answer is older than what is known: of a replica that is behind, or of a read that took longer than the
   * next one. It is read again soon. If it says the same then, somebody has restored an older state. A document
   * without a version is 0, and a synchronous store never answers late.
   */
  #isBehind(entry: Entry, found: StoredPolicy | undefined, nowMs: number): boolean {
    if (this.#findNow !== undefined || found === undefined || found.version === 0) return false
    const known = entry.found
    if (known === undefined || known.key !== found.key || found.version >= known.version) return false
    if (entry.olderVersion === found.version) return false
    entry.olderVersion = found.version
    entry.expiresMs = Math.min(entry.expiresMs, nowMs)
    entry.pausedUntilMs = nowMs + PAUSE_MS
    entry.pausedGeneration = this.#generation
    return true
  }

  #fail(entry: Entry, cause: unknown): void {
    const error = storeError(this.#store.kind, cause)
    this.statistics.failures++
    if (error.code === 'ERR_MILLRACE_INVALID_POLICY') this.statistics.invalid++
    entry.pausedUntilMs = this.#now() + PAUSE_MS
    entry.pausedGeneration = this.#generation
    this.#user.failed(error)
  }

  /** The clock is read here: it is no more than the failed read costs. Once a store is back, nothing is paused. */
  #isPaused({ pausedUntilMs, pausedGeneration }: Entry): boolean {
    return pausedUntilMs > 0 && pausedGeneration === this.#generation && pausedUntilMs > this.#now()
  }

  #handle({ keys, error }: ConfigChange): void {
    if (this.#isClosed) return
    if (error !== undefined) this.#user.failed(error)
    else if (keys === undefined) {
      this.#generation++
      this.#user.dropped(undefined)
    } else {
      const own = keys.filter(mayHavePolicy) // others may write what they like into a store
      // One walk over all entries is enough.
      if (own.filter((key) => prefixIn(key) !== undefined).length > 1) this.#generation++
      else for (const key of own) this.#expire(key)
      this.#user.dropped(own)
    }
  }

  /**
   * Lets a key be read again, or all keys with a prefix. What is known of them is used until then. They are read at
   * once, so that the change holds before the next request, and another window counts from now on: of a prefix those
   * that were used last.
   */
  #expire(key: string): void {
    const changed: Entry[] = []
    const prefix = prefixIn(key)
    if (prefix !== undefined) {
      for (const entries of [this.#entries, this.#reading])
        for (const entry of entries.values()) if (entry.key.startsWith(prefix)) changed.push(entry)
    }
    const own = this.#entries.peek(key) ?? this.#unanswered.peek(key) ?? this.#reading.get(key)
    if (own !== undefined) changed.push(own)
    for (const entry of changed) expire(entry)
    for (const entry of changed.slice(0, MOST_READ_AHEAD)) {
      if (this.#findNow !== undefined) this.#loadNow(entry, this.#findNow)
      else void this.#load(entry)
    }
  }
}

function expire(entry: Entry): void {
  entry.expiresMs = 0
  entry.pausedUntilMs = 0
  if (entry.loading !== undefined) entry.isDirty = true
}

/** A string of its own: a slice would keep all of the string that it was cut from. */
function copyOf(key: string): string {
  return key.isWellFormed() ? Buffer.from(key).toString() : Buffer.from(key, 'utf16le').toString('utf16le')
}

function slowError(kind: string, ms: number): MillraceError {
  return new MillraceError('ERR_MILLRACE_CONFIG_STORE', kind, 'no answer', `an answer within ${ms} ms`)
}
