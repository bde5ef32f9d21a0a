import { Outcome } from '#millrace/core/decision.js'
import type { Arena } from '#millrace/memory/arena.js'
import {
  ADM,
  BLOCKED,
  BUCKETS,
  COUNT,
  LAP,
  LIVE,
  refundsOf,
  STATE,
  TICK,
  UNTIL,
} from '#millrace/memory/layout.js'
import { BlockJudge } from './block-judge.js'
import type { Decided } from './decided.js'
import type { Machine } from './machine.js'
import { MemoryJudge } from './memory-judge.js'
import type { Presence } from './presence.js'
import {
  FOR_EVER,
  type Forbidden,
  GRANULE_MS,
  isDecision,
  keysOf,
  msOf,
  type Op,
  type Scenario,
  ticksOf,
} from './scenario.js'
import { ANY_KEY, ThreadCharges } from './thread-charges.js'

/**
 * Judges the promises. The ledger records every decision at the moment at which it takes effect. All that it
 * knows of the protocol is the format of a bucket and of an admission word. It writes to the machine's notes,
 * so it is undone together with the memory.
 *
 * A refund by key may take the units of a charge that is not admitted yet. They are then owed: the caller of
 * the refund has counted them as refunded, so an admission that follows counts that many units less.
 */
export class Ledger {
  wrong: string | undefined
  /** The running thread, its current operation, and the operation's position among those of the thread. */
  thread = 0
  op: Op | undefined
  position = 0
  readonly ticks: readonly number[]
  readonly keys: readonly number[]
  readonly #scenario: Scenario
  readonly #forbidden: ReadonlySet<Forbidden>
  readonly #machine: Machine
  /** Keys that had a cell before the threads started. */
  readonly #used = new Set<number>()
  readonly #arena: Arena
  readonly #buckets: number
  readonly #presence: Presence
  readonly #keyOf: (way: number) => number | undefined
  readonly #charges: ThreadCharges
  readonly #admittedAt: number
  readonly #penaltiesAt: number
  readonly #blocksAt: number
  readonly #blockJudge: BlockJudge
  readonly #memoryJudge: MemoryJudge
  readonly #lost = new Set<number>()

  static notesFor(scenario: Scenario, ring: number): number {
    const keys = keysOf(scenario).length
    return ThreadCharges.notesFor(scenario.threads.length) + 2 * keys * ticksOf(scenario, ring).length + keys
  }

  /**
   * `scenario` has the limit and the window of the ledger's rule, `first` is the index of its first note, and
   * `keyOf` returns the key whose name a way has.
   */
  constructor(
    scenario: Scenario,
    machine: Machine,
    arena: Arena,
    presence: Presence,
    first: number,
    keyOf: (way: number) => number | undefined,
  ) {
    this.#scenario = scenario
    this.#forbidden = new Set(scenario.forbidden)
    this.#machine = machine
    this.#arena = arena
    this.#buckets = scenario.buckets ?? 1
    this.ticks = ticksOf(scenario, arena.shape.ring)
    this.keys = keysOf(scenario)
    this.#presence = presence
    this.#keyOf = keyOf
    this.#charges = new ThreadCharges(machine, first)
    this.#admittedAt = first + ThreadCharges.notesFor(scenario.threads.length)
    this.#penaltiesAt = this.#admittedAt + this.keys.length * this.ticks.length
    this.#blocksAt = this.#penaltiesAt + this.keys.length * this.ticks.length
    this.#blockJudge = new BlockJudge(scenario, machine, arena, {
      keyOf,
      untilOf: (key) => machine.getNote(this.#block(key)),
      fail: (what, how) => this.fail(what, how),
    })
    this.#memoryJudge = new MemoryJudge(scenario, arena, {
      ticks: this.ticks,
      anyDead: () => presence.dead !== 0,
      keyOf,
      isLost: (way) => this.#lost.has(way),
      admitted: (key, tick) => this.#get(this.#admittedAt, key, tick),
      penalties: (key, tick) => this.#get(this.#penaltiesAt, key, tick),
      tickAt: (slot, bucket, newest) => this.#tickAt(slot, bucket, newest),
      fail: (what, how) => this.fail(what, how),
    })
  }

  /** The operation of the running thread has returned. */
  ends(): void {
    this.#charges.end(this.thread)
  }

  penalized(key: number, tick: number, cost: number): void {
    this.#add(this.#penaltiesAt, key, this.ticks.indexOf(tick), cost)
  }

  /** Records units of one tick that were refunded before the threads started. */
  refunded(key: number, tick: number, units: number): void {
    this.#add(this.#admittedAt, key, this.ticks.indexOf(tick), -units)
  }

  /** Records a decision from before the threads started. */
  remember({ key, cost, outcome, tick }: Decided): void {
    this.#used.add(key)
    if (outcome === Outcome.CHARGED) this.#add(this.#admittedAt, key, this.#indexOf(tick), cost)
  }

  decided(decided: Decided): void {
    const { key, cost, limit, outcome, nowMs } = decided
    if (outcome === Outcome.CHARGED) {
      const owed = Math.min(this.#charges.owed(this.thread), cost)
      const tick = this.#indexOf(decided.tick)
      this.#add(this.#admittedAt, key, tick, cost - owed)
      // A charge counts at its reading, or at the tick to which another thread had advanced the cell.
      const effectMs = Math.max(nowMs, this.ticks[tick]! * GRANULE_MS)
      if (!decided.isOwnCell) this.fail('wrong cell', `key ${key}`)
      if (this.isBlocked(key, effectMs)) this.fail('past its block', `key ${key}`)
      // A charge at an earlier tick would leave the window of its own admission too soon.
      const charged = this.ticks[tick]!
      if (charged < Math.floor(nowMs / GRANULE_MS))
        this.fail('over', `key ${key}: read ${nowMs} ms, charged in tick ${charged}`)
      this.#judge(key, tick, limit)
      if (!this.#used.has(key)) this.fail('fresh quota', `key ${key}`)
      if (this.#isGivenBackLater) this.#charges.hold(this.thread, tick, cost, key)
    } else if (outcome === Outcome.REFUSED && cost <= limit) this.#judgeRefusal(decided)
  }

  /** Whether the thread gives back or settles its current decision later. */
  get #isGivenBackLater(): boolean {
    const later = this.#scenario.threads[this.thread]!.slice(this.position + 1)
    return later.some((op) => op.do === 'give back' || op.do === 'commit' || op.do === 'cancel')
  }

  /** Before the threads start: a dead thread has left the way of the key claimed. */
  lost(key: number, way: number): void {
    this.blocked(key, FOR_EVER)
    this.#lost.add(way)
  }

  blocked(key: number, untilMs: number): void {
    this.#machine.setNote(this.#block(key), Math.min(untilMs, FOR_EVER))
  }

  /**
   * Units admitted and penalized for a key in the window of whole buckets that ends in `tick` (not wrapped).
   */
  used(key: number, tick: number): number {
    let used = 0
    for (let i = 0; i < this.ticks.length; i++) {
      const age = tick - this.ticks[i]!
      if (age >= 0 && age <= this.#buckets)
        used += this.#get(this.#admittedAt, key, i) + this.#get(this.#penaltiesAt, key, i)
    }
    return used
  }

  isBlocked(key: number, nowMs: number): boolean {
    return this.#machine.getNote(this.#block(key)) > nowMs
  }

  /** @see Machine.watch. The index is that of the arena's word. */
  observe(index: number, before: number, after: number): void {
    const { shape } = this.#arena
    if (index < shape.waysAt || index >= shape.extraAt) return
    const way = Math.floor((index - shape.waysAt) / shape.wayWords)
    const field = (index - shape.waysAt) % shape.wayWords
    if (field === ADM) this.#observeAdmission(way, before, after)
    else if (field === UNTIL && this.op?.do === 'block') this.#observeUntil(way, this.op.key, after)
    else if (field >= BUCKETS && field < BUCKETS + shape.ring) {
      const newest = this.#arena.words[index - field + TICK]!
      this.#observeBucket(way, this.#tickAt(field - BUCKETS, after, newest), before, after)
    }
  }

  #observeAdmission(way: number, before: number, after: number): void {
    if ((after & STATE) === LIVE && (before & STATE) !== LIVE) this.#memoryJudge.checkLive(way)
    if ((after & COUNT) === BLOCKED && this.op?.do === 'block') {
      const until = this.#arena.words[this.#arena.shape.waysAt + way * this.#arena.shape.wayWords + UNTIL]!
      this.blocked(this.op.key, msOf(until))
    }
    if ((before & COUNT) !== BLOCKED || (after & COUNT) === BLOCKED) return
    const { op } = this
    const evicted = this.#blockJudge.evictedKey(way, after, op, !this.#isOverlapped)
    if (evicted !== undefined) this.blocked(evicted, 0)
    else if (op?.do === 'unblock' || op?.do === 'clear') this.blocked(op.key, 0)
    else if (op?.do === 'clear all') this.blocked(this.#keyOf(way)!, 0)
  }

  /**
   * A block holds from the admission word on. A new UNTIL before that may shorten the block that was there.
   */
  #observeUntil(way: number, key: number, until: number): void {
    this.#blockJudge.checkUntil(way, this.op!)
    this.blocked(key, Math.min(this.#machine.getNote(this.#block(key)), msOf(until)))
  }

  #observeBucket(way: number, tick: number, before: number, after: number): void {
    const { op, thread } = this
    const sameLap = (before & LAP) === (after & LAP)
    const more = (after & COUNT) - (sameLap ? before & COUNT : 0)
    if (op === undefined || tick < 0) return // the sweep has cleared a bucket of an old lap
    const unmarked = refundsOf(before) === refundsOf(after)
    if (isDecision(op)) {
      if (more > 0) this.#charges.set(thread, tick, more, 'key' in op ? op.key : ANY_KEY)
      else if (unmarked) this.#takesOutPending(more)
    } else if (op.do === 'refund' || op.do === 'clear') {
      if (more < 0) this.#takes(op.key, tick, -more, true)
    } else if (op.do === 'clear all') {
      if (more < 0) this.#takes(this.#keyOf(way) ?? ANY_KEY, tick, -more, true)
    } else if (op.do === 'penalize') this.#add(this.#penaltiesAt, op.key, tick, more)
    else if (op.do === 'give back' || op.do === 'commit' || op.do === 'cancel') {
      const { key, cost } = this.#lastDecision(thread)
      if (op.do === 'commit' && op.actualCost > cost) this.#add(this.#penaltiesAt, key, tick, more)
      else if (unmarked && more < 0) {
        if (op.do === 'commit' && -more > cost - op.actualCost)
          this.fail('lost charge', `${-more} of ${cost} given back, ${op.actualCost} were used`)
        this.#givesBack(key, tick, -more)
      }
    }
  }

  /** The decision that a thread gives back: its last one before the current operation. */
  #lastDecision(thread: number): { key: number; cost: number } {
    const last = this.#scenario.threads[thread]!.slice(0, this.position).findLast(isDecision)
    if (last === undefined) return { key: 1, cost: 0 }
    return last.do === 'batch' ? { key: last.keys.at(-1)!, cost: 1 } : last
  }

  /** The running thread takes its charge out again, before it has decided. */
  #takesOutPending(more: number): void {
    if (more < 0 && this.#charges.isRobbed(this.thread))
      this.fail('lost charge', 'a charge taken out after a refund by key')
    this.#charges.end(this.thread)
  }

  /** The running thread gives back units of an earlier admission. */
  #givesBack(key: number, tick: number, units: number): void {
    const held = this.#charges.held(this.thread)
    if (held.tick !== tick || units > held.units)
      this.fail('lost charge', `${units} given back in tick ${this.ticks[tick]}, of ${held.units} charged`)
    if (held.isRobbed) this.fail('lost charge', `key ${key}: given back after a refund by key`)
    this.#charges.release(this.thread, units)
    this.#takes(key, tick, units, false)
  }

  #takes(key: number, tick: number, units: number, byKey: boolean): void {
    const own = Math.min(units, this.#get(this.#admittedAt, key, tick))
    this.#add(this.#admittedAt, key, tick, -own)
    // The units of a bucket have no owner. If more was taken than was admitted, the rest was penalties first.
    const penalties = byKey ? Math.min(units - own, this.#get(this.#penaltiesAt, key, tick)) : 0
    this.#add(this.#penaltiesAt, key, tick, -penalties)
    if (!byKey) return
    const threads = this.#scenario.threads.length
    this.#charges.rob(threads, this.thread, key, tick)
    this.#charges.owe(threads, this.thread, key, tick, units - own - penalties)
  }

  #judge(key: number, tick: number, limit: number): void {
    if (!this.#forbidden.has('over')) return
    const wide = this.#scenario.edge === 'smooth' ? this.#buckets : this.#buckets + 1
    for (let last = tick; last < this.ticks.length; last++) {
      if (this.ticks[last]! - this.ticks[tick]! >= wide) break
      let sum = 0
      for (let i = 0; i <= last; i++) {
        if (this.ticks[last]! - this.ticks[i]! < wide) sum += this.#get(this.#admittedAt, key, i)
      }
      if (sum > limit) this.fail('over', `key ${key}: ${sum} in ${wide} ticks, the limit is ${limit}`)
    }
  }

  #judgeRefusal({ key, cost, limit, nowMs, effectTick }: Decided): void {
    if (this.#isOverlapped) return
    if (this.isBlocked(key, nowMs)) return
    const used = this.used(key, effectTick)
    if (used + cost <= limit) this.fail('early', `key ${key}: ${used} of ${limit} used, ${cost} refused`)
  }

  get #isOverlapped(): boolean {
    return this.#presence.isOverlapped(this.thread)
  }

  /** Judges the memory when no thread is inside an operation. */
  judgeMemory(): void {
    if (this.#presence.dead === 0) this.#blockJudge.judgeAtRest()
    this.#memoryJudge.judgeAtRest()
  }

  fail(what: Forbidden, how: string): void {
    if (this.#forbidden.has(what)) this.wrong ??= `${what}: ${how}`
  }

  /**
   * The tick of a bucket in a cell whose tick is `newest`. Laps have eight bits: the latest possible tick is
   * taken.
   */
  #tickAt(slot: number, bucket: number, newest: number): number {
    const { ring } = this.#arena.shape
    const lap = bucket >>> 24
    return this.ticks.findLastIndex(
      (tick) => tick <= newest && tick % ring === slot && (Math.floor(tick / ring) & 255) === lap,
    )
  }

  #indexOf(tickWord: number): number {
    const { modulus } = this.#arena.shape
    const index = this.ticks.findIndex((tick) => ((tick % modulus) | 0) === tickWord)
    if (index < 0) this.wrong ??= `a tick of its own: ${tickWord}`
    return index
  }

  #get(at: number, key: number, tick: number): number {
    return this.#machine.getNote(at + this.keys.indexOf(key) * this.ticks.length + tick)
  }

  #add(at: number, key: number, tick: number, units: number): void {
    const note = at + this.keys.indexOf(key) * this.ticks.length + tick
    this.#machine.setNote(note, this.#machine.getNote(note) + units)
  }

  #block(key: number): number {
    return this.#blocksAt + this.keys.indexOf(key)
  }
}
