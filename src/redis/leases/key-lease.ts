// What the owner of the lease memory does for one key: it asks the server for units, tells it what was spent, and gives
// back what lies idle. `test/model/leases/node.mjs` is its model.
import { randomBytes } from 'node:crypto'
import { setImmediate } from '../../core/real-timers.js'
import { Outage } from '../../remote/outage.js'
import { type Chunks, Rate, safeAge } from './chunks.js'
import type { Aged, LeaseMemory } from './lease-memory.js'
import { type LeaseMessage, type LeaseReply, MOST_AGES, type SpentUnits } from './lease-message.js'

/** Requests that one message brings along, which the server decides one by one. */
const MOST_DIRECT = 128
/** After a message that has failed, what is held is spent. */
const AFTER_FAILURE_MS = 100

/** A request that the server decides. */
export interface Request {
  /** Of each rule. */
  readonly units: number
  resolve(reply: LeaseReply, index: number): void
  reject(error: unknown): void
}

/** What a key needs of its limiter. */
export interface LeaseOwner {
  readonly memory: LeaseMemory
  readonly chunks: Chunks
  limits(): readonly number[]
  /** Rejects if there is no reply in time: a later one is void. Undefined: a later message has overtaken it. */
  send(key: string, message: LeaseMessage): Promise<LeaseReply | undefined>
  /** What was spent is on the server, by this reply. */
  settled(key: string, reply: LeaseReply, units: readonly number[], ageMs: number): void
  /** Counts trips, and what becomes of leases. */
  readonly counts: LeaseCounts
}

/** What has happened in the leases of a limiter. */
export interface LeaseCounts {
  trips: number
  lost: number
  granted: number
  spent: number
  expired: number
  returned: number
}

export class KeyLease {
  readonly key: string
  readonly cell: number
  readonly #owner: LeaseOwner
  readonly #rate: Rate
  readonly #rules: number
  /** One incarnation: the server ignores what an earlier one of the same cell had. */
  readonly #id = randomBytes(8)
  #seq = 0
  /** Of each rule: the units that were ever granted and not dropped. What of them is not held is spent. */
  readonly #given: number[]
  readonly #acked: number[]
  #waiting: Request[] = []
  #isDue = false
  #inFlight = false
  /** Whether something was dropped that the server does not know of. */
  #hasNews = false
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  isReleased = false

  constructor(owner: LeaseOwner, key: string, cell: number, units: number) {
    this.#owner = owner
    this.key = key
    this.cell = cell
    this.#rules = owner.limits().length
    this.#given = new Array<number>(this.#rules).fill(0)
    this.#acked = new Array<number>(this.#rules).fill(0)
    this.#rate = new Rate(owner.chunks.meantMs, owner.memory.now(), units)
  }

  /** Units were spent at this time: more are asked for in time. */
  noteSpent(cost: number, nowMs: number): void {
    const { memory, chunks, counts } = this.#owner
    counts.spent += cost
    this.#rate.add(cost, nowMs)
    if (this.#inFlight || this.#isDue || nowMs < this.#pausedUntilMs) return
    const leftMs = (memory.end(this.cell) - Math.ceil(nowMs)) | 0
    if (this.#rate.isLow(memory.held(this.cell, nowMs)) || leftMs < chunks.leaseMs * 0.3) this.#fetchSoon()
  }

  /** There is too little: the server decides, and leases. */
  ask(request: Request): void {
    this.#rate.add(request.units, this.#owner.memory.now())
    this.#waiting.push(request)
    this.#fetchSoon()
  }

  /** Requests of one turn go together. */
  #fetchSoon(): void {
    if (this.#isDue || this.#inFlight) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#fetch()
    })
  }

  #fetch(): void {
    if (this.#inFlight) return
    const { memory, chunks } = this.#owner
    const isPaused = memory.now() < this.#pausedUntilMs
    if (isPaused && this.#waiting.length === 0) return
    void this.#message(isPaused ? 0 : this.#rate.in(chunks.meantMs))
  }

  /** What lies idle goes back, and what was spent is settled. */
  rest(): void {
    if (this.#inFlight || this.#isDue) return
    const { memory, chunks } = this.#owner
    this.#rate.settle(memory.now())
    this.#dropExpired()
    const hasNews = this.#hasNews || this.#given.some((given, r) => given > this.#acked[r]!)
    this.#keep(this.#rate.isWorth ? this.#rate.in(chunks.leaseMs) : 0, 'returned')
    if (hasNews) void this.#message(0)
  }

  /** Whether requests wait to be sent: later ones wait behind them. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Whether no message is under way, or about to be sent. */
  get isQuiet(): boolean {
    return !this.#inFlight && !this.#isDue && this.#waiting.length === 0
  }

  /** Whether nothing is to be done for this key any more. */
  get isIdle(): boolean {
    if (!this.isQuiet || this.#rate.isWorth) return false
    return this.#given.every((given, r) => given === this.#acked[r]!) && !this.#hasNews
  }

  /** Gives all back, at once. The promise never rejects. */
  async end(): Promise<void> {
    this.drop()
    this.isReleased = true
    if (!this.#inFlight && (this.#hasNews || !this.isIdle)) await this.#message(0)
  }

  /** Holds nothing any more. */
  drop(): void {
    this.#keep(0, 'returned')
  }

  #keep(most: number, why: 'returned' | 'expired'): void {
    const { memory, counts } = this.#owner
    for (let r = 0; r < this.#rules; r++) {
      const dropped = Math.max(0, memory.keep(this.cell, r, most) - most)
      if (dropped === 0) continue
      this.#given[r]! -= dropped
      this.#hasNews = true
      if (r === 0) counts[why] += dropped
    }
  }

  /** Expired units are not told as held: the server has forgotten them, or will. */
  #dropExpired(): void {
    const { memory } = this.#owner
    if (memory.held(this.cell) === 0) this.#keep(0, 'expired')
  }

  async #message(wants: number): Promise<void> {
    const { memory, chunks, counts } = this.#owner
    this.#dropExpired()
    const requests = this.#waiting.splice(0, MOST_DIRECT)
    // The server decides these by all that is free, so by what this node holds, too.
    if (requests.length > 0) this.#keep(0, 'returned')
    this.#inFlight = true
    this.#hasNews = false
    // HELD, then the time, then the slots: see `lease-memory.ts`.
    const held = this.#given.map((_, r) => memory.keep(this.cell, r, Number.POSITIVE_INFINITY))
    const spent = this.#given.map((given, r) => given - held[r]!)
    const sentMs = memory.now()
    const ages = memory.ages(this.cell, sentMs)
    const told = grouped(ages)
    const least = this.#rate.in(chunks.leastMs)
    const rules = this.#owner.limits().map((limit, r) => ({
      ...{ limit, held: held[r]!, spent: spent[r]!, acked: this.#acked[r]!, least, ages: told },
    }))
    counts.trips++
    let reply: LeaseReply | undefined
    try {
      reply = await this.#owner.send(this.key, {
        ...{ id: this.#id, seq: ++this.#seq, leaseMs: chunks.leaseMs, wants },
        direct: requests.map(({ units }) => held.map(() => units)),
        rules,
      })
    } catch (error) {
      return this.#fail(error, requests)
    }
    if (reply === undefined)
      this.#fail(new Outage(new Error('a later message has overtaken this one'), false), requests)
    else this.#receive(reply, { spent, ages, sentMs, requests })
  }

  #receive(
    reply: LeaseReply,
    sent: { spent: readonly number[]; ages: readonly Aged[]; sentMs: number; requests: readonly Request[] },
  ): void {
    this.#inFlight = false
    this.#settle(reply, sent.spent, sent.ages)
    if (!this.isReleased) this.#grant(reply, sent.sentMs)
    if (reply.rules.some(({ blockedUntilMs }) => blockedUntilMs > 0)) this.drop()
    if (reply.waitMs > 0) this.#pause(reply)
    for (const [i, request] of sent.requests.entries()) request.resolve(reply, i)
    if (this.#waiting.length > 0) this.#fetchSoon()
  }

  #grant({ leased, extends: isExtended, rules }: LeaseReply, sentMs: number): void {
    const { memory, chunks, counts } = this.#owner
    const free = Math.min(...rules.map(({ remaining }) => remaining))
    for (let r = 0; r < this.#rules; r++) this.#given[r]! += leased
    counts.granted += leased
    // From sending, not from the reply: the lease begins in between.
    memory.grant(this.cell, leased, free, isExtended ? sentMs + chunks.usableMs : undefined)
  }

  /** What the server counts as spent by this message, is noted for a loss of its data. */
  #settle(reply: LeaseReply, spent: readonly number[], ages: readonly Aged[]): void {
    const fresh = spent.map((units, r) => Math.max(0, units - this.#acked[r]!))
    for (const [r, units] of spent.entries()) this.#acked[r] = Math.max(this.#acked[r]!, units)
    const parts: (readonly [number, readonly number[]])[] = []
    for (const [ageMs, units] of ages)
      parts.push([ageMs, fresh.map((left, r) => take(fresh, r, Math.min(left, units)))])
    parts.push([0, [...fresh]])
    for (const [ageMs, units] of parts.reverse())
      if (units.some((some) => some > 0)) this.#owner.settled(this.key, reply, units, safeAge(ageMs))
  }

  /** Near the limit, all nodes would ask at the same time. */
  #pause({ waitMs, active }: LeaseReply): void {
    const { memory, chunks } = this.#owner
    const least = Math.min(chunks.leastMs, active * (chunks.windowMs / 60))
    this.#pausedUntilMs = memory.now() + Math.max(waitMs, least) * (0.75 + Math.random() / 2)
  }

  #fail(error: unknown, requests: readonly Request[]): void {
    const { memory, counts } = this.#owner
    this.#inFlight = false
    counts.lost++
    this.#hasNews = true
    this.#pausedUntilMs = memory.now() + AFTER_FAILURE_MS
    for (const request of [...requests, ...this.#waiting.splice(0)]) request.reject(error)
  }
}

function take(fresh: number[], rule: number, units: number): number {
  fresh[rule]! -= units
  return units
}

/** The oldest first, at most so many: of those that are told together, the age of the newest. */
function grouped(ages: readonly Aged[]): SpentUnits[] {
  const size = Math.ceil(ages.length / MOST_AGES)
  const groups: SpentUnits[] = []
  for (let i = 0; i < ages.length; i += size) {
    const some = ages.slice(i, i + size)
    groups.push({ ageMs: safeAge(some[0]![0]), units: some.reduce((sum, [, units]) => sum + units, 0) })
  }
  return groups.reverse()
}
