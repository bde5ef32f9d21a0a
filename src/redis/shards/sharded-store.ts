import { closedError } from '../../api/checks.js'
import { serverOf } from '../../core/algorithms.js'
import { MillraceError } from '../../core/errors.js'
import type { CallLimit } from '../../engines/engine.js'
import { Deadlines } from '../../remote/deadlines.js'
import type { KeyNames } from '../../remote/key-names.js'
import { Outage } from '../../remote/outage.js'
import type { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { ShardStats } from '../../remote/remote-statistics.js'
import type {
  Asked,
  Asking,
  Changing,
  LeaseStats,
  RemoteStore,
  StoreCounters,
} from '../../remote/remote-store.js'
import { BoundedCalls } from './bounded-calls.js'
import { askAtOnce, chargeInTurn, type Requests } from './charge-in-turn.js'
import { merged, type PlacedDecision } from './merged-decision.js'
import { argumentsByPlace, unpackReceipts } from './receipts.js'
import { refundInTurn } from './refund-in-turn.js'
import { everywhere, type OpenedShard, type Shard, storeOf } from './shard.js'
import { ShardHistory } from './shard-history.js'
import type { NamedShard, ShardsPlan } from './shards-option.js'

/** How a sharded store reaches its servers. */
export interface ShardedPlan extends ShardsPlan {
  readonly rules: readonly RemoteRule[]
  readonly deadlineMs: number
  readonly names: KeyNames
  /** In milliseconds, of this process or of a test. */
  readonly nowMs: () => number
  /** Connects to a shard. */
  readonly open: (client: unknown, rules: readonly RemoteRule[]) => OpenedShard
}

/** A new server has this long to answer. */
const JOIN_MS = 2_000

/** Several independent servers, each with the keys that rendezvous hashing gives it. */
export class ShardedStore implements RemoteStore {
  readonly #plan: ShardedPlan
  readonly #history: ShardHistory<Shard>
  readonly #shards = new Map<number, Shard>()
  /** How long the list before a change counts, too. */
  readonly #changeMs: number
  /** Calls about keys that are charged at several shards. */
  readonly #calls: BoundedCalls
  #rules: readonly RemoteRule[]
  #ids = 0
  #isClosed = false
  #changing: Promise<unknown> = Promise.resolve()
  onRecovery: () => void = () => {}

  constructor(plan: ShardedPlan) {
    this.#plan = plan
    this.#rules = plan.rules
    this.#calls = new BoundedCalls(plan.deadlineMs)
    // A call that a process has sent just before a change is charged by its deadline.
    this.#changeMs = Math.max(...plan.rules.map(countingMs)) + plan.deadlineMs + plan.changeWithinMs
    try {
      const { shards, previousShards } = plan
      const present = shards.map((shard) => this.#open(shard))
      const previous = previousShards.map((shard) => this.#named(shard.name) ?? this.#open(shard))
      this.#history = new ShardHistory(present)
      if (previous.length > 0) this.#history.precede(previous, plan.nowMs() + this.#changeMs)
    } catch (error) {
      for (const shard of this.#shards.values()) void storeOf(shard).close()
      throw error
    }
  }

  async ready(): Promise<void> {
    await Promise.all(this.#history.present.map((shard) => storeOf(shard).ready()))
  }

  get counters(): StoreCounters {
    const each = this.#history.all.map((shard) => storeOf(shard).counters)
    const leases = each.flatMap(({ leases }) => leases ?? [])
    return {
      restored: each.reduce((sum, { restored }) => sum + restored, 0),
      ...(leases.length > 0 && { leases: sumOf(leases) }),
    }
  }

  get rules(): readonly RemoteRule[] {
    return this.#rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#rules = rules
    for (const shard of this.#shards.values()) storeOf(shard).rules = rules
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    return storeOf(this.#history.present[0]!).unitLimits(limit)
  }

  divide(asked: readonly Asked[]): number[][] {
    return [...this.#byShards(asked)].flatMap(([shards, indices]) => {
      const own = indices.map((i) => asked[i]!)
      const divisions = shards.map((shard) => storeOf(shard).divide(own))
      const finest = divisions.reduce((most, calls) => (calls.length > most.length ? calls : most))
      return finest.map((call) => call.map((at) => indices[at]!))
    })
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const decisions: RemoteDecision[] = []
    // A change may have ended since `divide`: then these keys have different shards.
    const calls = [...this.#byShards(asked)].map(async ([shards, indices]) => {
      const own = indices.map((i) => asked[i]!)
      const said = await this.#askAt(shards, { op, asked: own, limit, rules: this.#rules })
      for (const [at, i] of indices.entries())
        decisions[i] = merged(said[at]![0]!.decision.requested, said[at]!)
    })
    await Promise.all(calls)
    return decisions
  }

  /** At once, if the key has one shard only. */
  askNow(op: Asking, asked: Asked): RemoteDecision | undefined {
    const shards = this.#find(asked.key)
    if (shards.length > 1) return undefined
    const decision = storeOf(shards[0]!).askNow?.(op, asked)
    return decision && merged(decision.requested, [{ place: shards[0]!.id, decision }])
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    if (op === 'giveBack') return this.#giveBack(key, units, more, limits)
    const shards = this.#find(key)
    if (op === 'penalizeAgo' && shards.some(({ opened }) => opened.isDown()))
      throw new Outage(undefined, false)
    if (op === 'refund' && shards.length > 1) return refundInTurn(shards, this.#rules, key, units)
    return mostOf(units, await everywhere(shards, (store) => store.change(op, key, units, more, limits)))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    return Math.max(...(await everywhere(this.#find(key), (store) => store.usage(key, ms, index))))
  }

  chargedKeys(): readonly string[] {
    return [...new Set(this.#history.all.flatMap((shard) => storeOf(shard).chargedKeys?.() ?? []))]
  }

  async clearAll(): Promise<void> {
    this.#forget()
    await everywhere(this.#history.all, (store) => store.clearAll())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#calls.close()
    await Promise.all([...this.#shards.values()].map((shard) => storeOf(shard).close()))
  }

  /**
   * Replaces the list of shards, when the new ones have answered. Changes happen in the order of the calls.
   * @param chargesBoth whether the counts of keys that move go on; false ends changes under way, too
   * @throws MillraceError (rejects) if a new shard can't be used, or does not answer: then nothing changes
   */
  reshard(shards: readonly NamedShard[], chargesBoth: boolean): Promise<void> {
    const changed = this.#changing.then(() => this.#reshard(shards, chargesBoth))
    this.#changing = changed.catch(() => {}) // the caller has the error; the next change begins again
    return changed
  }

  statistics(): ShardStats[] {
    this.#forget()
    const present = new Set(this.#history.present)
    return this.#history.all.map((shard) => ({
      name: shard.name,
      breaker: shard.opened.isDown() ? 'open' : 'closed',
      leaving: !present.has(shard),
      restored: storeOf(shard).counters.restored,
    }))
  }

  async #reshard(next: readonly NamedShard[], chargesBoth: boolean): Promise<void> {
    const joining = new Map<string, OpenedShard>()
    try {
      // Again while a change ends meanwhile, and a shard leaves with it that this list has.
      for (
        let missing = this.#missing(next, joining);
        missing.length > 0;
        missing = this.#missing(next, joining)
      ) {
        for (const { name, client } of missing) joining.set(name, this.#connect(client, true))
        await Promise.all(missing.map(({ name }) => untilReady(name, joining.get(name)!.store)))
      }
    } catch (error) {
      await Promise.all([...joining.values()].map(({ store }) => store.close()))
      throw error
    }
    for (const { store, outages } of joining.values()) {
      store.rules = this.#rules
      outages.isMuted = false
    }
    const shards = next.map(({ name }) => {
      const opened = joining.get(name)
      const shard = this.#named(name)
      if (shard === undefined) return this.#add(name, opened!)
      if (opened === undefined) return shard
      void storeOf(shard).close()
      shard.opened = opened
      return shard
    })
    this.#leave(this.#history.change(shards, chargesBoth ? this.#plan.nowMs() + this.#changeMs : undefined))
  }

  /**
   * The shards of a list that have no connection yet.
   * @throws MillraceError `ERR_MILLRACE_CLOSED`
   */
  #missing(next: readonly NamedShard[], joining: ReadonlyMap<string, OpenedShard>): readonly NamedShard[] {
    if (this.#isClosed) throw closedError()
    this.#forget()
    return next.filter(
      ({ name, client }) => !joining.has(name) && this.#named(name)?.opened.client !== client,
    )
  }

  /** What the shards say of each request about keys that they have. */
  async #askAt(shards: readonly Shard[], requests: Requests): Promise<PlacedDecision[][]> {
    if (shards.length === 1 || requests.op === 'peek') return askAtOnce(shards, requests)
    return this.#calls.run((call) => chargeInTurn(shards, requests, call))
  }

  async #giveBack(
    key: string,
    units: readonly number[],
    more: readonly string[],
    limits: readonly (number | undefined)[] | undefined,
  ): Promise<number[]> {
    const calls = [...argumentsByPlace(unpackReceipts(more))].flatMap(([place, receipts]) => {
      const shard = this.#shards.get(place) // one that has left has no counts any more
      return shard === undefined ? [] : [[shard, receipts] as const]
    })
    const receiptsOf = new Map(calls.map(([shard, receipts]) => [storeOf(shard), receipts]))
    const given = await everywhere(
      calls.map(([shard]) => shard),
      (store) => store.change('giveBack', key, units, receiptsOf.get(store)!, limits),
    )
    return mostOf(units, given)
  }

  /** The shards of a key, the one that has had it longest first. */
  #find(key: string): readonly Shard[] {
    this.#forget()
    return this.#history.find(this.#plan.names.tagOf(key))
  }

  /** The indices of keys that have the same shards. */
  #byShards(asked: readonly Asked[]): Map<readonly Shard[], number[]> {
    const groups = new Map<string, readonly [readonly Shard[], number[]]>()
    for (const [i, { key }] of asked.entries()) {
      const shards = this.#find(key)
      const name = shards.map(({ id }) => id).join()
      const group = groups.get(name)
      if (group === undefined) groups.set(name, [shards, [i]])
      else group[1].push(i)
    }
    return new Map(groups.values())
  }

  /** Forgets the lists whose change is over. */
  #forget(): void {
    this.#leave(this.#history.forget(this.#plan.nowMs()))
  }

  #leave(shards: readonly Shard[]): void {
    for (const shard of shards) {
      this.#shards.delete(shard.id)
      void storeOf(shard).close()
    }
  }

  #named(name: string): Shard | undefined {
    return [...this.#shards.values()].find((shard) => shard.name === name)
  }

  #open({ name, client }: NamedShard): Shard {
    return this.#add(name, this.#connect(client))
  }

  #connect(client: unknown, isJoining = false): OpenedShard {
    const opened = this.#plan.open(client, this.#rules)
    opened.outages.isMuted = isJoining
    opened.store.onRecovery = () => this.onRecovery()
    return opened
  }

  #add(name: string, opened: OpenedShard): Shard {
    const shard = { id: this.#ids++, name, opened }
    this.#shards.set(shard.id, shard)
    return shard
  }
}

/** How long a unit counts; in a window that its first hit begins, by the granule of that. */
function countingMs({ rule: { algorithm, align, windowMs }, parts }: RemoteRule): number {
  return serverOf(algorithm).longestMs(windowMs, parts) + (align === 'none' ? 0 : parts)
}

const sumOf = (all: readonly LeaseStats[]): LeaseStats =>
  all.reduce((sum, each) => {
    const names = Object.keys(sum) as (keyof LeaseStats)[]
    return Object.fromEntries(names.map((name) => [name, sum[name] + each[name]])) as unknown as LeaseStats
  })

/** For each rule, the most of what the shards have answered. */
const mostOf = (units: readonly number[], answers: readonly (readonly number[])[]): number[] =>
  units.map((_, i) => Math.max(0, ...answers.map((answer) => answer[i]!)))

/** @throws MillraceError (rejects) if the server can't be used, or is not there */
async function untilReady(name: string, store: RemoteStore): Promise<void> {
  const deadlines = new Deadlines(JOIN_MS)
  try {
    await deadlines.within(store.ready())
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause
    const expected = 'a server that answers within 2 seconds'
    const details = { cause, mayBeCharged: false }
    throw new MillraceError('ERR_MILLRACE_OUTAGE', `the shard '${name}'`, 'no connection', expected, details)
  } finally {
    deadlines.expireAll()
  }
}
