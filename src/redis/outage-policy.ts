import type { Decision } from '../core/decision.js'
import { createLimiter } from '../create.js'
import type { CallLimit } from '../engines/engine.js'
import type { Limiter } from '../limiter.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked } from './strict-engine.js'

/** The pause that a refusal by outage asks for: the longest pause between two attempts to reach Redis. */
const RETRY_MS = 1_000

/** A decision that says nothing about the client. */
export function byOutage(
  owner: object,
  { key, cost }: Asked,
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] | undefined,
  allowed: boolean,
): RemoteDecision {
  const parts = rules.map(({ rule }, i): RemotePart => {
    const limit = (limits?.[i] ?? rule.limit) * (rule.unit ?? 1)
    return {
      rule: rule.name,
      allowed: allowed || rule.shadow === true,
      limit,
      remaining: allowed ? limit : 0,
      retryAfterMs: allowed || rule.shadow ? 0 : RETRY_MS,
      resetMs: allowed ? 0 : RETRY_MS,
      receipt: undefined,
    }
  })
  const refusing = allowed ? -1 : parts.findIndex((part) => !part.allowed)
  return new RemoteDecision({ owner, key, cost }, 'outage', parts, refusing)
}

/** Charges of this process while Redis did not answer. */
export interface Spent {
  readonly atMs: number
  units: number
}

/** Charges of a key in the same tenth of a second are reported together, as of the last of them. */
const REPORTED_TOGETHER_MS = 100

/**
 * Decides by this process's share of the limit while Redis does not answer. It counts always, so an outage
 * begins with what the process has admitted already.
 */
export class LocalShare {
  readonly #limiter: Limiter
  readonly #spent = new Map<string, Spent[]>()

  /** @param shares the rules, each with this process's share of its limit */
  constructor(shares: readonly RemoteRule['rule'][], maxKeys: number) {
    const rules = shares.map((rule) => ({
      name: rule.name,
      limit: rule.limit * (rule.unit ?? 1),
      window: rule.windowMs,
      algorithm: rule.algorithm,
      ...(rule.algorithm === 'sliding-window' && { granularity: rule.windowMs / rule.buckets }),
      ...(rule.algorithm === 'fixed-window' && rule.align !== 'none' && { align: rule.align }),
      ...(rule.unit !== undefined && { unit: rule.unit }),
      ...(rule.shadow && { shadow: true }),
    }))
    this.#limiter = createLimiter({ rules, maxKeys })
  }

  /** Counts what Redis has admitted. */
  count({ key, cost }: Asked): void {
    if (cost > 0) this.#limiter.penalize(key, cost)
  }

  /** Takes back what was counted. */
  refund(key: string, cost: number): void {
    this.#limiter.refund(key, cost)
  }

  /** Changes this process's share of a limit. */
  update(rule: string, limit: number): void {
    this.#limiter.update(rule, { limit })
  }

  decide(owner: object, asked: Asked, limit: CallLimit | undefined, charges: boolean): RemoteDecision {
    const { key, cost } = asked
    const names = this.#limiter.rules.map(({ name }) => name)
    const options = limitOptions(names, limit)
    const decision = charges
      ? this.#limiter.check(key, cost, options)
      : this.#limiter.peek(key, cost, options)
    if (charges && decision.allowed && cost > 0) this.#note(key, cost)
    return remote(owner, asked, decision)
  }

  /** What was admitted since the last call, for a report to Redis. */
  take(): [key: string, spent: Spent[]][] {
    const all = [...this.#spent]
    this.#spent.clear()
    return all
  }

  /** Keeps what could not be reported. */
  keep(key: string, spent: Spent): void {
    this.#spent.set(key, [spent, ...(this.#spent.get(key) ?? [])])
  }

  async close(): Promise<void> {
    await this.#limiter.close()
  }

  #note(key: string, units: number): void {
    const atMs = performance.now()
    const spent = this.#spent.get(key)
    const last = spent?.at(-1)
    if (spent === undefined) this.#spent.set(key, [{ atMs, units }])
    else if (last !== undefined && atMs - last.atMs < REPORTED_TOGETHER_MS) last.units += units
    else spent.push({ atMs, units })
  }
}

function limitOptions(names: readonly string[], limit: CallLimit | undefined) {
  if (limit === undefined) return undefined
  if (typeof limit === 'number') return { limit }
  const own = names.flatMap((name, i) => (limit[i] === undefined ? [] : [[name, limit[i]] as const]))
  return { limit: Object.fromEntries(own) }
}

function remote(owner: object, { key, cost }: Asked, decision: Decision): RemoteDecision {
  const parts = decision.rules.map((part): RemotePart => {
    const { rule, allowed, limit, remaining, retryAfterMs, resetMs, shadow } = part
    const figures = { rule, allowed, limit, remaining, retryAfterMs, resetMs, receipt: undefined }
    return shadow === undefined ? figures : { ...figures, shadow }
  })
  const refusing = decision.allowed ? -1 : parts.findIndex(({ rule }) => rule === decision.rule)
  return new RemoteDecision({ owner, key, cost }, 'local', parts, refusing)
}
