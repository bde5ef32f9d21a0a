import { mostPenalty } from '../api/checks.js'
import type { Limiter } from '../api/limiter.js'
import { ALGORITHM_ROWS, type OwnOption, rangeOf } from '../core/algorithms.js'
import type { Decision } from '../core/decision.js'
import { ruleFieldsOf } from '../core/decision-fields.js'
import { MillraceError } from '../core/errors.js'
import { windowOptions } from '../core/rule-options.js'
import { isUncounted } from '../core/uncounted-limit.js'
import { unitsOf } from '../core/units.js'
import { enforcementOf } from '../core/verdict.js'
import { createLimiter } from '../create/create.js'
import type { CallLimit } from '../engines/engine.js'
import { Outage } from './outage.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked } from './remote-store.js'

/** Charges of this process that Redis does not know yet. */
interface Spent {
  readonly firstMs: number
  lastMs: number
  /** Of each rule. */
  readonly units: number[]
}

/** Tells Redis of charges that are so old. Rejects with an {@link Outage} if it does not answer. */
export type Report = (key: string, units: readonly number[], ageMs: number) => Promise<unknown>

/** Charges of a key in the same tenth of a second are reported together, as of the last of them. */
const REPORTED_TOGETHER_MS = 100
/** Reports that wait for a reply at the same time. */
const REPORTS_AT_ONCE = 64
/** While one primary of a Cluster is down, what its keys owe is tried again after this, so many keys at a time. */
const PAUSE_MS = 1_000
const KEYS_PER_REPORT = 10_000

/**
 * Decides by this process's share of the limit while Redis does not answer. It counts always, so an outage
 * begins with what the process has admitted already.
 */
export class LocalShare {
  readonly #limiter: Limiter
  readonly #rules: readonly RemoteRule['rule'][]
  readonly #nodes: number
  readonly #maxKeys: number
  readonly #nowMs: () => number
  readonly #longestMs: number
  /** The most that can be counted at once. */
  readonly #mostPenalty: number
  /** What is to be reported, by keys. Of more than `maxKeys` keys, the oldest goes. */
  readonly #owed = new Map<string, Spent[]>()
  #isReporting = false
  /** When what could not be sent is tried again. */
  #nextMs = 0

  /**
   * @param nodes the number of processes that share the limits: each rule's limit is at least that
   * @param testTime a test's time in milliseconds, instead of the machine's
   */
  constructor(rules: readonly RemoteRule[], nodes: number, maxKeys: number, testTime?: () => number) {
    this.#rules = rules.map(({ rule }) => rule)
    this.#nodes = nodes
    this.#maxKeys = maxKeys
    this.#nowMs = testTime ?? (() => performance.now())
    this.#longestMs = Math.max(...this.#rules.map(({ windowMs }) => windowMs))
    const units = this.#rules.map(({ unit }) => unit)
    this.#mostPenalty = mostPenalty({ names: [], units, ranges: this.#rules.map(rangeOf) })
    const shares = this.#rules.map((rule) => ({
      name: rule.name,
      limit: this.#shareOf(rule.limit) * (rule.unit ?? 1),
      ...windowOptions(rule),
      algorithm: rule.algorithm,
      ...(has(rule, 'granularity') && { granularity: rule.windowMs / rule.buckets }),
      ...(has(rule, 'maxLimit') && { maxLimit: rule.units * (rule.unit ?? 1) }),
      ...(rule.unit !== undefined && { unit: rule.unit }),
      ...enforcementOf(rule),
    }))
    this.#limiter = createLimiter({ rules: shares, maxKeys, ...(testTime && { clock: { now: testTime } }) })
  }

  /** Counts what Redis has admitted. */
  count({ key, cost }: Asked): void {
    if (cost > 0) this.#limiter.penalize(key, Math.min(cost, this.#mostPenalty))
  }

  /** Takes back what was counted. */
  refund(key: string, cost: number): void {
    this.#limiter.refund(key, cost)
  }

  /**
   * Changes this process's share of a limit, which is in units.
   * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if it is less than one unit
   */
  update(index: number, limit: number): void {
    const { name, unit = 1 } = this.#rules[index]!
    checkShare(limit, unit, this.#nodes)
    this.#limiter.update(name, { limit: this.#shareOf(limit) * unit })
  }

  /** Undefined if this process has no share of a limit of the call. */
  decide(
    owner: object,
    asked: Asked,
    limit: CallLimit | undefined,
    charges: boolean,
  ): RemoteDecision | undefined {
    const { key, cost } = asked
    const limits = typeof limit === 'number' ? [limit] : limit
    const shares = limits?.map((own, i) => this.#ownShare(own, i))
    if (shares?.some((share, i) => share === 0 && limits![i] !== 0)) return undefined
    const options = shares && { limit: shares.length === 1 ? shares[0]! : this.#byName(shares) }
    const decision = charges
      ? this.#limiter.check(key, cost, options)
      : this.#limiter.peek(key, cost, options)
    if (charges && decision.allowed && cost > 0) this.#owe(asked)
    return remote(owner, asked, decision)
  }

  /** Whether there is something to report now. */
  get owes(): boolean {
    return this.#owed.size > 0 && performance.now() >= this.#nextMs
  }

  /** Reports what was admitted. What was not sent comes last in the next report. */
  async report(send: Report): Promise<void> {
    if (this.#isReporting) return
    this.#isReporting = true
    const all: [key: string, spent: Spent][] = []
    let keys = 0
    for (const [key, spent] of this.#owed) {
      if (++keys > KEYS_PER_REPORT) break
      this.#owed.delete(key)
      for (const one of spent) all.push([key, one])
    }
    this.#nextMs = 0
    for (let at = 0; at < all.length; at += REPORTS_AT_ONCE) {
      const some = all.slice(at, at + REPORTS_AT_ONCE)
      await Promise.all(some.map(([key, spent]) => this.#reportOne(send, key, spent)))
    }
    this.#isReporting = false
  }

  async close(): Promise<void> {
    await this.#limiter.close()
  }

  async #reportOne(send: Report, key: string, spent: Spent): Promise<void> {
    try {
      await send(key, spent.units, Math.max(0, Math.floor(this.#nowMs() - spent.lastMs)))
    } catch (error) {
      // Of another error, such as that of a damaged value, the next check of the key tells.
      if (!(error instanceof Outage) || error.mayBeCharged) return
      this.#owed.set(key, [spent, ...(this.#owed.get(key) ?? [])])
      this.#nextMs = performance.now() + PAUSE_MS
    }
  }

  #shareOf(limit: number): number {
    return Math.floor(limit / this.#nodes)
  }

  #ownShare(limit: number | undefined, index: number): number | undefined {
    const { unit = 1 } = this.#rules[index]!
    return limit === undefined || isUncounted(limit) ? limit : this.#shareOf(limit / unit) * unit
  }

  #byName(limits: readonly (number | undefined)[]): Record<string, number> {
    const own = this.#rules.flatMap(({ name }, i) =>
      limits[i] === undefined ? [] : [[name, limits[i]] as const],
    )
    return Object.fromEntries(own)
  }

  #owe({ key, cost, free }: Asked): void {
    const nowMs = this.#nowMs()
    const units = this.#rules.map(({ unit }, i) => (free?.[i] ? 0 : unitsOf(cost, unit ?? 1)))
    if (units.every((none) => none === 0)) return
    const spent = this.#owed.get(key) ?? []
    if (spent.length === 0) this.#makeRoom()
    while (spent.length > 0 && nowMs - spent[0]!.lastMs > this.#longestMs) spent.shift()
    this.#owed.set(key, spent)
    const last = spent.at(-1)
    if (last === undefined || nowMs - last.firstMs >= REPORTED_TOGETHER_MS)
      spent.push({ firstMs: nowMs, lastMs: nowMs, units })
    else {
      last.lastMs = nowMs
      for (const [i, more] of units.entries()) last.units[i]! += more
    }
  }

  #makeRoom(): void {
    const [oldest] = this.#owed.keys()
    if (this.#owed.size >= this.#maxKeys) this.#owed.delete(oldest!)
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if not every process has one unit of a limit */
export function checkShare(limit: number, unit: number, nodes: number): void {
  if (limit >= nodes) return
  const expected = `at least ${nodes * unit}: each of ${nodes} processes needs a share of it`
  throw new MillraceError('ERR_MILLRACE_INVALID_RULE', 'limit', limit * unit, expected)
}

function remote(owner: object, { key, cost }: Asked, decision: Decision): RemoteDecision {
  const parts = decision.rules.map((part): RemotePart => ({ ...ruleFieldsOf(part), receipt: undefined }))
  const refusing = decision.allowed ? -1 : parts.findIndex(({ rule }) => rule === decision.rule)
  return new RemoteDecision({ owner, key, cost }, 'local', parts, refusing)
}

const has = ({ algorithm }: RemoteRule['rule'], option: OwnOption): boolean =>
  ALGORITHM_ROWS[algorithm].options.includes(option)
