import type { Clock } from '../../core/clock.js'
import { Outcome } from '../../core/inline-decision.js'
import { NEAR_LIMIT } from '../../core/near-limit.js'
import { again } from '../../core/tries.js'
import { isUncounted } from '../../core/uncounted-limit.js'
import type { RuleMemory } from '../../memory/arenas.js'
import type { Arena } from '../../memory/records.js'
import {
  BLOCKED,
  CHARGED_TICK,
  LIMIT,
  limitOfWord,
  NUMBER,
  OUTCOME,
  REFUNDS,
  REMAINING,
  RESET_MS,
  RETRY_AFTER_MS,
  UNITS,
  WAY,
} from '../../memory/request-ring.js'
import { NativeRequestServer } from '../../native/request-server.js'
import { InlineEngine } from '../inline/inline.js'
import { lastFigures } from '../inline/last-decision.js'
import { writeDecision } from './pool-decision.js'
import { chargeIn, RequestHandler } from './request-handler.js'
import type { RingMemory } from './ring-transport.js'

/** Handles the requests of a ring by one rule. */
export class OneRuleHandler extends RequestHandler {
  protected readonly engine: InlineEngine
  #native: NativeRequestServer | undefined
  /** The arena, by its record, that `#native` decides on. */
  #arena: Arena

  constructor(
    ring: RingMemory,
    { arenas: [arena], names, nearLimit = NEAR_LIMIT }: RuleMemory,
    clock: Clock,
  ) {
    super(ring, names, false)
    this.engine = new InlineEngine(arena, names[0], clock, nearLimit)
    this.#arena = this.engine.arena
    this.#native = NativeRequestServer.for(this.engine.addon, this.#arena, ring.words)
  }

  /**
   * The addon, if it is loaded, decides requests by one reading of the clock, up to the first one that it
   * does not admit.
   */
  override handleMany(from: number, to: number): number {
    const { arena } = this.engine
    if (arena !== this.#arena) {
      this.#arena = arena
      this.#native = NativeRequestServer.for(this.engine.addon, arena, this.memory.words)
    }
    const native = this.#native
    if (native === undefined || ((to - from) | 0) < native.least) return from
    const { reading } = this.engine
    reading.take()
    this.hasReading = false
    const stopped = native.serve(from, to, reading.nowMs)
    this.engine.tally((stopped - from) | 0, 0)
    return stopped
  }

  protected check(slot: number, lo: number, hi: number, cost: number): void {
    this.#takeReading()
    this.#decide(slot, lo, hi, cost, undefined)
  }

  protected checkWithin(slot: number, lo: number, hi: number, cost: number): void {
    this.#takeReading()
    this.#decide(slot, lo, hi, cost, this.#ownLimitIn(slot))
  }

  protected peek(slot: number, lo: number, hi: number, cost: number): void {
    writeDecision(this.memory, slot, this.engine.peek(lo, hi, cost, this.#ownLimitIn(slot)))
  }

  protected usage(_rule: number, lo: number, hi: number, ms: number): number {
    return this.engine.usage(lo, hi, ms)
  }

  protected giveBack(slot: number): number {
    const { words } = this.memory
    return this.engine.changes.giveBackFrom(
      words[slot + WAY]!,
      chargeIn(this.memory, slot),
      words[slot + UNITS]!,
    )
  }

  /** Before the rule is read: see "The reading" in `algorithms/conversion.ts`. */
  #takeReading(): void {
    if (this.hasReading) return
    this.engine.reading.take()
    this.hasReading = true
  }

  #decide(slot: number, lo: number, hi: number, cost: number, ownLimit: number | undefined): void {
    const { words, doubles } = this.memory
    const { engine } = this
    if (ownLimit !== undefined && isUncounted(ownLimit)) {
      writeDecision(this.memory, slot, engine.checkSet(lo, hi, cost, -1, ownLimit))
      return
    }
    const present = engine.limit // in any case: the record may have changed
    const { blocked } = engine
    let limit = ownLimit ?? present
    let outcome = engine.decide(lo, hi, cost, limit, -1)
    for (let tries = 0; outcome === Outcome.OUTDATED; tries = again(tries)) {
      limit = ownLimit ?? engine.limit
      outcome = engine.decide(lo, hi, cost, limit, -1)
    }
    words[slot + LIMIT] = limit
    words[slot + OUTCOME] = outcome
    words[slot + BLOCKED] = engine.blocked - blocked
    words[slot + WAY] = engine.way
    words[slot + CHARGED_TICK] = engine.last.chargedTick
    const { last } = engine
    words[slot + REFUNDS] = last.receipt(last.chargedStamp, last.lastAdm)
    const { remaining, retryAfterMs, resetMs } = lastFigures(engine, lo, hi, cost, limit, outcome)
    words[slot + REMAINING] = remaining
    const double = slot >>> 1
    doubles[double + NUMBER] = engine.reading.nowMs
    doubles[double + RETRY_AFTER_MS] = retryAfterMs
    doubles[double + RESET_MS] = resetMs
  }

  /** The limit of the call, if it has one. */
  #ownLimitIn(slot: number): number | undefined {
    return limitOfWord(this.memory.words[slot + LIMIT]!)
  }
}
