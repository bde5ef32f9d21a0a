import { Outcome } from '#millrace/core/inline-decision.js'
import type { Decided } from './decided.js'
import type { Ledger } from './ledger.js'
import type { Presence } from './presence.js'
import type { Forbidden, Op } from './scenario.js'

/** One rule's part of a decision that has just returned. */
export interface DecidedPart extends Decided {
  /** The index of the rule. */
  readonly rule: number
  /** Whether this rule decided. A rule after the one that refused is only peeked at. */
  readonly isDeciding: boolean
}

/** The ledgers of all rules. Each rule has its own arena, so each ledger judges its rule alone. */
export class Ledgers {
  readonly each: readonly Ledger[]
  readonly #presence: Presence
  readonly #forbidden: ReadonlySet<Forbidden>
  #wrong: string | undefined
  #thread = 0

  constructor(each: readonly Ledger[], presence: Presence, forbidden: readonly Forbidden[]) {
    this.each = each
    this.#presence = presence
    this.#forbidden = new Set(forbidden)
  }

  get wrong(): string | undefined {
    return this.#wrong ?? this.each.find(({ wrong }) => wrong !== undefined)?.wrong
  }

  forgetWrong(): void {
    this.#wrong = undefined
    for (const ledger of this.each) ledger.wrong = undefined
  }

  get dead(): number {
    return this.#presence.dead
  }

  dies(thread: number): void {
    this.#presence.dies(thread)
  }

  isUnderWay(thread: number): boolean {
    return this.#presence.isUnderWay(thread)
  }

  beforeOperation(thread: number): void {
    this.#presence.beforeOperation(thread)
  }

  /** A thread goes on with its operation at this position. */
  goesOn(thread: number, position: number, op: Op): void {
    this.#thread = thread
    for (const ledger of this.each) {
      ledger.thread = thread
      ledger.position = position
      ledger.op = op
    }
  }

  /** The operation of the running thread has returned. */
  ends(): void {
    for (const ledger of this.each) ledger.ends()
    this.#presence.ends(this.#thread)
  }

  /** The decision of the running thread has returned. Either all rules or no rule may be charged. */
  decided(allowed: boolean, parts: readonly DecidedPart[]): void {
    for (const part of parts) {
      const isCharged = part.outcome === Outcome.CHARGED
      if (isCharged !== allowed)
        this.fail('half charged', `rule ${part.rule} is ${isCharged ? '' : 'not '}charged`)
      if (isCharged || part.isDeciding) this.each[part.rule]!.decided(part)
    }
    this.ends()
  }

  fail(what: Forbidden, how: string): void {
    if (this.#forbidden.has(what)) this.#wrong ??= `${what}: ${how}`
  }
}
