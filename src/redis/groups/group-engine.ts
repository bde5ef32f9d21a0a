import { MillraceError } from '../../core/errors.js'
import { isEnforced } from '../../core/verdict.js'
import type { CallLimit } from '../../engines/engine.js'
import { KeyNames } from '../../remote/key-names.js'
import type { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import { type Asked, type Asking, type Changing, unitsAsked } from '../../remote/remote-store.js'
import type { CallTimes } from '../../remote/restoring/own-charges.js'
import type { Changed, Decided } from '../../remote/restoring/restoring.js'
import { slotOf } from '../clients/slots.js'
import { StrictEngine } from '../packed/strict-engine.js'
import { strictScript } from '../packed/strict-script.js'
import { scriptOf } from '../script.js'
import { checkMemberOpen, type RedisMember, rulesOf } from './redis-group-member.js'

/** The keys of a group's request, one of each member, as the one key of a limiter with the rules of all. */
export const joinedKey = (keys: readonly string[]): string => JSON.stringify(keys)
export const keysIn = (joined: string): string[] => JSON.parse(joined)

/** The names of all rules of all members: of each rule, that of its member's key. */
class GroupNames extends KeyNames {
  readonly #members: readonly RedisMember[]

  constructor(members: readonly RedisMember[]) {
    super('', [])
    this.#members = members
  }

  override of(joined: string): string[] {
    const keys = keysIn(joined)
    return this.#members.flatMap(({ names }, i) => names.of(keys[i]!))
  }
}

/** The same call by the clock of a member. In a test's time they differ. */
function at(engine: StrictEngine, { sentMs, receivedMs }: CallTimes): CallTimes {
  const nowMs = engine.nowMs()
  return { sentMs: nowMs - (receivedMs - sentMs), receivedMs: nowMs }
}

/** Decides by the rules of all members in one call of the script, through the connection of the first one. */
export class GroupEngine extends StrictEngine {
  readonly #members: readonly RedisMember[]
  readonly #isCluster: boolean
  readonly #names: GroupNames
  #latest: readonly (readonly RemoteRule[])[]

  constructor(owner: object, members: readonly RedisMember[]) {
    const [{ channel, plan }] = members as [RedisMember]
    const names = new GroupNames(members)
    const { onRecovery } = channel
    const rules = members.flatMap(rulesOf)
    const script = scriptOf(strictScript(rules, plan.testTime !== undefined))
    const { testTime, maxKeys } = plan
    const time = () => testTime?.() ?? 0
    const clear = async () => void (await Promise.all(members.map(({ engine }) => engine.clearAll())))
    super({ owner, rules, names, time, maxKeys }, channel, clear, script)
    channel.onRecovery = onRecovery // it stays the first member's
    this.#members = members
    this.#isCluster = channel.connection.isCluster
    this.#names = names
    this.#latest = members.map(({ engine }) => engine.rules)
  }

  override async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    for (const { key } of asked) this.#prepare(key)
    // A refusal because of a limit below the cost is charged in no member.
    const isAbove = asked.some((each) => this.#isAbove(each, this.unitLimits(limit)))
    return super.ask(op === 'check' && isAbove ? 'try' : op, asked, limit)
  }

  override async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more?: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    this.#prepare(key)
    return super.change(op, key, units, more, limits)
  }

  /** Own charges are those of the members: each knows all charges of its keys. */
  protected override noteDecided(op: Asking, decided: Decided, times: CallTimes): void {
    const { key, cost, costs, limits, free, parts } = decided
    for (const { engine, key: own, from, to } of this.#shares(key)) {
      const share = {
        ...{ key: own, cost: costs?.[from] ?? cost, limits: limits?.slice(from, to) },
        ...{ free: free?.slice(from, to), parts: parts.slice(from, to) },
      }
      engine.restoring.decided(op, share, at(engine, times))
    }
  }

  protected override noteChanged(op: Changing, changed: Changed, times: CallTimes): void {
    const { key, units, limits, parts, receipts, ageMs } = changed
    for (const { engine, key: own, from, to } of this.#shares(key)) {
      const share = {
        ...{ key: own, units: units.slice(from, to), limits: limits?.slice(from, to), ageMs },
        ...{ parts: parts.slice(from, to), receipts: receipts.slice(2 * from, 2 * to) },
      }
      engine.restoring.changed(op, share, at(engine, times))
    }
  }

  /** The key of each member, and the indices of its rules. */
  #shares(joined: string) {
    let to = 0
    return keysIn(joined).map((key, i) => {
      const { engine } = this.#members[i]!
      const from = to
      to += engine.rules.length
      return { engine, key, from, to }
    })
  }

  /** The connection is the first member's. */
  override async close(): Promise<void> {}

  /** Whether the limit of an enforced rule is below the cost. */
  #isAbove(asked: Asked, limits: readonly (number | undefined)[] | undefined): boolean {
    const units = unitsAsked(asked, this.rules)
    return this.rules.some(({ rule }, i) => isEnforced(rule) && units[i]! > (limits?.[i] ?? rule.limit))
  }

  /** @throws MillraceError for a closed member, and for keys that one call can't have */
  #prepare(joined: string): void {
    for (const member of this.#members) checkMemberOpen(member)
    if (this.#members.some(({ engine }, i) => engine.rules !== this.#latest[i])) {
      this.#latest = this.#members.map(({ engine }) => engine.rules)
      this.rules = this.#members.flatMap(rulesOf) // a limit has changed
    }
    if (!this.#isCluster) return
    const slots = new Set(this.#names.of(joined).map(slotOf))
    if (slots.size === 1) return
    const expected = 'the same key for all members: in a Cluster, only keys of one slot are decided together'
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', 'keys of different slots', expected)
  }
}
