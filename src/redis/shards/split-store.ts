import { MillraceError } from '../../core/errors.js'
import { countsRefusals } from '../../core/verdict.js'
import type { CallLimit } from '../../engines/engine.js'
import { Outage } from '../../remote/outage.js'
import { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore, StoreCounters } from '../../remote/remote-store.js'
import { BoundedCalls } from './bounded-calls.js'
import { argumentsByPlace, packReceipts, unpackReceipts } from './receipts.js'
import { changeParts } from './split-changes.js'
import { partKey, wholeKey } from './split-names.js'
import type { SplitPlan } from './split-option.js'

/**
 * Splits keys into parts, each with its part of the limit, so that a key is on several servers. A request asks a part
 * at random. If that refuses, or its server does not answer, it asks another one. All parts together never admit more
 * than the limit. They may refuse while parts that were not asked have units left.
 */
export class SplitStore implements RemoteStore {
  readonly #store: RemoteStore
  readonly #plan: SplitPlan
  readonly #calls: BoundedCalls

  /** @param store a store whose names are `SplitNames` */
  constructor(store: RemoteStore, plan: SplitPlan, deadlineMs: number) {
    this.#store = store
    this.#plan = plan
    this.#calls = new BoundedCalls(deadlineMs)
  }

  get onRecovery(): () => void {
    return this.#store.onRecovery
  }

  set onRecovery(listener: () => void) {
    this.#store.onRecovery = listener
  }

  get counters(): StoreCounters {
    return this.#store.counters
  }

  get rules(): readonly RemoteRule[] {
    return this.#store.rules
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` for a limit of which not every part has a unit */
  set rules(rules: readonly RemoteRule[]) {
    const small = rules.find(({ rule }) => rule.limit < this.#plan.most)
    if (small !== undefined)
      throw limitError('ERR_MILLRACE_INVALID_RULE', small.rule, small.rule.limit, this.#plan.most)
    this.#store.rules = rules
  }

  ready(): Promise<void> {
    return this.#store.ready()
  }

  chargedKeys(): readonly string[] {
    return [...new Set((this.#store.chargedKeys?.() ?? []).map(wholeKey))]
  }

  clearAll(): Promise<void> {
    return this.#store.clearAll()
  }

  async close(): Promise<void> {
    await this.#calls.close()
    await this.#store.close()
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    return this.#store.unitLimits(limit)
  }

  /** A split key is a call of its own. */
  divide(asked: readonly Asked[]): number[][] {
    const split: number[][] = []
    const whole: number[] = []
    for (const [i, { key }] of asked.entries()) {
      if (this.#plan.partsOf(key) > 1) split.push([i])
      else whole.push(i)
    }
    const calls = this.#store.divide(whole.map((i) => wholeOf(asked[i]!)))
    return [...calls.map((call) => call.map((at) => whole[at]!)), ...split]
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const parts = this.#plan.partsOf(asked[0]!.key)
    if (parts > 1) return [await this.#calls.run((call) => this.#askParts(op, asked[0]!, parts, limit, call))]
    const decisions = await this.#store.ask(op, asked.map(wholeOf), limit)
    return decisions.map((decision, i) => {
      const requested = { ...decision.requested, key: asked[i]!.key }
      return new RemoteDecision(requested, decision.source, decision.parts, decision.refusing)
    })
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    const parts = this.#plan.partsOf(key)
    if (parts === 1) return this.#store.change(op, partKey(key, undefined), units, more, limits)
    const own = this.#shares(parts, limits)
    if (op === 'giveBack') {
      const [place] = argumentsByPlace(unpackReceipts(more))
      if (place === undefined) return units.map(() => 0)
      return this.#store.change(op, partKey(key, place[0]), units, place[1], own)
    }
    return changeParts(op, parts, units, this.rules, (part, some) =>
      this.#store.change(op, partKey(key, part), some, more, own),
    )
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const parts = this.#plan.partsOf(key)
    if (parts === 1) return this.#store.usage(partKey(key, undefined), ms, index)
    const all = Array.from({ length: parts }, (_, part) => this.#store.usage(partKey(key, part), ms, index))
    return (await Promise.all(all)).reduce((sum, used) => sum + used, 0)
  }

  /** Asks a part, and another one if that does not admit. */
  async #askParts(
    op: Asking,
    asked: Asked,
    parts: number,
    limit: CallLimit | undefined,
    call: { readonly isSettled: boolean },
  ): Promise<RemoteDecision> {
    const limits = this.unitLimits(limit)
    const shares = this.#shares(parts, limits)
    const first = Math.floor(parts * Math.random())
    const second = (first + 1 + Math.floor((parts - 1) * Math.random())) % parts
    let refusal: RemoteDecision | undefined
    let outage: Outage | undefined
    for (const part of [first, second]) {
      if (call.isSettled) break
      try {
        // A refusal counts once, at the part that is asked last.
        const own = op === 'check' && part === first && this.#countsRefused ? 'try' : op
        const decision = await this.#askPart(own, asked, part, limits, shares)
        if (decision.allowed && call.isSettled) await this.#giveBack(decision)
        if (decision.allowed) return decision
        if (refusal === undefined || decision.retryAfterMs < refusal.retryAfterMs) refusal = decision
      } catch (error) {
        if (!(error instanceof Outage)) throw error
        outage = error
        if (error.mayBeCharged) break
      }
    }
    if (refusal === undefined) throw outage ?? new Outage(undefined, false)
    return refusal
  }

  async #askPart(
    op: Asking,
    asked: Asked,
    part: number,
    limits: readonly (number | undefined)[] | undefined,
    shares: readonly number[],
  ): Promise<RemoteDecision> {
    const { key, cost } = asked
    const quantities = shares.map((share, i) => share * this.#unit(i))
    const replies = await this.#store.ask(op, [{ ...asked, key: partKey(key, part) }], quantities)
    const decision = replies[0]!
    const all = decision.parts.map((each, i) => ({
      ...each,
      limit: (limits?.[i] ?? this.rules[i]!.rule.limit) * this.#unit(i),
      receipt: each.receipt && packReceipts([{ place: part, receipt: each.receipt }]),
    }))
    const requested = { owner: decision.requested.owner, key, cost, limits }
    return new RemoteDecision(requested, decision.source, all, decision.refusing)
  }

  /** Nobody has heard of this admission. What is not given back counts until it leaves. */
  async #giveBack({ parts, requested: { key, cost, limits } }: RemoteDecision): Promise<void> {
    const units = this.rules.map((_, i) => Math.ceil(cost / this.#unit(i)))
    const receipts = parts.flatMap(({ receipt }) => receipt?.map(String) ?? ['', ''])
    try {
      await this.change('giveBack', key, units, receipts, limits)
    } catch (error) {
      if (!(error instanceof Outage || error instanceof MillraceError)) throw error
    }
  }

  /** The limits of each part, in units. */
  #shares(parts: number, limits: readonly (number | undefined)[] | undefined): number[] {
    return this.rules.map(({ rule }, i) => {
      const limit = limits?.[i] ?? rule.limit
      if (limit < parts) throw limitError('ERR_MILLRACE_INVALID_OPTION', rule, limit, parts)
      return Math.floor(limit / parts)
    })
  }

  get #countsRefused(): boolean {
    return this.rules.some(({ rule }) => countsRefusals(rule))
  }

  #unit(index: number): number {
    return this.rules[index]!.rule.unit ?? 1
  }
}

const wholeOf = (asked: Asked): Asked => ({ ...asked, key: partKey(asked.key, undefined) })

function limitError(
  code: 'ERR_MILLRACE_INVALID_OPTION' | 'ERR_MILLRACE_INVALID_RULE',
  { name, unit = 1 }: RemoteRule['rule'],
  limit: number,
  parts: number,
): MillraceError {
  const expected = `at least ${parts * unit}: each of ${parts} parts of a key needs a unit of '${name}'`
  return new MillraceError(code, 'limit', limit * unit, expected)
}
