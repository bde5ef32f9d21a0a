import type { CheckOptions } from '../api/call-options.js'
import { closedError, invalidCostError } from '../api/checks.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { InlineDecision } from '../core/inline-decision.js'
import { InlineEngine } from '../engines/inline/inline.js'
import type { Hasher } from '../memory/hash.js'
import type { KeyReader } from '../memory/key-reader.js'
import { checkKeyString, type Key, MAX_KEY_LENGTH } from '../memory/keys.js'
import type { Arena } from '../memory/records.js'
import { InlineLimiter } from './inline-limiter.js'
import type { LimiterFile } from './memory-backend.js'

/** Decides on the calling thread by one rule. */
export class OneRuleLimiter extends InlineLimiter<InlineDecision> {
  readonly #keys: KeyReader
  readonly #hasher: Hasher
  #engine: InlineEngine | undefined

  /** @internal */
  constructor(arena: Arena, ruleName: string, clock: Clock, file?: LimiterFile) {
    const engine = new InlineEngine(arena, ruleName, clock)
    super({ arenas: [arena], names: [ruleName] }, [engine], engine, clock, file)
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
