import { Adjustments } from '../algorithms/adjustments.js'
import { BlockBound } from '../algorithms/block-bound.js'
import { Estimates } from '../algorithms/estimates.js'
import { ADMITTED, FULL, GONE, SlidingWindow, UNDECIDED } from '../algorithms/sliding-window.js'
import type { Clock } from '../core/clock.js'
import { type Decided, type Figures, InlineDecision, Outcome } from '../core/decision.js'
import { Reading } from '../core/reading.js'
import { isLimit } from '../core/rule.js'
import { Ticks } from '../core/ticks.js'
import type { Arena } from '../memory/arena.js'
import { count } from '../memory/counters.js'
import { Insertion } from '../memory/insertion.js'
import { BLOCKED, COUNT, HEADER } from '../memory/layout.js'
import { changeLimit } from '../memory/limit.js'
import { readStatistics, type Statistics } from '../memory/statistics.js'
import { Table } from '../memory/table.js'
import { read } from '../memory/words.js'
import { NativeBatches } from '../native/batches.js'
import { NativeSingle } from '../native/single.js'
import { DecisionEstimates } from './decision-estimates.js'
import { Era } from './era.js'

const NO_WAY = -1
/** Milliseconds are added to a reading that is so near below the next whole one as if it were that: doubles are rounded. */
const NEARLY_WHOLE = 1 - 2 ** -10
/** Statistics go to shared memory once for so many decisions: an atomic addition each would cost a tenth of one. */
const DECISIONS_PER_FLUSH = 256

export interface EngineStatistics extends Statistics {
  /** What decides single keys and large batches: the addon, or (`'none'`) TypeScript, which does everything else. */
  native: 'addon' | 'none'
}

/**
 * Decides on the calling thread. It sees keys as fingerprints and has checked nothing: `limiter.ts` has. Every method
 * reads the clock (but `check` and `decide`, whose caller has), finds the key's way, and starts over where it was lost.
 */
export class InlineEngine {
  readonly ruleName: string
  readonly reading: Reading
  /** What decides large batches, where the addon is there. */
  readonly native: NativeBatches | undefined
  /** The way of the last decision, or -1: a hint for the next one on the same key. */
  way = NO_WAY
  readonly #arena: Arena
  readonly #isWhole: boolean
  readonly #table: Table
  readonly #window: SlidingWindow
  readonly #adjustments: Adjustments
  readonly #blockBound: BlockBound
  readonly #cellEstimates: Estimates
  readonly #insertion: Insertion
  readonly #single: NativeSingle | undefined
  /** What is told of later. */
  readonly estimates: DecisionEstimates
  /** The era of the decisions made now. */
  era: Era
  #allowed = 0
  #denied = 0
  /** The last limit that was read here and may be one. */
  #soundLimit = 1

  constructor(arena: Arena, ruleName: string, clock: Clock) {
    const { words, shape, originMs, edge } = arena
    const ticks = new Ticks(shape.windowMs, shape.buckets, shape.modulus)
    this.ruleName = ruleName
    this.#isWhole = Number.isInteger(ticks.granuleMs) && edge === 'strict'
    this.reading = new Reading(clock, ticks)
    this.native = NativeBatches.for(arena, clock)
    this.#arena = arena
    this.#table = new Table(words, shape)
    this.#window = new SlidingWindow(words, shape, edge, originMs)
    this.#adjustments = new Adjustments(this.#window)
    this.#blockBound = new BlockBound(this.#table, this.#window)
    this.#cellEstimates = new Estimates(this.#window, ticks, edge === 'smooth')
    this.#insertion = new Insertion(words, this.#table, this.#window, this.reading, arena.onFull)
    this.#single = NativeSingle.for(arena, this.reading)
    this.estimates = new DecisionEstimates(
      arena,
      this.#table,
      this.#window,
      this.#cellEstimates,
      this.#insertion,
      this.reading,
      this.#single,
    )
    const { epochs } = this.#window
    this.era = new Era(this, epochs)
    epochs.onEra = () => {
      this.era = new Era(this, epochs)
    }
  }

  get limit(): number {
    const limit = read(this.#arena.words, HEADER.LIMIT)
    return limit === this.#soundLimit ? limit : this.#changedLimit(limit)
  }

  set limit(limit: number) {
    changeLimit(this.#arena.words, limit)
  }

  /**
   * Decides and charges, by the reading that the caller has just taken. `cost` is an integer >= 0 of any size; `hint` the
   * way where the key was last, or -1.
   */
  check(lo: number, hi: number, cost: number, hint: number): InlineDecision {
    const { limit } = this
    return this.#made(lo, hi, cost, limit, this.decide(lo, hi, cost, limit, hint))
  }

  /** The same, by a reading of its own; by the addon where it is there and the key in the table. */
  checkNow(lo: number, hi: number, cost: number, hint = NO_WAY): InlineDecision {
    const single = this.#single
    if (single === undefined) this.reading.take()
    else if (single.decides(lo, hi, cost, hint)) return this.#madeThrough(single, lo, hi, cost)
    return this.check(lo, hi, cost, hint)
  }

  #made(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): InlineDecision {
    const { way } = this
    if (way < 0) return this.#madeNew(lo, hi, cost, limit, outcome)
    const { chargedTick, chargedStamp, lastAdm } = this.#window
    const { nowMs } = this.reading
    const at = this.#kept(nowMs)
    // biome-ignore format: one line
    const made = new InlineDecision(this.era, lo, hi, cost, limit, at, outcome, way, chargedTick, chargedStamp, lastAdm)
    if (nowMs - at > NEARLY_WHOLE) made.keep({ at: nowMs })
    if (outcome === Outcome.REFUSED) keepBlock(made, nowMs, this.#window.lastUntil)
    return made
  }

  #madeThrough(single: NativeSingle, lo: number, hi: number, cost: number): InlineDecision {
    const { way, limit, nowMs, chargedTick, chargedStamp, lastAdm } = single
    const outcome = this.#settled(way, single.isAdmitted ? ADMITTED : FULL)
    const at = this.#kept(nowMs)
    // biome-ignore format: one line
    const made = new InlineDecision(this.era, lo, hi, cost, limit, at, outcome, way, chargedTick, chargedStamp, lastAdm)
    if (nowMs - at > NEARLY_WHOLE) made.keep({ at: nowMs })
    if (outcome === Outcome.REFUSED) keepBlock(made, nowMs, single.lastUntil)
    return made
  }

  /** Of a key that has no way: nothing of the table would tell its figures later. */
  #madeNew(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): InlineDecision {
    const figures = this.estimates.ofNewKey(lo, hi, cost, limit, outcome)
    const made = new InlineDecision(
      this.era,
      lo,
      hi,
      cost,
      limit,
      this.reading.nowMs,
      outcome,
      NO_WAY,
      0,
      0,
      0,
    )
    made.keep(figures)
    return made
  }

  /**
   * A decision's reading, as it is kept. Where granules begin at whole milliseconds, its figures are those of the whole one before
   * it, which is a small integer for 24 days and takes no memory beside the decision.
   */
  #kept(nowMs: number): number {
    return this.#isWhole ? Math.floor(nowMs) : nowMs
  }

  /** The decision alone; `way` says where. */
  decide(lo: number, hi: number, cost: number, limit: number, hint: number): Outcome {
    const way = hint >= 0 ? hint : this.#table.guess(lo, hi)
    if (way >= 0 && cost > 0) {
      const found = this.#window.attempt(way, lo, hi, cost, limit, this.reading)
      if (found !== UNDECIDED) return this.#settled(way, found)
    }
    return this.#decideAnew(way, lo, hi, cost, limit)
  }

  /** Whatever the one attempt on `guess` did not settle. */
  #decideAnew(guess: number, lo: number, hi: number, cost: number, limit: number): Outcome {
    if (cost === 0 || cost > limit) return this.#decideUncharged(lo, hi, cost)
    const window = this.#window
    let way = guess >= 0 && this.#table.isNamed(guess, lo, hi) ? guess : this.#table.findLive(lo, hi)
    for (;;) {
      if (way < 0) {
        if (!this.#insertion.insert(lo, hi)) return this.#decideWithoutRoom()
      } else {
        window.enter(window.base(way), this.reading)
        const found = window.decide(way, lo, hi, cost, limit, this.reading)
        if (found !== GONE) return this.#settled(way, found)
      }
      way = this.#table.findLive(lo, hi)
    }
  }

  /** Decides, but charges and inserts nothing. */
  peek(lo: number, hi: number, cost: number): InlineDecision {
    const { limit } = this
    this.reading.take()
    this.way = this.#see(lo, hi)
    return this.#made(lo, hi, cost, limit, this.#wouldBe(lo, hi, cost, limit))
  }

  /** All figures of the decision just made. */
  figuresOf(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): Figures {
    if (this.way < 0) return this.estimates.ofNewKey(lo, hi, cost, limit, outcome)
    return this.estimates.figuresOf(this.decided(lo, hi, cost, limit, outcome))
  }

  /** The last decision, as far as its figures go; of a key that has a way. */
  decided(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): Decided {
    const { chargedTick: tick, lastAdm: adm, lastUntil } = this.#window
    const until = outcome === Outcome.REFUSED ? lastUntil : undefined
    const { era, way } = this
    return { era, lo, hi, cost, limit, at: this.reading.nowMs, outcome, way, tick, adm, until }
  }

  /** Units of the key in the last `lastMs`. */
  usage(lo: number, hi: number, lastMs: number): number {
    const used = this.#single?.usage(lo, hi, lastMs) ?? -1
    if (used >= 0) return used
    const way = this.#table.findLive(lo, hi)
    this.reading.take()
    return way < 0 ? 0 : this.#cellEstimates.usedInLast(this.#window.base(way), this.reading, lastMs)
  }

  /** Where the last decision that was charged was. */
  get chargedTick(): number {
    return this.#window.chargedTick
  }

  /** What its bucket had seen of refunds by key. */
  get chargedStamp(): number {
    return this.#window.chargedStamp
  }

  /** Gives back what this decision charged; how many units that was. */
  giveBack(decision: InlineDecision): number {
    if (decision.outcome !== Outcome.CHARGED) return 0
    this.reading.take()
    decision.giveBack()
    return this.#takeBack(decision.way, decision.tick, decision.cost, decision.stamp)
  }

  /** Gives back `cost` units charged there; how many that was. */
  giveBackFrom(way: number, tick: number, cost: number, stamp: number): number {
    this.reading.take()
    return this.#takeBack(way, tick, cost, stamp)
  }

  /** Takes up to `most` units out, the oldest first; how many. */
  refund(lo: number, hi: number, most: number): number {
    const capped = Math.min(most, Number.MAX_SAFE_INTEGER)
    return this.#onExisting(lo, hi, 0, (way) => this.#adjustments.refund(way, lo, hi, capped))
  }

  /** Charges `cost` units, at most `COUNT`, without asking. False: there was no room for the key. */
  penalize(lo: number, hi: number, cost: number): boolean {
    if (cost === 0) return true
    return this.#onInserted(lo, hi, (way) => this.#adjustments.penalize(way, lo, hi, cost))
  }

  /** Refuses the key for `ms`, `Infinity` for ever. False: there was no room for the key. */
  block(lo: number, hi: number, ms: number): boolean {
    const set = (way: number) =>
      this.#adjustments.block(way, lo, hi, this.#window.until.wordFor(this.reading.nowMs, ms))
    if (!this.#onInserted(lo, hi, set, true)) return false
    const ended = this.#blockBound.hold(lo, hi, this.reading)
    if (ended > 0) count(this.#arena.words, HEADER.BLOCKS_EVICTED, ended)
    return true
  }

  /** Ends the key's block; whether there was one. */
  unblock(lo: number, hi: number): boolean {
    return this.#onExisting(lo, hi, false, (way) => this.#adjustments.unblock(way, lo, hi, this.reading))
  }

  /** Forgets the key's counts and block. */
  clear(lo: number, hi: number): void {
    this.refund(lo, hi, Number.MAX_SAFE_INTEGER)
    this.unblock(lo, hi)
  }

  statistics(): EngineStatistics {
    this.flush()
    const native = this.native === undefined ? 'none' : 'addon'
    return { ...readStatistics(this.#arena), native }
  }

  /** Counts decisions that were made elsewhere. */
  tally(allowed: number, denied: number): void {
    this.#allowed += allowed
    this.#denied += denied
    if (this.#allowed + this.#denied >= DECISIONS_PER_FLUSH) this.flush()
  }

  /** Decides no more; the memory of a file may go. Decisions that were made can still be read. */
  close(): void {
    this.flush()
    if (!(this.#arena.buffer instanceof SharedArrayBuffer)) this.estimates.detach()
  }

  /** Adds what this thread has counted to the statistics of all. */
  flush(): void {
    if (this.#allowed > 0) count(this.#arena.words, HEADER.ALLOWED, this.#allowed)
    if (this.#denied > 0) count(this.#arena.words, HEADER.DENIED, this.#denied)
    this.#allowed = 0
    this.#denied = 0
  }

  /** A limit that is none stands there only where something else has written to the memory: the one before holds. */
  #changedLimit(limit: number): number {
    if (isLimit(limit)) this.#soundLimit = limit
    return this.#soundLimit
  }

  /** The key's way, or -1; its admission word and tick are taken down. */
  #see(lo: number, hi: number): number {
    for (;;) {
      const way = this.#table.findLive(lo, hi)
      if (way < 0 || this.#window.observe(way, lo, hi)) return way
    }
  }

  #wouldBe(lo: number, hi: number, cost: number, limit: number): Outcome {
    let { way } = this
    if (way >= 0 && this.#isBlocked()) return Outcome.REFUSED
    if (cost > limit) return Outcome.REFUSED
    if (way < 0) {
      if (cost === 0) return Outcome.UNCOUNTED
      way = this.#insertion.choose(lo, hi)
      if (way < 0) return this.#arena.onFull === 'allow' ? Outcome.UNCOUNTED : Outcome.NO_ROOM
    }
    const fits = cost === 0 || this.#cellEstimates.used(this.#window.base(way), this.reading) + cost <= limit
    return fits ? Outcome.UNCOUNTED : Outcome.REFUSED
  }

  /** Cost 0 passes unless the key is blocked; a cost above the limit never does. Neither touches the table. */
  #decideUncharged(lo: number, hi: number, cost: number): Outcome {
    this.way = this.#see(lo, hi)
    const isBlocked = this.way >= 0 && this.#isBlocked()
    return this.#counted(cost > 0 || isBlocked ? Outcome.REFUSED : Outcome.UNCOUNTED)
  }

  /** Whether the way that was just seen is blocked. */
  #isBlocked(): boolean {
    return this.#window.isBlocked(this.#window.base(this.way), this.#window.lastAdm, this.reading.nowMs)
  }

  #decideWithoutRoom(): Outcome {
    this.way = NO_WAY
    count(this.#arena.words, HEADER.NO_ROOM, 1)
    return this.#counted(this.#arena.onFull === 'allow' ? Outcome.UNCOUNTED : Outcome.NO_ROOM)
  }

  #settled(way: number, found: number): Outcome {
    this.way = way
    return this.#counted(found === ADMITTED ? Outcome.CHARGED : Outcome.REFUSED)
  }

  #counted(outcome: Outcome): Outcome {
    if (outcome >= Outcome.UNCOUNTED) this.#allowed++
    else this.#denied++
    if (this.#allowed + this.#denied >= DECISIONS_PER_FLUSH) this.flush()
    return outcome
  }

  #takeBack(way: number, tick: number, cost: number, stamp: number): number {
    this.#window.enter(this.#window.base(way), this.reading) // whosever it is now: what is out of the window stays there
    return this.#adjustments.giveBack(way, tick, cost, stamp) ? cost : 0
  }

  /** Runs `change` on the key's way, its tick at the clock's, until the way stays the key's; `absent` where it has none. */
  #onExisting<T>(lo: number, hi: number, absent: T, change: (way: number) => T | typeof GONE): T {
    this.reading.take()
    for (;;) {
      const way = this.#table.findLive(lo, hi)
      if (way < 0) return absent
      this.#window.enter(this.#window.base(way), this.reading)
      const changed = change(way)
      if (changed !== GONE) return changed
    }
  }

  /** The same, but gives a new key a way; false where there is no room. */
  #onInserted(
    lo: number,
    hi: number,
    change: (way: number) => boolean | typeof GONE,
    isToBlock = false,
  ): boolean {
    for (;;) {
      const changed = this.#onExisting<boolean | undefined>(lo, hi, undefined, change)
      if (changed !== undefined) return changed
      if (!this.#insertion.insert(lo, hi, isToBlock)) {
        count(this.#arena.words, HEADER.NO_ROOM, 1)
        return false
      }
    }
  }
}

/** A block's end is kept where it refused: it may be another when somebody asks. */
function keepBlock(refused: InlineDecision, at: number, until: number): void {
  if ((refused.adm & COUNT) === BLOCKED) refused.keep({ until, at })
}
