import { invalid, MillraceError } from '../../../core/errors.js'
import type {
  ConfigChange,
  ConfigListener,
  ConfigStore,
  ListOptions,
  PutOptions,
  StoredPolicy,
  SyncConfigStore,
} from '../../config-store.js'
import { isSync } from '../../config-store.js'
import { checkCountOptions, checkedPut, checkListOptions, checkPutOptions } from '../../document-store.js'
import type { Policy } from '../../policy.js'
import { PolicyChecks } from '../../policy-checks.js'
import { checkPolicyKey } from '../../policy-keys.js'
import { advance, look, mirror, refresh, untilDone } from './shard-copies.js'
import { countIn, type Entry, mergedPage, ShardDown } from './shard-list.js'
import { checkShards, joined, ShardList, type Shards } from './shard-lists.js'
import { type Answer, type Ask, answerNow, answerOf, at, type Shard, search } from './shard-search.js'

/** What `move` has done. */
export interface MoveReport {
  /** How many policies have got another place. */
  readonly moved: number
  /** The keys of documents that are no policies. They are where they were. */
  readonly invalid: readonly string[]
}

/** How many policies are moved at once. */
const MOVED_AT_ONCE = 64

export class ShardedConfig implements ConfigStore {
  readonly kind = 'sharded'
  readonly #replicas: number
  #present: ShardList
  /** Before a change of the list, until all has been moved. */
  #previous: ShardList | undefined
  readonly #checks = new PolicyChecks()
  /** By listener, how to end its watch of each shard. */
  readonly #listeners = new Map<ConfigListener, Map<Shard['store'], () => void>>()
  /** By key, the change that is being made. */
  readonly #changing = new Map<string, Promise<unknown>>()
  /** Shards of earlier lists, too: they are closed with the others. */
  readonly #stores = new Set<ConfigStore>()
  #closing: Promise<void> | undefined

  constructor(present: readonly Shard[], previous: readonly Shard[] | undefined, replicas: number) {
    this.#replicas = replicas
    this.#present = new ShardList(present, replicas)
    if (previous !== undefined)
      this.#previous = new ShardList(joined(previous, present, 'previous'), replicas)
    for (const { store } of this.#all()) this.#stores.add(store)
  }

  get watchDelayMs(): number {
    return Math.max(...this.#all().map(({ store }) => store.watchDelayMs))
  }

  /** The shards of both lists. */
  #all(): Shard[] {
    return [...new Set([...this.#present.all, ...(this.#previous?.all ?? [])])]
  }

  /** The shards of a key; if it may be elsewhere, also those from before. */
  #chainsOf(key: string): (readonly Shard[])[] {
    const present = this.#present.of(key)
    const previous = this.#previous?.of(key)
    return previous === undefined || previous[0] === present[0] ? [present] : [present, previous]
  }

  async get(key: string): Promise<StoredPolicy | undefined> {
    checkPolicyKey(key)
    return this.find([key])
  }

  async find(keys: readonly string[]): Promise<StoredPolicy | undefined> {
    const searching = this.search(keys)
    let step = searching.next([])
    while (!step.done) step = searching.next(await Promise.all(step.value.map(answerOf)))
    return step.value
  }

  protected search(keys: readonly string[]): Generator<Ask[], StoredPolicy | undefined, Answer[]> {
    this.#checkOpen()
    return search(keys, (key) => this.#chainsOf(key))
  }

  async put(key: string, policy: Policy, options: PutOptions = {}): Promise<StoredPolicy> {
    const next = checkedPut(key, policy, options)
    const fail = this.#checks.pass(next)
    let stored: StoredPolicy | undefined
    try {
      return await this.#inTurn(key, async () => {
        await this.#pull(key)
        const [first, ...replicas] = this.#present.of(key)
        stored = await at(first!, (store) => store.put(key, next, options))
        await this.#complete(key, first!, replicas)
        return stored
      })
    } catch (error) {
      if (stored === undefined) fail() // otherwise it counts, though not all replicas have it yet
      throw error
    }
  }

  async delete(key: string, options: PutOptions = {}): Promise<boolean> {
    checkPolicyKey(key)
    checkPutOptions(options, ['ifVersion'])
    return this.#inTurn(key, async () => {
      await this.#pull(key)
      const [first, ...replicas] = this.#present.of(key)
      const { condition } = await look(first!, key)
      // First where it was before: a process that finds it only there would move it.
      if (options.ifVersion === undefined || options.ifVersion === condition.ifVersion)
        for (const shard of this.#outside(key)) await at(shard, (store) => store.delete(key))
      const isDeleted = await at(first!, (store) => store.delete(key, options))
      await this.#complete(key, first!, replicas)
      return isDeleted
    })
  }

  /** The shards that had the key before the change of the list, and have not to have it now. */
  #outside(key: string): Shard[] {
    const present = this.#present.of(key)
    return (this.#previous?.of(key) ?? []).filter((shard) => !present.includes(shard))
  }

  /** Copies to the first shard of a key what the first one of the list before has. */
  async #pull(key: string): Promise<void> {
    const [present, previous] = this.#chainsOf(key)
    if (previous === undefined) return
    await advance(key, previous[0]!, present![0]!)
  }

  /** Gives all other shards of a key what the first one has. */
  async #complete(key: string, first: Shard, replicas: readonly Shard[]): Promise<void> {
    await Promise.all([
      ...replicas.map((shard) => mirror(key, first, shard)),
      ...this.#outside(key).map((shard) => refresh(key, first, shard)),
    ])
  }

  /** Changes of a key by this process follow each other. */
  async #inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    this.#checkOpen()
    const before = this.#changing.get(key)
    const own = (before ?? Promise.resolve()).then(act)
    const ended = own.then(
      () => {},
      () => {}, // the caller gets the error of `own`
    )
    this.#changing.set(key, ended)
    try {
      return await own
    } finally {
      if (this.#changing.get(key) === ended) this.#changing.delete(key)
    }
  }

  async list(options: ListOptions = {}): Promise<readonly Entry[]> {
    const { prefix, after, limit } = checkListOptions(options)
    this.#checkOpen()
    const down = new Set<Shard>()
    for (;;) {
      const shards = this.#all().filter((shard) => !down.has(shard))
      try {
        return await mergedPage(shards, prefix, after, limit, (key, entries) =>
          this.#chosen(key, entries, down),
        )
      } catch (error) {
        if (!(error instanceof ShardDown)) throw error
        down.add(error.shard)
        // Only while as many shards as replicas are missing, each policy is known to be on one that answers.
        if (down.size >= this.#replicas || this.#previous !== undefined) throw error.cause
      }
    }
  }

  /** Of what shards have of a key, what `get` would return. */
  #chosen(key: string, entries: ReadonlyMap<Shard, Entry>, down: ReadonlySet<Shard>): Entry | undefined {
    const found = this.#chainsOf(key).flatMap((shards) => {
      const shard = shards.find((each) => !down.has(each))
      return (shard && entries.get(shard)) ?? []
    })
    return found.reduce<Entry | undefined>(
      (best, each) => (best === undefined || (each.version ?? -1) > (best.version ?? -1) ? each : best),
      undefined,
    )
  }

  /**
   * What all shards have together, divided by the copies that each policy is to have. All must answer: nobody knows how
   * many copies one that is down has.
   */
  async count(options: { prefix?: string } = {}): Promise<number> {
    const prefix = checkCountOptions(options)
    this.#checkOpen()
    const counts = await Promise.all(this.#all().map((shard) => at(shard, (store) => countIn(store, prefix))))
    return Math.round(counts.reduce((a, b) => a + b) / this.#replicas)
  }

  watch(listener: ConfigListener): () => void {
    this.#checkOpen()
    const own = (change: ConfigChange) => listener(change) // the same function may listen twice
    this.#listeners.set(own, new Map())
    this.#watchAll()
    return () => {
      for (const end of this.#listeners.get(own)?.values() ?? []) end()
      this.#listeners.delete(own)
    }
  }

  /** Each listener hears each shard, and no other. */
  #watchAll(): void {
    const stores = this.#all().map(({ store }) => store)
    for (const [listener, ends] of this.#listeners) {
      for (const store of stores) if (!ends.has(store)) ends.set(store, store.watch(listener))
      for (const [store, end] of ends) {
        if (stores.includes(store)) continue
        end()
        ends.delete(store)
      }
    }
  }

  addCheck(check: (policy: Policy) => void, failed?: (policy: Policy) => void): () => void {
    return this.#checks.add(check, failed)
  }

  reshard(stores: Shards): void {
    this.#checkOpen()
    if (this.#previous !== undefined)
      throw invalid('stores', stores, 'a list after `move` has ended, as policies are still where they were')
    const next = joined(checkShards(stores, this.#replicas, 'stores'), this.#present.all, 'stores')
    for (const { name, store } of next) this.checkShard(name, store)
    this.#previous = this.#present
    this.#present = new ShardList(next, this.#replicas)
    for (const { store } of next) this.#stores.add(store)
    this.#watchAll()
  }

  /** Refuses a shard that can't join. */
  protected checkShard(_name: string, _store: ConfigStore): void {}

  async move(): Promise<MoveReport> {
    this.#checkOpen()
    const report = { moved: 0, invalid: [] as string[] }
    for (const shard of this.#all()) await this.#moveFrom(shard, report)
    this.#previous = undefined
    this.#watchAll()
    for (const listener of this.#listeners.keys()) listener({}) // what was read before may have another place now
    return report
  }

  async #moveFrom(shard: Shard, report: { moved: number; invalid: string[] }): Promise<void> {
    for (let after: string | undefined; ; ) {
      const from = after === undefined ? {} : { after }
      const page = await at(shard, (store) => store.list({ ...from, limit: MOVED_AT_ONCE }))
      const isMoved = await Promise.all(
        page.map(({ key, policy }) => {
          if (policy !== undefined) return this.#inTurn(key, () => this.#settle(key, shard))
          report.invalid.push(key)
          return false
        }),
      )
      report.moved += isMoved.filter(Boolean).length
      if (page.length < MOVED_AT_ONCE) return
      after = page.at(-1)!.key
    }
  }

  /** Brings what this shard has of a key to the shards that the key has now. Returns whether it was elsewhere. */
  async #settle(key: string, shard: Shard): Promise<boolean> {
    const [first, ...replicas] = this.#present.of(key)
    const isElsewhere = first !== shard && !replicas.includes(shard)
    await untilDone(key, async () => {
      if (shard !== first) await advance(key, shard, first!)
      await Promise.all(replicas.map((each) => mirror(key, first!, each)))
      if (!isElsewhere) return true
      const [here, there] = await Promise.all([look(shard, key), look(first!, key)])
      if (here.stored === undefined || here.stored === 'invalid') return true
      // A later version has come here since, from a process that has the old list.
      if (Object(there.stored).version < here.stored.version) return false
      await at(shard, (store) => store.delete(key, here.condition))
      return true
    })
    return isElsewhere
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const ends of this.#listeners.values()) for (const end of ends.values()) end()
    this.#listeners.clear()
    this.#checks.clear()
    await Promise.all([...this.#stores].map((store) => store.close()))
  }

  #checkOpen(): void {
    if (this.#closing !== undefined)
      throw new MillraceError('ERR_MILLRACE_CLOSED', 'store', 'a closed store', 'an open configuration store')
  }
}

export class SyncShardedConfig extends ShardedConfig implements SyncConfigStore {
  findNow(keys: readonly string[]): StoredPolicy | undefined {
    const searching = this.search(keys)
    let step = searching.next([])
    while (!step.done) step = searching.next(step.value.map(answerNow))
    return step.value
  }

  protected override checkShard(name: string, store: ConfigStore): void {
    if (!isSync(store)) throw invalid(`stores.${name}`, store.kind, 'a store with findNow, as all others are')
  }
}
