import type { DecisionSource } from '../core/decision-source.js'
import type { ErrorCode } from '../core/errors.js'
import type { CallLimit } from '../engines/engine.js'
import type { CountingCall } from './counting-call.js'
import type { KeyNames } from './key-names.js'
import { Outage } from './outage.js'
import { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import {
  type Asked,
  type Asking,
  type Changing,
  type Operation,
  type RemoteStore,
  type StoreCounters,
  unitsAsked,
} from './remote-store.js'
import { changedParts, checkFault, partOf, refusingOf } from './reply.js'
import { isFault, REPLY_FIELDS } from './reply-codes.js'
import type { CallTimes } from './restoring/own-charges.js'
import {
  type Changed,
  type Decided,
  type LostCharges,
  type RestoredReply,
  Restoring,
} from './restoring/restoring.js'
import { readAll } from './take-back.js'

/** Runs the calls of a {@link CountingStore}: by a script, or by transactions. Each settles by the deadline. */
export interface Runner {
  /** The most keys of a call. */
  readonly mostKeys: number
  /** Whether those must be the same key, again and again. */
  readonly hasOneKey?: boolean
  /** Decisions that were made again, because another process had changed a key meanwhile. */
  readonly retries: number
  /** Calls that were given up after too many of those. */
  readonly contended?: number
  onRecovery: () => void
  ready(): Promise<void>
  /** Rejects with an `Outage` if there is no reply in time. */
  run(call: CountingCall): Promise<readonly number[]>
  /** Forgets all keys. */
  clearAll(): Promise<void>
  /** The server has lost a value. */
  noteLoss(): void
  close(): Promise<void>
}

export interface CountingPlan {
  readonly owner: object
  readonly rules: readonly RemoteRule[]
  readonly names: Pick<KeyNames, 'of'>
  /** A test's time in milliseconds; 0: that of the store. */
  readonly time: () => number
  readonly maxKeys: number
  /** Of the decisions. @default 'redis' */
  readonly source?: DecisionSource
  /** The code of the error of a value that can't be read. @default 'ERR_MILLRACE_REDIS_VALUE' */
  readonly valueError?: ErrorCode
}

/** A store that has a reply of numbers for each call: of a script, or of the decider in `values/`. */
export class CountingStore implements RemoteStore {
  protected readonly plan: CountingPlan
  readonly #runner: Runner
  /** @internal For groups: own charges are noted where they can be restored. */
  readonly restoring: Restoring
  #latestMs = 0
  rules: readonly RemoteRule[]
  onRecovery: () => void = () => {}

  constructor(plan: CountingPlan, runner: Runner) {
    this.plan = plan
    this.#runner = runner
    this.rules = plan.rules
    this.restoring = new Restoring(this, plan.maxKeys)
    runner.onRecovery = () => this.onRecovery()
  }

  get counters(): StoreCounters {
    const { retries, contended } = this.#runner
    return { restored: this.restoring.restored, retries, ...(contended !== undefined && { contended }) }
  }

  ready(): Promise<void> {
    return this.#runner.ready()
  }

  close(): Promise<void> {
    return this.#runner.close()
  }

  divide(asked: readonly Asked[]): number[][] {
    const { mostKeys, hasOneKey } = this.#runner
    const calls: number[][] = []
    const open = new Map<string, number[]>()
    for (const [i, { key }] of asked.entries()) {
      const together = hasOneKey ? key : ''
      let call = open.get(together)
      if (call === undefined || call.length === mostKeys) {
        call = []
        calls.push(call)
        open.set(together, call)
      }
      call.push(i)
    }
    return calls
  }

  chargedKeys(): readonly string[] {
    return this.restoring.keys()
  }

  async clearAll(): Promise<void> {
    await this.#runner.clearAll()
    this.restoring.forget()
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const { rules } = this
    const limits = this.unitLimits(limit)
    const costs = asked.flatMap((each) => unitsAsked(each, rules))
    const sentMs = this.nowMs()
    const reply = await this.run(op, asked, costs, [], limits)
    const times = { sentMs, receivedMs: this.nowMs() }
    let next = 0
    return readAll(this, asked, ({ key, cost, free }) => {
      const at = next
      next += isFault(reply[at]!) ? 1 : REPLY_FIELDS * rules.length
      this.check(reply[at]!, key)
      const parts = rules.map((rule, i) => partOf(rule, limits?.[i], reply, at + REPLY_FIELDS * i))
      const refusing = refusingOf(rules, cost, limits, parts)
      const requested = { owner: this.plan.owner, key, cost, limits }
      const decision = new RemoteDecision(requested, this.plan.source ?? 'redis', parts, refusing)
      this.noteDecided(op, { key, cost, limits, free, parts }, times)
      return decision
    })
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    const { rules } = this
    const sentMs = this.nowMs()
    const reply = await this.run(op, [{ key }], units, more, limits)
    this.check(reply[0]!, key)
    const parts = changedParts(rules.length, reply)
    const ageMs = op === 'penalizeAgo' ? Number(more[0]) : 0
    const times = { sentMs, receivedMs: this.nowMs() }
    this.noteChanged(op, { key, units, limits, parts, receipts: more, ageMs }, times)
    return parts.map(({ result }, i) => result * (rules[i]!.rule.unit ?? 1))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const { rules } = this
    const times = rules.map(() => ms)
    const reply = await this.run('usage', [{ key }], times, [String(index + 1)])
    this.check(reply[0]!, key)
    return reply[0]! * (rules[index]!.rule.unit ?? 1)
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.rules[i]!.rule.unit ?? 1))
  }

  noteLoss(): void {
    this.#runner.noteLoss()
  }

  async sendAgain(key: string, lost: readonly LostCharges[]): Promise<RestoredReply> {
    const { mostKeys } = this.#runner
    const sentMs = this.nowMs()
    const parts: RestoredReply['parts'][number][] = []
    for (let from = 0; from < lost.length; from += mostKeys) {
      const some = lost.slice(from, from + mostKeys)
      const units = some.flatMap((each) => each.units)
      const ages = some.map(({ ageMs }) => String(ageMs))
      const keys = some.map(() => ({ key }))
      const reply = await this.run('penalizeAgo', keys, units, ages).catch((error: unknown) => {
        throw from > 0 && error instanceof Outage ? new Outage(error.cause, true) : error
      })
      this.check(reply[0]!, key)
      parts.push(...some.map((_, at) => changedParts(this.rules.length, reply, at)))
    }
    return { parts, times: { sentMs, receivedMs: this.nowMs() } }
  }

  protected noteDecided(op: Asking, decided: Decided, times: CallTimes): void {
    this.restoring.decided(op, decided, times)
  }

  protected noteChanged(op: Changing, changed: Changed, times: CallTimes): void {
    this.restoring.changed(op, changed, times)
  }

  /** The clock of this process, or the latest time of the test. */
  nowMs(): number {
    this.#latestMs = Math.max(this.#latestMs, this.plan.time() || performance.now())
    return this.#latestMs
  }

  protected check(first: number, key: string): void {
    checkFault(first, key, this.plan.valueError)
  }

  protected run(
    op: Operation,
    asked: readonly Pick<Asked, 'key'>[],
    costs: readonly number[],
    more: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<readonly number[]> {
    const { names, time } = this.plan
    const all = asked.flatMap(({ key }) => names.of(key))
    return this.#runner.run({ op, timeMs: time(), rules: this.rules, limits, names: all, costs, more })
  }
}
