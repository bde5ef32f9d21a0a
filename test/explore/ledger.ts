import { Outcome } from '#millrace/core/inline-decision.js'
import { leftUntil } from '#millrace/memory/block-time.js'
import {
  ADM,
  BLOCKED,
  CELL_RECORD,
  CLAIMED,
  CONVERTING,
  COUNT,
  HASH,
  HEADER,
  HI,
  LIVE,
  STATE,
  TICK,
  UNTIL,
} from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import { type AlgorithmJudges, judgesOf, type WrittenCharge } from './algorithm-judges.js'
import { BlockJudge } from './block-judge.js'
import type { Decided } from './decided.js'
import type { Machine } from './machine.js'
import type { Presence } from './presence.js'
import {
  FOR_EVER,
  type Forbidden,
  isDecision,
  keysOf,
  latestMs,
  msOf,
  type Op,
  type Scenario,
} from './scenario.js'
import { ANY_KEY, ThreadCharges } from './thread-charges.js'
import { Timeline } from './timeline.js'
import { ADMITTED, CARRIED, PENALTIES, Units } from './units.js'

/**
 * Judges the promises. The ledger records every decision at the moment at which it takes effect. All that it
 * knows of the protocol is the format of an admission word. The algorithm's judges know the rest. It writes to the machine's notes,
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
  readonly keys: readonly number[]
  readonly timeline: Timeline
  readonly #scenario: Scenario
  readonly #forbidden: ReadonlySet<Forbidden>
  readonly #machine: Machine
  /** Keys that had a cell before the threads started. */
  readonly #used = new Set<number>()
  readonly #arena: Arena
  readonly #presence: Presence
  readonly #keyOf: (way: number) => number | undefined
  readonly #charges: ThreadCharges
  readonly #units: Units
  readonly #blocksAt: number
  readonly #blockJudge: BlockJudge
  readonly #judges: AlgorithmJudges
  readonly #lost = new Set<number>()

  static notesFor(scenario: Scenario, rule: number, ring: number): number {
    const keys = keysOf(scenario).length
    const size = Timeline.sizeFor(scenario, rule, ring)
    const charges = ThreadCharges.notesFor(scenario.threads.length)
    return Timeline.notesFor(size) + charges + Units.notesFor(keys, size) + keys
  }

  /**
   * `scenario` has the limit and the first window of the rule with this index, `first` is the index of the
   * ledger's first note, and `keyOf` returns the key whose name a way has.
   */
  constructor(
    scenario: Scenario,
    rule: number,
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
    this.keys = keysOf(scenario)
    this.timeline = new Timeline(scenario, rule, machine, arena, first)
    this.#presence = presence
    this.#keyOf = keyOf
    const chargesAt = first + Timeline.notesFor(this.timeline.size)
    this.#charges = new ThreadCharges(machine, chargesAt)
    const unitsAt = chargesAt + ThreadCharges.notesFor(scenario.threads.length)
    this.#units = new Units(machine, this.timeline, this.keys, unitsAt)
    this.#blocksAt = unitsAt + Units.notesFor(this.keys.length, this.timeline.size)
    this.#blockJudge = new BlockJudge(scenario, machine, arena, {
      keyOf,
      untilOf: (key) => machine.getNote(this.#block(key)),
      fail: (what, how) => this.fail(what, how),
    })
    this.#judges = judgesOf(scenario, arena, {
      timeline: this.timeline,
      units: this.#units,
      anyDead: () => presence.dead !== 0,
      latestMs: () => latestMs(scenario, machine),
      keyOf,
      isLost: (way) => this.#lost.has(way),
      fail: (what, how) => this.fail(what, how),
    })
  }

  /** The operation of the running thread has returned. */
  ends(): void {
    const key = this.#penalizedKey
    const { place, units } = this.#charges.pending(this.thread)
    const owed = this.#charges.owed(this.thread)
    if (key !== undefined && units > owed) this.#units.add(PENALTIES, key, place, units - owed)
    this.#charges.end(this.thread)
  }

  /** The key that the current operation charges without a decision, or undefined. */
  get #penalizedKey(): number | undefined {
    const { op } = this
    if (op?.do === 'penalize') return op.key
    const { key, cost } = this.#lastDecision(this.thread)
    return op?.do === 'commit' && op.actualCost > cost ? key : undefined
  }

  /** Records a penalty from before the threads started. */
  penalized(key: number, ms: number, cost: number): void {
    this.#units.add(PENALTIES, key, this.#tickPlaceAt(ms), cost)
  }

  /** Records units of one tick that were refunded before the threads started. */
  refunded(key: number, ms: number, units: number): void {
    this.#units.take(ADMITTED, key, this.#tickPlaceAt(ms), units)
  }

  /** Records a decision from before the threads started. */
  remember(decided: Decided): void {
    this.#used.add(decided.key)
    if (decided.outcome === Outcome.CHARGED) this.#admit(decided, decided.cost)
  }

  decided(decided: Decided): void {
    const { key, cost, limit, outcome, nowMs } = decided
    if (outcome === Outcome.CHARGED) {
      const owed = Math.min(this.#charges.owed(this.thread), cost)
      const place = this.#admit(decided, cost - owed)
      if (this.#keyOf(decided.way) !== key) this.fail('wrong cell', `key ${key}`)
      if (this.isBlocked(key, this.timeline.msOf(place))) this.fail('past its block', `key ${key}`)
      // A charge at an earlier tick would leave the window of its own admission too soon. But a window that began at a
      // key's first charge has several ticks for the others.
      const tick = this.timeline.tickOf(place)
      const record = this.timeline.recordOf(place)
      const isFirst = this.#judges.usedAtMost(key, record, tick) === cost - owed
      const ticks = this.#scenario.align === 'first' && !isFirst ? this.timeline.bucketsOf(record) : 1
      if (tick + ticks <= this.timeline.tickAt(record, nowMs))
        this.fail('over', `key ${key}: read ${nowMs} ms, charged in tick ${tick}`)
      this.#judges.admitted(key, place, limit)
      if (!this.#used.has(key)) this.fail('fresh quota', `key ${key}`)
      const [tickPlace] = this.timeline.placesOfTick(place)
      if (this.#isGivenBackLater) this.#charges.hold(this.thread, tickPlace!, cost, key)
    } else if (outcome === Outcome.REFUSED && cost <= limit) this.#judgeRefusal(decided)
  }

  /** Records an admission of `units`. Returns its place. */
  #admit({ key, limit, tick, nowMs }: Decided, units: number): number {
    const { timeline } = this
    const word = this.#judges.tickOf(tick)
    const tickPlace = Math.max(0, timeline.placeOfWord(word))
    const record = timeline.recordOf(tickPlace)
    if (timeline.shiftedTickOf(tickPlace) !== word >>> 0) this.wrong ??= `a tick of its own: ${tick}`
    // A charge counts at its reading, or at the tick to which another thread had advanced the cell.
    const isOfReading = timeline.tickAt(record, nowMs) === timeline.tickOf(tickPlace)
    const place = isOfReading ? timeline.placeAt(record, nowMs) : tickPlace
    this.#units.add(ADMITTED, key, place, units)
    this.#units.raiseLimit(key, record, limit)
    return place
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
   * The units of the key that may count by the present record at this reading. Undefined if the key has
   * a cell that counts by another record.
   */
  used(key: number, nowMs: number): number | undefined {
    const { current } = this.timeline
    const { ways } = this.#arena.shape
    for (let way = 0; way < ways; way++) {
      const isLive = (this.#word(way, ADM) & STATE) === LIVE && this.#keyOf(way) === key
      if (isLive && (this.#word(way, HI) & ~HASH) !== current) return undefined
    }
    return this.#judges.usedAtMost(key, current, this.timeline.tickAt(current, nowMs))
  }

  /** All units that were charged for the key at any time, without those that were taken out. */
  ever(key: number): number {
    return this.#units.ever(key)
  }

  isBlocked(key: number, nowMs: number): boolean {
    return this.#machine.getNote(this.#block(key)) > nowMs
  }

  /** @see Machine.watch. The index is that of the arena's word. */
  observe(index: number, before: number, after: number): void {
    const { shape } = this.#arena
    if (index === HEADER.CURRENT) this.timeline.changes(before, after)
    if (index === HEADER.EVICTED_LIVE && this.op !== undefined)
      this.fail('displaced', `${after} times by ${this.op.do}`)
    if (index < shape.waysAt || index >= shape.extraAt) return
    const way = Math.floor((index - shape.waysAt) / shape.wayWords)
    const field = (index - shape.waysAt) % shape.wayWords
    if (field === HI) this.#observeName(way, before, after)
    else {
      const charge = this.#judges.chargeIn(field, before, after, this.#word(way, TICK))
      if (charge !== undefined) this.#observeCharge(way, charge)
      if (this.op === undefined) return
      if (field === ADM) this.#observeAdmission(way, before, after)
      else if (field === UNTIL && this.op.do === 'block' && after !== leftUntil(before))
        this.#observeUntil(way, this.op.key, after)
    }
  }

  /** A conversion has begun. */
  #observeName(way: number, before: number, after: number): void {
    const key = this.#keyOf(way)
    if ((after & CONVERTING) === 0 || (before & CONVERTING) !== 0 || key === undefined) return
    const record = before & CELL_RECORD
    const tick = this.timeline.tickOfWord(record, this.#word(way, TICK))
    this.#judges.converts(key, record, tick, latestMs(this.#scenario, this.#machine))
  }

  #observeAdmission(way: number, before: number, after: number): void {
    if ((after & STATE) === LIVE && (before & STATE) !== LIVE) this.#judges.becomesLive(way)
    if ((after & STATE) === CLAIMED && (before & STATE) === LIVE) this.#observeClaim(way)
    // A thread that blocks a key may convert the cell of another one, whose block ends for it.
    const { op } = this
    if ((after & COUNT) === BLOCKED && op?.do === 'block' && op.key === this.#keyOf(way))
      this.blocked(op.key, msOf(this.#word(way, UNTIL)))
    if ((before & COUNT) !== BLOCKED || (after & COUNT) === BLOCKED) return
    const evicted = this.#blockJudge.evictedKey(way, after, op, !this.#isOverlapped)
    if (evicted !== undefined) this.blocked(evicted, 0)
    else if (op?.do === 'unblock' || op?.do === 'clear') this.blocked(op.key, 0)
    else if (op?.do === 'clear all') this.blocked(this.#keyOf(way)!, 0)
  }

  /**
   * A thread has claimed the way of a key for another one. Its record may be that of the cell, if a change
   * overlaps the claim.
   */
  #observeClaim(way: number): void {
    const key = this.#keyOf(way)
    const own = this.#word(way, HI) & CELL_RECORD
    const records = this.#isOverlapped ? [own] : [own, this.timeline.current]
    if (key !== undefined) this.#judges.losesCell(key, records, latestMs(this.#scenario, this.#machine))
  }

  /**
   * A block holds from the admission word on. A new UNTIL before that may shorten the block that was there.
   */
  #observeUntil(way: number, key: number, until: number): void {
    this.#blockJudge.checkUntil(way, this.op!)
    this.blocked(key, Math.min(this.#machine.getNote(this.#block(key)), msOf(until)))
  }

  #observeCharge(way: number, { place, more, isMarked }: WrittenCharge): void {
    const { op, thread } = this
    if (this.#machine.isCarrying) {
      this.#carries(way, place, more)
      return
    }
    if (op === undefined) return
    const penalized = this.#penalizedKey
    if (isDecision(op) || penalized !== undefined) {
      const key = penalized ?? ('key' in op ? op.key : ANY_KEY)
      if (more > 0) this.#charges.set(thread, place, more, key)
      else if (!isMarked) this.#takesOutPending(more)
    } else if (op.do === 'refund' || op.do === 'clear') {
      if (more < 0) this.#takes(op.key, place, -more, true)
    } else if (op.do === 'clear all') {
      if (more < 0) this.#takes(this.#keyOf(way) ?? ANY_KEY, place, -more, true)
    } else if (op.do === 'give back' || op.do === 'commit' || op.do === 'cancel') {
      const { key, cost } = this.#lastDecision(thread)
      if (!isMarked && more < 0) {
        if (op.do === 'commit' && -more > cost - op.actualCost)
          this.fail('lost charge', `${-more} of ${cost} given back, ${op.actualCost} were used`)
        this.#givesBack(key, place, -more)
      }
    }
  }

  /**
   * A conversion brings units of earlier records to the tick of a place. Of two at once, one takes its own out
   * again.
   */
  #carries(way: number, place: number, units: number): void {
    const key = this.#keyOf(way)
    if (key === undefined) return
    this.#units.add(CARRIED, key, place, units)
    const isOfKey = (this.#word(way, ADM) & STATE) === LIVE && (this.#word(way, ADM) & COUNT) !== BLOCKED
    if (!isOfKey || this.#isOverlapped || this.#presence.dead !== 0) return
    const all = this.#units.ever(key)
    if (units > all) this.fail('early', `key ${key}: ${units} carried, ${all} were charged`)
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
  #givesBack(key: number, place: number, units: number): void {
    const held = this.#charges.held(this.thread)
    if (held.place !== place || units > held.units) {
      const where = `in tick ${this.timeline.tickOf(place)}`
      this.fail('lost charge', `${units} given back ${where}, of ${held.units} charged`)
    }
    if (held.isRobbed) this.fail('lost charge', `key ${key}: given back after a refund by key`)
    this.#charges.release(this.thread, units)
    this.#takes(key, place, units, false)
  }

  #takes(key: number, place: number, units: number, byKey: boolean): void {
    let left = units - this.#units.take(ADMITTED, key, place, units)
    if (!byKey) return
    // The units of a bucket have no owner. If more was taken than was admitted, the rest was penalties first.
    left -= this.#units.take(PENALTIES, key, place, left)
    left -= this.#units.takeCarried(key, place, left)
    const threads = this.#scenario.threads.length
    this.#charges.rob(threads, this.thread, key, place)
    this.#charges.owe(threads, this.thread, key, place, left)
  }

  /** A refusal is too early if the key's cell has room, by the cell's tick or by the reading. */
  #judgeRefusal({ key, cost, limit, nowMs, way }: Decided): void {
    if (this.#isOverlapped) return
    if (this.isBlocked(key, nowMs)) return
    const record = this.#word(way, HI) & CELL_RECORD
    const newest = this.timeline.tickOfWord(record, this.#judges.tickOf(this.#word(way, TICK)))
    const used = this.#judges.usedAtMost(key, record, Math.max(this.timeline.tickAt(record, nowMs), newest))
    if (used + cost <= limit) this.fail('early', `key ${key}: ${used} of ${limit} used, ${cost} refused`)
  }

  get #isOverlapped(): boolean {
    return this.#presence.isOverlapped(this.thread)
  }

  /** Judges the memory when no thread is inside an operation. */
  judgeMemory(): void {
    if (this.#presence.dead === 0) this.#blockJudge.judgeAtRest()
    this.#judges.judgeAtRest()
  }

  fail(what: Forbidden, how: string): void {
    if (this.#forbidden.has(what)) this.wrong ??= `${what}: ${how}`
  }

  /** The tick place of a moment by the present record. */
  #tickPlaceAt(ms: number): number {
    const { current } = this.timeline
    return this.timeline.placeOfTick(current, this.timeline.tickAt(current, ms))
  }

  #word(way: number, field: number): number {
    const { waysAt, wayWords } = this.#arena.shape
    return this.#arena.words[waysAt + way * wayWords + field]!
  }

  #block(key: number): number {
    return this.#blocksAt + this.keys.indexOf(key)
  }
}
