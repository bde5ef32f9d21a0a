// What all stores of documents do alike: they check, they count versions, they write only over what they have read.

import { invalid, MillraceError } from '../core/errors.js'
import { refuseUnknown } from '../core/option-names.js'
import type {
  ConfigChange,
  ConfigListener,
  ConfigStore,
  InvalidPolicy,
  ListOptions,
  PolicyEntry,
  PutOptions,
  StoredPolicy,
  SyncConfigStore,
} from './config-store.js'
import { checkPolicy, documentOf, type Policy, type PolicyDocument, parsePolicy } from './policy.js'
import { PolicyChecks } from './policy-checks.js'
import { checkPolicyKey, mayHavePolicy } from './policy-keys.js'

export type { PolicyEntry } from './config-store.js'

/** A document as a backend has read it. */
export interface RawDocument {
  /** The parsed document, or an `UnreadableDocument`. */
  readonly document: unknown
  /** By which the backend knows later whether the document is still the same: its text, or its version. */
  readonly token: unknown
}

/** A document and its key. */
export interface Listed extends RawDocument {
  readonly key: string
}

/** The puts under way of a `putMany`. */
const PUTS_AT_ONCE = 32
/** How often a write without `ifVersion` reads again, because another one came in between. */
const MOST_TRIES = 20
const MOST_LISTED = 10_000
const DEFAULT_LISTED = 100
/** Of the text of a cause, in the message of an error, which has no longer values. */
const MOST_CHARACTERS = 80

/**
 * The next version of a key: greater than the one before. In microseconds since 1970, so that it is also greater than
 * those of a policy that was deleted: no change takes less, and clocks of machines differ by less than people wait.
 */
export function nextVersion(previous: number): number {
  return Math.max(Math.floor(1_000 * (performance.timeOrigin + performance.now())), previous + 1)
}

/** A store whose backend has documents. A backend implements the abstract methods, which get checked arguments. */
export abstract class DocumentStore implements ConfigStore {
  abstract readonly kind: string
  abstract readonly watchDelayMs: number
  readonly #listeners = new Set<ConfigListener>()
  readonly #checks = new PolicyChecks()
  #closing: Promise<void> | undefined

  /** The documents of these keys, in their order, in one round trip. It may leave out those after the first. */
  protected abstract read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]>
  /**
   * Replaces what `read` has returned, in one step; undefined: none, and to none. False if it is not the same any
   * more. Resolves when the change is there for good.
   */
  protected abstract replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean>
  /** A page of documents by the order of the UTF-8 bytes of their keys. */
  protected abstract page(
    prefix: string,
    after: string | undefined,
    limit: number,
  ): Promise<readonly Listed[]>
  /** How many documents all pages of this prefix have. */
  protected abstract countDocuments(prefix: string): Promise<number>
  /** Begins to tell changes, by {@link tell}: there is a first listener. */
  protected abstract startWatch(): void
  /** There is no listener any more. */
  protected abstract stopWatch(): void
  /** Ends what the store has opened. */
  protected abstract end(): Promise<void>

  async get(key: string): Promise<StoredPolicy | undefined> {
    checkPolicyKey(key)
    return this.find([key])
  }

  async find(keys: readonly string[]): Promise<StoredPolicy | undefined> {
    this.checkOpen()
    const asked = possible(keys)
    return firstOf(asked, await this.#ask(() => this.read(asked)))
  }

  async put(key: string, policy: Policy, options: PutOptions = {}): Promise<StoredPolicy> {
    const next = checkedPut(key, policy, options)
    const fail = this.#checks.pass(next)
    try {
      const version = await this.#change(key, options, (previous) =>
        documentOf(next, options.version ?? nextVersion(previous)),
      )
      return { key, policy: next, version }
    } catch (error) {
      fail()
      throw error
    }
  }

  async putMany(entries: readonly PolicyEntry[]): Promise<void> {
    const { checked, fails } = checkEntries(entries, this.#checks)
    try {
      this.checkOpen()
      await this.#ask(() => this.putAll(checked, (key) => void fails.delete(key)))
    } catch (error) {
      for (const fail of fails.values()) fail()
      throw error
    }
  }

  /** Stores checked policies of different keys. If it may fail later on, it calls `stored` for each that is there. */
  protected async putAll(entries: readonly PolicyEntry[], stored: (key: string) => void): Promise<void> {
    let at = 0
    const put = async () => {
      try {
        while (at < entries.length) {
          const { key, policy } = entries[at++]!
          await this.#change(key, {}, (previous) => documentOf(policy, nextVersion(previous)))
          stored(key)
        }
      } finally {
        at = entries.length // no more after an error
      }
    }
    const ends = await Promise.allSettled(Array.from({ length: PUTS_AT_ONCE }, put))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  async delete(key: string, options: PutOptions = {}): Promise<boolean> {
    checkPolicyKey(key)
    checkPutOptions(options, ['ifVersion'])
    return (await this.#change(key, options, () => undefined)) >= 0
  }

  /** Returns the new version; for a deletion -1 if there was nothing to delete, otherwise 0. */
  async #change(
    key: string,
    { ifVersion }: PutOptions,
    make: (previous: number) => PolicyDocument | undefined,
  ): Promise<number> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      this.checkOpen()
      const [raw] = await this.#ask(() => this.read([key]))
      const version = raw && versionIn(raw.document)
      checkVersion(key, version, ifVersion)
      const next = make(version ?? 0)
      if (next === undefined && raw === undefined) return -1
      this.checkOpen()
      if (await this.#ask(() => this.replace(key, raw, next))) return next?.version ?? 0
    }
    throw conflictError(key, 'a store in which nobody else changes this key all the time', undefined)
  }

  async list(options: ListOptions = {}): Promise<readonly (StoredPolicy | InvalidPolicy)[]> {
    const { prefix, after, limit } = checkListOptions(options)
    this.checkOpen()
    return (await this.#ask(() => this.page(prefix, after, limit))).map(listed)
  }

  async count(options: { prefix?: string } = {}): Promise<number> {
    const prefix = checkCountOptions(options)
    this.checkOpen()
    return this.#ask(() => this.countDocuments(prefix))
  }

  watch(listener: ConfigListener): () => void {
    this.checkOpen()
    const own: ConfigListener = (change) => listener(change) // the same function may listen twice
    this.#listeners.add(own)
    if (this.#listeners.size === 1) this.startWatch()
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.stopWatch()
    }
  }

  addCheck(check: (policy: Policy) => void, failed?: (policy: Policy) => void): () => void {
    return this.#checks.add(check, failed)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#listeners.size > 0) this.stopWatch()
    this.#listeners.clear()
    this.#checks.clear()
    await this.end()
  }

  protected get isClosed(): boolean {
    return this.#closing !== undefined
  }

  protected checkOpen(): void {
    if (this.isClosed)
      throw new MillraceError('ERR_MILLRACE_CLOSED', 'store', 'a closed store', 'an open configuration store')
  }

  /** Tells all listeners. */
  protected tell(change: ConfigChange): void {
    for (const listener of [...this.#listeners]) listener(change)
  }

  /** Turns a backend's error into one of Millrace. */
  async #ask<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      throw storeError(this.kind, error)
    }
  }
}

/** A store whose backend answers at once. */
export abstract class SyncDocumentStore extends DocumentStore implements SyncConfigStore {
  protected abstract readNow(keys: readonly string[]): readonly (RawDocument | undefined)[]

  protected async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    return this.readNow(keys)
  }

  findNow(keys: readonly string[]): StoredPolicy | undefined {
    this.checkOpen()
    const asked = possible(keys)
    let raw: readonly (RawDocument | undefined)[]
    try {
      raw = this.readNow(asked)
    } catch (error) {
      throw storeError(this.kind, error)
    }
    return firstOf(asked, raw)
  }
}

function possible(keys: readonly string[]): readonly string[] {
  return keys.every(mayHavePolicy) ? keys : keys.filter(mayHavePolicy)
}

function firstOf(
  keys: readonly string[],
  raw: readonly (RawDocument | undefined)[],
): StoredPolicy | undefined {
  const i = raw.findIndex((each) => each !== undefined)
  return i < 0 ? undefined : { key: keys[i]!, ...parsePolicy(raw[i]!.document, keys[i]!) }
}

function listed({ key, document }: Listed): StoredPolicy | InvalidPolicy {
  try {
    return { key, ...parsePolicy(document, key) }
  } catch (error) {
    if (error instanceof MillraceError) return { key, error }
    throw error
  }
}

/** The version of a document, which may be no policy: 0 if it has no sound one. */
export function versionIn(document: unknown): number {
  const { version } = Object(document) as { version?: unknown }
  return Number.isSafeInteger(version) && (version as number) > 0 ? (version as number) : 0
}

/** Checks the arguments of `put`, and returns the policy as a document holds it. */
export function checkedPut(key: string, policy: Policy, options: PutOptions): Policy {
  checkPolicyKey(key)
  checkPutOptions(options)
  checkPolicy(policy)
  return parsePolicy(JSON.parse(JSON.stringify(documentOf(policy, 0))), key).policy
}

/** Checks the arguments of `putMany`. Returns one entry for each key, and by key what to call if it is not stored. */
function checkEntries(
  entries: readonly PolicyEntry[],
  checks: PolicyChecks,
): { checked: readonly PolicyEntry[]; fails: Map<string, () => void> } {
  if (!Array.isArray(entries)) throw invalid('entries', entries, 'an array of { key, policy }')
  const checked = new Map<string, PolicyEntry>()
  const fails = new Map<string, () => void>()
  for (const [i, entry] of entries.entries()) {
    try {
      const { key, policy } = Object(entry) as PolicyEntry
      const next = checkedPut(key, policy, {})
      fails.get(key)?.() // the policy of an entry before, which this one replaces
      fails.delete(key)
      fails.set(key, checks.pass(next))
      checked.set(key, { key, policy: next })
    } catch (error) {
      for (const fail of fails.values()) fail()
      if (!(error instanceof MillraceError)) throw error
      const { code, option, value, expected } = error
      throw new MillraceError(code, `entries[${i}]: ${option}`, value, expected, { cause: error })
    }
  }
  return { checked: [...checked.values()], fails }
}

export function checkPutOptions(options: PutOptions, names = ['ifVersion', 'version']): void {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ ifVersion }')
  refuseUnknown(options, names, (name, expected) => invalid('options', name, expected))
  const { ifVersion, version } = options
  if (version !== undefined && (!Number.isSafeInteger(version) || version < 0))
    throw invalid('version', version, 'the version of a policy')
  if (ifVersion === undefined || ifVersion === null) return
  if (!Number.isSafeInteger(ifVersion) || ifVersion < 0)
    throw invalid('ifVersion', ifVersion, 'the version of a policy, or null')
}

function checkVersion(key: string, version: number | undefined, ifVersion: number | null | undefined): void {
  if (ifVersion === undefined || (version ?? null) === ifVersion) return
  const expected = ifVersion === null ? 'no policy of this key' : `version ${ifVersion} of this key's policy`
  throw conflictError(key, expected, version)
}

export function checkListOptions(options: ListOptions): {
  prefix: string
  after: string | undefined
  limit: number
} {
  if (typeof options !== 'object' || options === null)
    throw invalid('options', options, '{ prefix, after, limit }')
  refuseUnknown(options, ['prefix', 'after', 'limit'], (name, expected) => invalid('options', name, expected))
  const { prefix = '', after, limit = DEFAULT_LISTED } = options
  if (prefix !== '') checkPolicyKey(prefix, 'prefix')
  if (after !== undefined) checkPolicyKey(after, 'after')
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED)
    throw invalid('limit', limit, `an integer from 1 to ${MOST_LISTED}`)
  return { prefix, after, limit }
}

/** Checks the options of `count`, and returns the prefix. */
export function checkCountOptions(options: { prefix?: string }): string {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ prefix }')
  refuseUnknown(options, ['prefix'], (name, expected) => invalid('options', name, expected))
  return checkListOptions(options).prefix
}

function conflictError(key: string, expected: string, version: number | undefined): MillraceError {
  return new MillraceError('ERR_MILLRACE_CONFIG_CONFLICT', key, version, expected)
}

/** The error of a store that does not answer. */
export function storeError(kind: string, cause: unknown): MillraceError {
  if (cause instanceof MillraceError) return cause
  const what = cause instanceof Error ? cause.message : String(cause)
  const short = what.length > MOST_CHARACTERS ? `${what.slice(0, MOST_CHARACTERS - 3)}...` : what
  return new MillraceError('ERR_MILLRACE_CONFIG_STORE', kind, short, 'a configuration store that answers', {
    cause,
  })
}
