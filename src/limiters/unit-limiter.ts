import type { CheckOptions } from '../api/call-options.js'
import { closedError, invalidCostError } from '../api/checks.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { NEAR_LIMIT } from '../core/near-limit.js'
import type { UnitDecision } from '../core/unit-decision.js'
import { InlineEngine } from '../engines/inline/inline.js'
import { UnitEngine } from '../engines/inline/unit-engine.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { KeyReader } from '../memory/key-reader.js'
import type { Key } from '../memory/keys.js'
import { InlineLimiter } from './inline-limiter.js'
import type { LimiterFile } from './memory-backend.js'

/** Decides on the calling thread by one rule with the option `unit`. */
export class UnitLimiter extends InlineLimiter<UnitDecision> {
  readonly #keys: KeyReader
  #engine: UnitEngine | undefined

  /** @internal */
  constructor(memory: RuleMemory, unit: number, clock: Clock, file?: LimiterFile) {
    const { arenas, names, nearLimit = NEAR_LIMIT } = memory
    const engine = new UnitEngine(new InlineEngine(arenas[0], names[0], clock, nearLimit), unit)
    super(memory, [engine], engine, clock, file)
    this.#keys = this.backend.keys
    this.#engine = engine
  }

  check(key: Key, cost = 1, options?: CheckOptions): Decision {
    const engine = this.#engine
    if (engine === undefined) throw closedError()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (options !== undefined) return this.checkBy(options, key, cost)
    if (typeof key === 'string') {
      const { lo, hi } = this.#keys.read(key)
      const decision = engine.checkNow(lo, hi, cost)
      return decision.allowed ? decision : this.refused(decision, key)
    }
    const handle = this.#keys.owned(key)
    const decision = engine.checkNow(handle.lo, handle.hi, cost, handle.way)
    handle.way = decision.way
    return decision.allowed ? decision : this.refused(decision, key)
  }

  override close(): Promise<void> {
    this.#engine = undefined
    return super.close()
  }
}
