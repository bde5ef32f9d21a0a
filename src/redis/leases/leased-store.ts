import { clearInterval, setInterval } from '../../core/real-timers.js'
import { unitsOf } from '../../core/units.js'
import { changesRefusals } from '../../core/verdict.js'
import type { CallLimit } from '../../engines/engine.js'
import { Hasher } from '../../memory/hash.js'
import type { KeyNames } from '../../remote/key-names.js'
import { RemoteDecision, type RemotePart } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore, StoreCounters } from '../../remote/remote-store.js'
import { partWith, refusingOf } from '../../remote/reply.js'
import { NO_MARK, Verdict } from '../../remote/reply-codes.js'
import type { Channel } from '../channel.js'
import type { StrictEngine } from '../packed/strict-engine.js'
import { type Script, scriptOf } from '../script.js'
import { type Chunks, chunksOf, WORTH } from './chunks.js'
import { Demand } from './demand.js'
import { KeyLease, type LeaseCounts, type LeaseOwner } from './key-lease.js'
import { LeaseClock } from './lease-clock.js'
import { LeaseMemory } from './lease-memory.js'
import { type LeaseMessage, type LeaseReply, leaseArguments, readLeaseReply } from './lease-message.js'
import { leaseScript } from './lease-script.js'

/** The mark of a receipt of units that were spent from a lease: no granule has it. */
const LEASED = 2 ** 52

export interface LeasedPlan {
  readonly owner: object
  readonly names: Pick<KeyNames, 'of'>
  readonly channel: Channel
  readonly testTime: (() => number) | undefined
  /** Keys that may have a lease at a time. */
  readonly keys: number
}

/** Decides by units that this node holds on lease; what it has not, and all else, by a strict store. */
export class LeasedStore implements RemoteStore, LeaseOwner {
  readonly #strict: StrictEngine
  readonly #plan: LeasedPlan
  readonly #script: Script
  readonly #clock: LeaseClock
  readonly #hasher: Hasher
  readonly #demand: Demand
  readonly chunks: Chunks
  readonly memory: LeaseMemory
  readonly counts: LeaseCounts = { trips: 0, lost: 0, granted: 0, spent: 0, expired: 0, returned: 0 }
  /** By cell. */
  readonly #leases = new Map<number, KeyLease>()
  readonly #resting: NodeJS.Timeout | undefined
  readonly #messages = new Set<Promise<unknown>>()
  #isClosed = false
  /** Of all rules. */
  readonly #unit: number
  #isLeasing: boolean

  constructor(strict: StrictEngine, plan: LeasedPlan) {
    const { testTime, keys } = plan
    this.#strict = strict
    this.#plan = plan
    this.#unit = strict.rules[0]!.rule.unit ?? 1
    this.#script = scriptOf(leaseScript(strict.rules, testTime !== undefined))
    this.chunks = chunksOf(Math.min(...strict.rules.map(({ windowMs }) => windowMs)))
    this.#isLeasing = this.#mayLease()
    this.#clock = new LeaseClock(testTime, () => this.memory.dropAll())
    const seeds = crypto.getRandomValues(new Int32Array(2))
    this.#hasher = new Hasher(seeds[0]!, seeds[1]!)
    this.#demand = new Demand(this.chunks.meantMs)
    const { windowMs, usableMs: leaseMs } = this.chunks
    const like = { rules: strict.rules.length, windowMs, leaseMs, originMs: this.#clock.now() }
    this.memory = LeaseMemory.create(keys, like, () => this.#clock.now())
    if (testTime === undefined)
      this.#resting = setInterval(() => this.rest(), Math.max(1, this.chunks.restMs)).unref()
  }

  get rules(): readonly RemoteRule[] {
    return this.#strict.rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#strict.rules = rules
    this.#isLeasing = this.#mayLease()
    this.#dropAll()
  }

  /**
   * Rules that charge or allow what they refuse, are not leased, nor rules with different units. A key at a small limit
   * is asked for less than a lease is worth, even if all of it goes to one node.
   */
  #mayLease(): boolean {
    const { meantMs } = this.chunks
    return this.rules.every((remote) => {
      const { rule, windowMs } = remote
      const isPlain = !changesRefusals(rule) && (rule.unit ?? 1) === this.#unit
      return isPlain && (rule.limit * meantMs) / windowMs >= WORTH
    })
  }

  get onRecovery(): () => void {
    return this.#strict.onRecovery
  }

  set onRecovery(recovered: () => void) {
    this.#strict.onRecovery = recovered
  }

  get counters(): StoreCounters {
    const held = [...this.#leases.keys()].reduce((sum, cell) => sum + this.memory.held(cell), 0)
    return { ...this.#strict.counters, leases: { keys: this.#leases.size, held, ...this.counts } }
  }

  limits(): readonly number[] {
    return this.rules.map(({ rule }) => rule.limit)
  }

  ready(): Promise<void> {
    return this.#strict.ready()
  }

  divide(asked: readonly Asked[]): number[][] {
    return this.#strict.divide(asked)
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    return this.#strict.unitLimits(limit)
  }

  chargedKeys(): readonly string[] {
    return this.#strict.chargedKeys()
  }

  usage(key: string, ms: number, index: number): Promise<number> {
    return this.#strict.usage(key, ms, index)
  }

  /** A decision without a trip, if what is held is enough. */
  askNow(op: Asking, asked: Asked): RemoteDecision | undefined {
    const { key } = asked
    const units = this.#unitsOf(asked)
    if (units === 0) return undefined
    const hasher = this.#hasher
    hasher.hash(key)
    const { lo, hi } = hasher
    const { memory } = this
    const cell = memory.find(lo, hi)
    const lease = this.#leases.get(cell)
    if (lease === undefined || lease.hasWaiting) return undefined
    if (op === 'peek')
      return memory.held(cell) >= units ? this.#decision(asked, cell, memory.now()) : undefined
    if (!memory.spend(cell, lo, hi, units)) return undefined
    lease.noteSpent(units, memory.lastMs)
    return this.#decision(asked, cell, memory.lastMs, LEASED)
  }

  /** The units of a request in each rule; 0 for one that takes none, or not the same of each. */
  #unitsOf({ cost, costs, free }: Asked): number {
    return costs === undefined && free === undefined && this.#isLeasing ? unitsOf(cost, this.#unit) : 0
  }

  #decision({ key, cost }: Asked, cell: number, ms: number, mark: number = NO_MARK.NOTHING): RemoteDecision {
    const left = this.memory.free(cell) + this.memory.held(cell, ms)
    const parts = this.rules.map((remote): RemotePart => {
      const { rule, windowMs, parts } = remote
      const resetMs = Math.ceil(windowMs + windowMs / parts)
      return partWith(remote, undefined, Verdict.ADMITTED, Math.min(left, rule.limit), 0, resetMs, mark, 0)
    })
    return new RemoteDecision({ owner: this.#plan.owner, key, cost }, 'lease', parts, -1)
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    if (limit !== undefined) return this.#strict.ask(op, asked, limit)
    const decisions: RemoteDecision[] = []
    const strictly: number[] = []
    const leased: Promise<unknown>[] = []
    for (const [i, each] of asked.entries()) {
      const now = this.askNow(op, each)
      const lease = now === undefined && op !== 'peek' ? this.#leaseOf(each) : undefined
      if (now !== undefined) decisions[i] = now
      else if (lease === undefined) strictly.push(i)
      else leased.push(this.#askOn(lease, each).then((decision) => (decisions[i] = decision)))
    }
    if (strictly.length > 0) {
      const some = strictly.map((i) => asked[i]!)
      leased.push(
        this.#strict.ask(op, some).then((decided) => {
          for (const [at, i] of strictly.entries()) decisions[i] = decided[at]!
        }),
      )
    }
    await Promise.all(leased)
    return decisions
  }

  /** The lease of a key that is worth one, after `askNow` has read the key. */
  #leaseOf(asked: Asked): KeyLease | undefined {
    const { key } = asked
    const own = this.#unitsOf(asked)
    if (own === 0 || this.#isClosed || this.rules.some(({ rule }) => own > rule.limit)) return undefined
    const { lo, hi } = this.#hasher
    const known = this.memory.find(lo, hi)
    if (known >= 0) return this.#leases.get(known)
    const units = this.#demand.add(lo, own, this.memory.now())
    if (units < WORTH) return undefined
    for (const cell of this.memory.cellsOf(lo)) {
      if (!this.memory.isNobodys(cell)) continue
      this.memory.claim(cell, lo, hi)
      const lease = new KeyLease(this, key, cell, units)
      this.#leases.set(cell, lease)
      return lease
    }
    return undefined
  }

  #askOn(lease: KeyLease, asked: Asked): Promise<RemoteDecision> {
    return new Promise((resolve, reject) => {
      lease.ask({
        units: unitsOf(asked.cost, this.#unit),
        reject,
        resolve: (reply, index) => resolve(this.#decided(lease, asked, reply, index)),
      })
    })
  }

  /** The server's decision on one of the requests of a message. */
  #decided(lease: KeyLease, asked: Asked, reply: LeaseReply, index: number): RemoteDecision {
    const { key, cost } = asked
    const { rules } = this
    const isAdmitted = reply.admitted[index]!
    const held = this.memory.held(lease.cell)
    const refusing = isAdmitted ? new Set<number>() : refusingIn(reply, unitsOf(cost, this.#unit))
    const parts = rules.map((remote, r) => {
      const { birth, mark, remaining, resetMs, blockedUntilMs } = reply.rules[r]!
      const isBlocked = blockedUntilMs > 0
      const verdict = refusing.has(r) ? Verdict.REFUSED : Verdict.ADMITTED
      const left = isBlocked ? 0 : Math.min(remaining + held, remote.rule.limit)
      const receipt = isAdmitted ? mark : isBlocked ? NO_MARK.BLOCKED : NO_MARK.NOTHING
      const waitMs = reply.waitMs === Number.POSITIVE_INFINITY ? -1 : reply.waitMs
      return partWith(remote, undefined, verdict, left, waitMs, resetMs, receipt, birth)
    })
    const requested = { owner: this.#plan.owner, key, cost }
    const decision = new RemoteDecision(requested, 'redis', parts, refusingOf(rules, cost, undefined, parts))
    const nowMs = this.#strict.nowMs()
    this.#strict.restoring.decided(
      'check',
      { key, cost, limits: undefined, parts },
      { sentMs: nowMs, receivedMs: nowMs },
    )
    return decision
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    // Units that were spent from a lease have no place of their own on the server: the oldest ones leave.
    const isLeased = op === 'giveBack' && more[0] === String(LEASED)
    const changed = await this.#strict.change(
      isLeased ? 'refund' : op,
      key,
      units,
      isLeased ? [] : more,
      limits,
    )
    if (op === 'block' || op === 'penalize' || op === 'clear') this.#find(key)?.drop()
    return changed
  }

  #find(key: string): KeyLease | undefined {
    this.#hasher.hash(key)
    return this.#leases.get(this.memory.find(this.#hasher.lo, this.#hasher.hi))
  }

  async clearAll(): Promise<void> {
    await this.#strict.clearAll()
    this.#dropAll()
  }

  #dropAll(): void {
    for (const lease of this.#leases.values()) lease.drop()
  }

  /** Gives back what lies idle, and forgets the keys that are not asked for any more. */
  rest(): void {
    for (const [cell, lease] of this.#leases) {
      lease.rest()
      if (!lease.isIdle) continue
      lease.drop()
      lease.isReleased = true
      this.#leases.delete(cell)
      this.memory.release(cell)
    }
    this.#clock.adjust()
  }

  /** Whether no message is under way, or about to be sent. For tests. @internal */
  get isQuiet(): boolean {
    return this.#messages.size === 0 && [...this.#leases.values()].every(({ isQuiet }) => isQuiet)
  }

  send(key: string, message: LeaseMessage): Promise<LeaseReply | undefined> {
    const { names, channel, testTime } = this.#plan
    const reply = channel
      .call(names.of(key), leaseArguments(message, testTime?.()), this.#script)
      .then((numbers) => readLeaseReply(numbers, message, key))
    this.#messages.add(reply)
    const settled = () => this.#messages.delete(reply)
    reply.then(settled, settled)
    return reply
  }

  settled(key: string, { nowMs, rules }: LeaseReply, units: readonly number[], ageMs: number): void {
    const times = { sentMs: this.#strict.nowMs(), receivedMs: this.#strict.nowMs() }
    const parts = units.map((some, r) => {
      const { windowMs, parts } = this.rules[r]!
      const { birth, resetMs } = rules[r]!
      const mark = some > 0 ? Math.floor(((nowMs - ageMs) * parts) / windowMs) : -1
      return { result: some, mark, birth, ms: resetMs, left: 0 }
    })
    this.#strict.restoring.changed(
      'penalizeAgo',
      { key, units, limits: undefined, parts, receipts: [], ageMs },
      times,
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#resting)
    await Promise.all([...this.#leases.values()].map((lease) => lease.end()))
    await Promise.allSettled(this.#messages)
    this.#leases.clear()
    await this.#strict.close()
  }
}

/** The rules that have no room for it; what has changed since, the one with the least. */
function refusingIn({ rules }: LeaseReply, units: number): Set<number> {
  const full = rules.flatMap(({ remaining, blockedUntilMs }, r) =>
    remaining < units || blockedUntilMs > 0 ? [r] : [],
  )
  if (full.length > 0) return new Set(full)
  const least = Math.min(...rules.map(({ remaining }) => remaining))
  return new Set([rules.findIndex(({ remaining }) => remaining === least)])
}
