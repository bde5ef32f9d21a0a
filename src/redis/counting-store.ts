import { MillraceError } from '../core/errors.js'
import type { CallLimit } from '../engines/engine.js'
import type { Command } from './connection.js'
import type { CountingCall, Operation } from './counting-call.js'
import type { KeyNames } from './key-names.js'
import { Outage } from './outage.js'
import { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore, StoreCounters } from './remote-store.js'
import { type LostCharges, Restoring } from './restoring.js'
import { isFault, REPLY_FIELDS } from './script-codes.js'
import { checkFault, partOf, refusingOf } from './script-reply.js'
import { readAll } from './take-back.js'

/** Runs the calls of a {@link CountingStore}: by a script, or by transactions. Each settles by the deadline. */
export interface Runner {
  /** The most keys of a call. */
  readonly mostKeys: number
  /** The calls that were decided again, because another process had changed a key meanwhile. */
  readonly retries: number
  onRecovery: () => void
  ready(): Promise<void>
  /** Rejects with an `Outage` if there is no reply in time. */
  run(call: CountingCall): Promise<readonly number[]>
  /** Sends commands of its own to each primary. */
  onPrimaries(act: (send: (command: Command) => Promise<unknown>) => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** Forgets all keys of a pattern on one server. */
export type ClearNames = (
  send: (command: Command) => Promise<unknown>,
  pattern: string,
  longestMs: number,
) => Promise<void>

export interface CountingPlan {
  readonly owner: object
  readonly rules: readonly RemoteRule[]
  readonly names: KeyNames
  /** A test's time in milliseconds; 0: that of the server. */
  readonly time: () => number
  readonly maxKeys: number
  readonly clear: ClearNames
}

/** The store of the sliding log and of the sliding counter. Their values and scripts differ, their calls do not. */
export class CountingStore implements RemoteStore {
  readonly #plan: CountingPlan
  readonly #runner: Runner
  readonly #restoring: Restoring
  #restored = 0
  #latestMs = 0
  rules: readonly RemoteRule[]
  onRecovery: () => void = () => {}

  constructor(plan: CountingPlan, runner: Runner) {
    this.#plan = plan
    this.#runner = runner
    this.rules = plan.rules
    this.#restoring = new Restoring(plan.maxKeys)
    runner.onRecovery = () => this.onRecovery()
  }

  get counters(): StoreCounters {
    return { restored: this.#restored, retries: this.#runner.retries }
  }

  ready(): Promise<void> {
    return this.#runner.ready()
  }

  close(): Promise<void> {
    return this.#runner.close()
  }

  divide(asked: readonly Asked[]): number[][] {
    const { mostKeys } = this.#runner
    const calls: number[][] = []
    for (let i = 0; i < asked.length; i++) {
      if (i % mostKeys === 0) calls.push([])
      calls.at(-1)!.push(i)
    }
    return calls
  }

  async clearAll(): Promise<void> {
    const { clear, names } = this.#plan
    const longestMs = Math.max(...this.rules.map(({ windowMs }) => windowMs))
    await this.#runner.onPrimaries((send) => clear(send, names.pattern, longestMs))
    this.#restoring.forget()
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const { rules } = this
    const limits = this.unitLimits(limit)
    const costs = asked.flatMap(({ cost }) => rules.map(({ rule }) => Math.ceil(cost / (rule.unit ?? 1))))
    const sentMs = this.#nowMs()
    const reply = await this.#run(op, asked, costs, [], limits)
    const times = { sentMs, receivedMs: this.#nowMs() }
    let next = 0
    return readAll(this, asked, ({ key, cost }) => {
      const at = next
      next += isFault(reply[at]!) ? 1 : REPLY_FIELDS * rules.length
      checkFault(reply[at]!, key)
      const parts = rules.map((rule, i) => partOf(rule, limits?.[i], reply, at + REPLY_FIELDS * i))
      const refusing = refusingOf(rules, cost, limits, parts)
      const requested = { owner: this.#plan.owner, key, cost, limits }
      const decision = new RemoteDecision(requested, 'redis', parts, refusing)
      const lost = this.#restoring.observe(rules, decision, times)
      if (lost !== undefined) void this.#restore(key, lost)
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
    const reply = await this.#run(op, [{ key }], units, more, limits)
    checkFault(reply[0]!, key)
    if (op === 'g') this.#restoring.givenBack(key, reply)
    else if (op === 'r' || op === 'x') this.#restoring.forget(key)
    return reply.map((amount, i) => amount * (rules[i]!.rule.unit ?? 1))
  }

  async usage(key: string, ms: number, index: number): Promise<number> {
    const { rules } = this
    const times = rules.map(() => ms)
    const reply = await this.#run('w', [{ key }], times, [String(index + 1)])
    checkFault(reply[0]!, key)
    return reply[0]! * (rules[index]!.rule.unit ?? 1)
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.rules[i]!.rule.unit ?? 1))
  }

  /** Sends charges again that the server has lost. */
  async #restore(key: string, lost: readonly LostCharges[]): Promise<void> {
    const { mostKeys } = this.#runner
    try {
      for (let at = 0; at < lost.length; at += mostKeys) {
        const some = lost.slice(at, at + mostKeys)
        const units = some.flatMap((each) => each.units)
        const ages = some.map(({ ageMs }) => String(ageMs))
        await this.#run(
          'a',
          some.map(() => ({ key })),
          units,
          ages,
        )
      }
      this.#restored++
    } catch (error) {
      // They are sent once: another outage may have lost the reply. Other errors show at the key's next decision.
      if (!(error instanceof Outage || error instanceof MillraceError)) throw error
    }
  }

  /** The clock of this process, or the latest time of the test. */
  #nowMs(): number {
    this.#latestMs = Math.max(this.#latestMs, this.#plan.time() || performance.now())
    return this.#latestMs
  }

  #run(
    op: Operation,
    asked: readonly { readonly key: string }[],
    costs: readonly number[],
    more: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<readonly number[]> {
    const { names, time } = this.#plan
    const all = asked.flatMap(({ key }) => names.of(key))
    return this.#runner.run({ op, timeMs: time(), rules: this.rules, limits, names: all, costs, more })
  }
}
