// What the members of a configured limiter count of a key: see `carry-over.ts`.
import type { AsyncLimiter } from '../api/async-limiter.js'
import { ALGORITHM_ROWS, DEFAULT_ALGORITHM } from '../core/algorithms.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import { presentShape } from '../limiters/shown-rules.js'
import { HASH } from '../memory/layout.js'
import { unitIn } from '../memory/unit.js'
import type { CountedRule, KeyCounts, KeyCountsInTurn, OwnUnits } from './carry-over.js'

/** A member that counts in shared memory. */
export interface CountingLimiter {
  readonly ruleEngines: readonly RuleEngine[]
}

/** The fingerprint of a key, or of its ledger. */
export interface KeyHalves {
  readonly lo: number
  readonly hi: number
}

/** A member that counts on a server. */
export interface TurnTaking {
  /** Fills a key, which no statistics count; undefined: it is full. Otherwise returns what gives that back. */
  takeTurn(key: string): Promise<(() => Promise<unknown>) | undefined>
}

/** So many granules of a window on a server are told apart. */
const MOST_GRANULES = 60

/** The fingerprint of a key's ledger: that of no other key, as fingerprints are random to all. */
function ledgerOf({ lo, hi }: KeyHalves): KeyHalves {
  return { lo: lo ^ 0x6c656467 || 1, hi: (hi ^ 0x65722121) & HASH }
}

/** Of a member in shared memory, by this thread. */
export class KeyCountsInMemory implements KeyCounts {
  readonly rules: readonly CountedRule[]
  readonly #engines: readonly RuleEngine[]
  readonly #key: KeyHalves
  readonly #ledger: KeyHalves

  constructor({ ruleEngines }: CountingLimiter, key: KeyHalves) {
    this.#engines = ruleEngines
    this.#key = key
    this.#ledger = ledgerOf(key)
    this.rules = ruleEngines.map((engine) => {
      const { windowMs, buckets } = presentShape(engine)
      const { words, algorithm } = engine.arena
      return { windowMs, unit: unitIn(words), granules: ALGORITHM_ROWS[algorithm].isDated ? buckets : 0 }
    })
  }

  units(rule: number, lastMs: number): OwnUnits {
    const engine = this.#engines[rule]!
    const { lo, hi } = this.#key
    const nowMs = readNow(engine)
    const atMs = engine.views.heldMs(lo, hi, lastMs)
    const used = usageAt(engine, this.#key, lastMs, atMs)
    if (used === 0 || used >= mostIn(engine) || !this.#endsTogether(engine, nowMs, atMs))
      return { own: used, carried: 0 }
    const carried = this.#inLedger(engine, (ledger) => usageAt(engine, ledger, lastMs, atMs))
    return { own: Math.max(0, used - carried), carried: Math.min(used, carried) }
  }

  charged(rule: number, lastMs: number): number {
    const engine = this.#engines[rule]!
    return this.#inLedger(engine, ({ lo, hi }) => engine.usage(lo, hi, lastMs))
  }

  /** A cell at rest keeps what has left its window. */
  carriedMs(): number {
    return Number.POSITIVE_INFINITY
  }

  sinceMs(rule: number, age: number): number {
    const engine = this.#engines[rule]!
    const nowMs = readNow(engine)
    const { ticks, absoluteTick } = engine.reading
    // A log dates a unit by the end of its granule.
    const isLog = ALGORITHM_ROWS[engine.arena.algorithm].units === 'entries'
    return nowMs - ticks.startMs(absoluteTick - age - (isLog ? 1 : 0))
  }

  charge(units: readonly number[]): void {
    for (const [i, engine] of this.#engines.entries()) {
      const { changes } = engine
      const isCharged = changes.penalize(this.#key.lo, this.#key.hi, units[i]!)
      if (isCharged) this.#inLedger(engine, ({ lo, hi }) => changes.penalize(lo, hi, units[i]!))
    }
  }

  blockLeft(): number {
    const { lo, hi } = this.#key
    return Math.max(...this.#engines.map((engine) => engine.peek(lo, hi, 0).retryAfterMs))
  }

  block(ms: number): void {
    for (const { changes } of this.#engines) changes.block(this.#key.lo, this.#key.hi, ms)
  }

  /** After the key's counts: then all that it had counts for nobody. */
  clearLedger(): void {
    for (const { changes } of this.#engines) changes.clear(this.#ledger.lo, this.#ledger.hi)
  }

  /** Whether the ledger loses its units no later than the cell. Windows that begin with a key's first request may not. */
  #endsTogether(engine: RuleEngine, nowMs: number, atMs: number): boolean {
    if (engine.arena.align !== 'first') return true
    const resetMs = ({ lo, hi }: KeyHalves) => engine.peek(lo, hi, 0).resetMs
    return atMs === nowMs && this.#inLedger(engine, resetMs) <= resetMs(this.#key)
  }

  #inLedger<T>({ views }: RuleEngine, act: (ledger: KeyHalves) => T): T {
    views.isLedger = true
    try {
      return act(this.#ledger)
    } finally {
      views.isLedger = false
    }
  }
}

/** Of a member on a server. */
export class KeyCountsOnServer implements KeyCountsInTurn {
  readonly rules: readonly CountedRule[]
  readonly #limiter: AsyncLimiter & TurnTaking
  readonly #key: string
  readonly #ledger: string

  constructor(limiter: AsyncLimiter & TurnTaking, key: string) {
    this.#limiter = limiter
    this.#key = key
    this.#ledger = `${key}\u0000ledger`
    this.rules = limiter.rules.map(({ windowMs, granularityMs, unit, algorithm }) => {
      const isDated =
        algorithm !== 'sliding-counter' && ALGORITHM_ROWS[algorithm ?? DEFAULT_ALGORITHM].isDated
      // Each age is asked for by calls of its own.
      const granules = isDated ? Math.min(MOST_GRANULES, Math.round(windowMs / granularityMs)) : 0
      return { windowMs, unit, granules }
    })
  }

  async units(rule: number, lastMs: number): Promise<OwnUnits> {
    const used = await this.#usage(this.#key, rule, lastMs)
    if (used === 0) return { own: 0, carried: 0 }
    const carried = Math.min(used, await this.#usage(this.#ledger, rule, lastMs))
    return { own: used - carried, carried }
  }

  charged(rule: number, lastMs: number): Promise<number> {
    return this.#usage(this.#ledger, rule, lastMs)
  }

  /** They were in the window when they were brought along, and that is in the window. */
  carriedMs(rule: number): number {
    const { windowMs, granules } = this.rules[rule]!
    const { granularityMs } = this.#limiter.rules[rule]!
    return granules === 0 ? Number.POSITIVE_INFINITY : 2 * (windowMs + granularityMs)
  }

  sinceMs(rule: number, age: number): number {
    const { windowMs, granules } = this.rules[rule]!
    return (windowMs * age) / granules
  }

  /** A charge acts on all rules of a limiter. */
  async charge(units: readonly number[]): Promise<void> {
    const most = Math.max(...units)
    await this.#limiter.penalize(this.#key, most)
    await this.#limiter.penalize(this.#ledger, most)
  }

  /** A third key is full while a process has the turn. */
  begin(): Promise<(() => Promise<unknown>) | undefined> {
    return this.#limiter.takeTurn(`${this.#key}\u0000turn`)
  }

  async blockLeft(): Promise<number> {
    return (await this.#limiter.peek(this.#key, 0)).retryAfterMs
  }

  block(ms: number): Promise<boolean> {
    return this.#limiter.block(this.#key, ms)
  }

  clearLedger(): Promise<void> {
    return this.#limiter.clear(this.#ledger)
  }

  #usage(key: string, index: number, lastMs: number): Promise<number> {
    const { name, windowMs } = this.#limiter.rules[index]!
    const isWhole = this.rules[index]!.granules === 0
    const ms = isWhole ? windowMs : Math.min(Math.max(Math.ceil(lastMs), 1), windowMs)
    return this.#limiter.usage(key, ms, { rule: name })
  }
}

/** The reading of the clock that the next look-ups go by. */
function readNow({ reading }: RuleEngine): number {
  reading.take()
  return reading.nowMs
}

function usageAt({ arena, views }: RuleEngine, { lo, hi }: KeyHalves, lastMs: number, atMs: number): number {
  return views.usageAt(lo, hi, lastMs, atMs) * (unitIn(arena.words) ?? 1)
}

/** The units of a full log: a charge displaces older ones, which may be the cell's own. */
function mostIn({ arena }: RuleEngine): number {
  if (ALGORITHM_ROWS[arena.algorithm].units !== 'entries') return Number.POSITIVE_INFINITY
  return arena.shape.units * (unitIn(arena.words) ?? 1)
}
