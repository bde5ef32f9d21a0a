import type { Changes } from '../engine.js'
import type { RuleEngine } from './rule-engine.js'

/** Changes a key in all rules. Each rule reads the clock for itself. */
export class RulesChanges implements Changes {
  readonly #engines: readonly RuleEngine[]

  constructor(engines: readonly RuleEngine[]) {
    this.#engines = engines
  }

  /** Returns the most units that any rule took out. */
  refund(lo: number, hi: number, most: number): number {
    return Math.max(...this.#inAll(({ changes }) => changes.refund(lo, hi, most)))
  }

  /** False if any rule has no room for the key. The others are charged. */
  penalize(lo: number, hi: number, cost: number): boolean {
    return this.#inAll(({ changes }) => changes.penalize(lo, hi, cost)).every(Boolean)
  }

  /** Returns the most units that any rule charged. */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): number {
    const charged = ({ changes }: RuleEngine, i: number) =>
      changes.chargeMore(lo, hi, cost, actualCost, shadowed & (1 << i))
    return Math.max(...this.#inAll(charged))
  }

  /** False if no rule has room for the key. A block by one rule is enough to refuse the key. */
  block(lo: number, hi: number, ms: number): boolean {
    return this.#inAll(({ changes }) => changes.block(lo, hi, ms)).some(Boolean)
  }

  unblock(lo: number, hi: number): boolean {
    return this.#inAll(({ changes }) => changes.unblock(lo, hi)).some(Boolean)
  }

  clear(lo: number, hi: number): void {
    this.#inAll(({ changes }) => changes.clear(lo, hi))
  }

  /** Clears the first rule last: that wakes the pending calls of `wait`. */
  clearAll(): void {
    for (const { changes } of this.#engines.toReversed()) changes.clearAll()
  }

  #inAll<T>(change: (engine: RuleEngine, index: number) => T): T[] {
    return this.#engines.map(change)
  }
}
