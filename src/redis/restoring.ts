import { LRUCache } from 'lru-cache'
import {
  type AgedUnits,
  BucketCharges,
  type CallTimes,
  type OwnCharges,
  WindowCharges,
} from './own-charges.js'
import type { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import { BIRTH_RANGE_MS } from './script-codes.js'

/** Charges to send again: so many units in each rule, charged so long ago. */
export interface LostCharges {
  readonly units: readonly number[]
  readonly ageMs: number
}

const refundsOf = (birth: number): number => Math.floor(birth / BIRTH_RANGE_MS)
const bornMsOf = (birth: number): number => birth % BIRTH_RANGE_MS

/**
 * Finds values that a server has lost: by a restart without its data, an eviction, a flush, or a failover to a
 * replica that did not have them yet. A value bears its birth. If this process has charged a value that cannot
 * have expired, and the key now has a value that was born at another time, the first one was lost. Then this
 * process sends its own charges again, once. The other processes send theirs.
 *
 * A refund by key and `clear` keep the birth and count up the refunds in it, so nobody takes them for a loss. They
 * end what can be restored of the charges before them. A token bucket is born again whenever it is charged
 * after it was full; `BucketCharges` argues why no charge of a process counts then.
 */
export class Restoring {
  readonly #own: LRUCache<string, (OwnCharges | undefined)[]>

  /** @param maxKeys the keys whose charges are known, those charged last */
  constructor(maxKeys: number) {
    this.#own = new LRUCache({ max: maxKeys })
  }

  /**
   * Notes a decision of Redis.
   * @returns what has been lost; undefined: nothing
   */
  observe(
    rules: readonly RemoteRule[],
    decision: RemoteDecision,
    times: CallTimes,
  ): readonly LostCharges[] | undefined {
    const { key, cost, limits } = decision.requested
    const charges = this.#own.get(key)
    const lost = charges && this.#lostOf(charges, decision, times.receivedMs)
    const isCharged = decision.parts.some(({ receipt }) => receipt !== undefined)
    if (!isCharged) return lost
    const own = charges ?? rules.map(() => undefined)
    for (const [i, { receipt, birth, resetMs }] of decision.parts.entries()) {
      if (receipt === undefined) continue
      const { rule } = rules[i]!
      own[i] ??=
        rule.algorithm === 'token-bucket'
          ? new BucketCharges(birth!, rule.windowMs)
          : new WindowCharges(birth!, rule.windowMs)
      const units = Math.ceil(cost / (rule.unit ?? 1))
      own[i].add({ units, limit: limits?.[i] ?? rule.limit, resetMs, ...times })
    }
    if (charges === undefined) this.#own.set(key, own)
    return lost
  }

  /** A charge of so many units has been given back. */
  givenBack(key: string, units: readonly number[]): void {
    for (const [i, own] of (this.#own.get(key) ?? []).entries()) own?.giveBack(units[i]!)
  }

  /** The counts of a key have been forgotten, or those of all keys. */
  forget(key?: string): void {
    if (key === undefined) this.#own.clear()
    else this.#own.delete(key)
  }

  /** Forgets the charges to values that are no more. Returns those that had not expired. */
  #lostOf(charges: (OwnCharges | undefined)[], { parts }: RemoteDecision, nowMs: number) {
    let lost: LostCharges[] | undefined
    for (const [i, own] of charges.entries()) {
      const birth = parts[i]!.birth!
      if (own === undefined || own.birth === birth) continue
      charges[i] = undefined
      if (refundsOf(birth) > 0 || bornMsOf(birth) === bornMsOf(own.birth)) continue
      const aged = own.counting(nowMs).map((each) => inRule(each, i, charges.length))
      if (aged.length > 0) lost = [...(lost ?? []), ...aged]
    }
    return lost
  }
}

function inRule({ units, ageMs }: AgedUnits, index: number, rules: number): LostCharges {
  return { units: Array.from({ length: rules }, (_, i) => (i === index ? units : 0)), ageMs }
}
