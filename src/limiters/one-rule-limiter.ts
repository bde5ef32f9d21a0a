import type { CheckOptions } from '../api/call-options.js'
import { closedError, invalidCostError } from '../api/checks.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { InlineDecision } from '../core/inline-decision.js'
import { NEAR_LIMIT } from '../core/near-limit.js'
import { InlineEngine } from '../engines/inline/inline.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { Hasher } from '../memory/hash.js'
import type { KeyReader } from '../memory/key-reader.js'
import { checkKeyString, type Key, MAX_KEY_LENGTH } from '../memory/keys.js'
import { InlineLimiter } from './inline-limiter.js'
import type { LimiterFile } from './memory-backend.js'

/** Decides on the calling thread by one rule. */
export class OneRuleLimiter extends InlineLimiter<InlineDecision> {
  readonly #keys: KeyReader
  readonly #hasher: Hasher
  #engine: InlineEngine | undefined

  /** @internal */
  constructor(memory: RuleMemory, clock: Clock, file?: LimiterFile) {
    const { arenas, names, nearLimit = NEAR_LIMIT } = memory
    const engine = new InlineEngine(arenas[0], names[0], clock, nearLimit)
    super(memory, [engine], engine, clock, file)
    this.#keys = this.backend.keys
    this.#hasher = this.#keys.hasher
    this.#engine = engine
  }

  check(key: Key, cost = 1, options?: CheckOptions): Decision {
    const engine = this.#engine
    if (engine === undefined) throw closedError()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (options !== undefined) return this.checkBy(options, key, cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      const decision = engine.checkNow(hasher.lo, hasher.hi, cost)
      return decision.allowed ? decision : this.refused(decision, key)
    }
    const handle = this.#keys.owned(key)
    const decision = engine.checkNow(handle.lo, handle.hi, cost, handle.way)
    if (handle.way !== engine.way) handle.way = engine.way // a store dirties its cache line
    return decision.allowed ? decision : this.refused(decision, key)
  }

  override close(): Promise<void> {
    this.#engine = undefined
    return super.close()
  }
}
