import type { LRUCache } from 'lru-cache'
import { MillraceError } from '../../core/errors.js'
import { lruCache } from '../../core/lru-cache.js'
import { unitsOf } from '../../core/units.js'
import { Outage } from '../outage.js'
import { hasCounted, type RemotePart } from '../remote-decision.js'
import type { RemoteRule } from '../remote-rule.js'
import type { Asking, Changing } from '../remote-store.js'
import type { ChangedPart } from '../reply.js'
import { BucketCharges, type CallTimes, lifeOf, type OwnCharge, ownCharges } from './own-charges.js'

/** Charges to send again: so many units in each rule, charged so long ago. */
export interface LostCharges {
  readonly units: readonly number[]
  readonly ageMs: number
}

/** A reply to lost charges: of each what each rule says, in their order. */
export interface RestoredReply {
  readonly parts: readonly (readonly ChangedPart[])[]
  readonly times: CallTimes
}

/** What restoring needs of a store. */
export interface RestoringStore {
  readonly rules: readonly RemoteRule[]
  /** The clock of this process. */
  nowMs(): number
  /** The server has lost a value. */
  noteLoss(): void
  /** Sends charges of a key again, in one call. Rejects with an {@link Outage} if there is no reply in time. */
  sendAgain(key: string, lost: readonly LostCharges[]): Promise<RestoredReply>
}

/** A decision of the store on a key, as far as its counts are concerned. */
export interface Decided {
  readonly key: string
  readonly cost: number
  /** The cost in each rule, where they differ. */
  readonly costs?: readonly number[] | undefined
  /** Of the call, in units. */
  readonly limits: readonly (number | undefined)[] | undefined
  /** Rules that the request was not counted by. */
  readonly free?: readonly boolean[] | undefined
  readonly parts: readonly RemotePart[]
}

/** A change of a key by the store. */
export interface Changed {
  readonly key: string
  /** Of each rule, as the call had them. */
  readonly units: readonly number[]
  readonly limits: readonly (number | undefined)[] | undefined
  readonly parts: readonly ChangedPart[]
  /** The receipts of what was given back: two texts for each rule. */
  readonly receipts: readonly string[]
  /** How long ago the charges of the call were made. */
  readonly ageMs: number
}

type Own = ReturnType<typeof ownCharges>

/** Charges to a value that is lost. */
interface Missing {
  readonly index: number
  readonly own: Own
}

/** The charges of this process to one key. */
interface KeyCharges {
  /** By rule. */
  readonly own: (Own | undefined)[]
  missing: Missing[]
  isSending: boolean
}

/**
 * Finds values that a server has lost: by a restart without its data, an eviction, a flush, or a failover to a
 * replica that did not have them yet. A value bears its birth. If this process has charged a value that cannot
 * have expired, and the key now has a value that was born at another time, the first one was lost. Then this
 * process sends its own charges again, once. They are own charges of the new value then. The other processes send
 * theirs.
 *
 * Each reply is an observation: of a decision, a penalty, a refund, a block. A refund by key and `clear` keep the time
 * of birth and count up the refunds in it, and a value that has got less lasts as long as before: so nobody takes
 * either for a loss.
 *
 * What all processes know of a key together is what they have charged, less what they have given back. It may be more
 * than that after a refund by key or a `clear` of a process that has not charged the refunded units itself, until the
 * others have asked for the key again. It is never less.
 */
export class Restoring {
  readonly #store: RestoringStore
  readonly #maxKeys: number
  #made: LRUCache<string, KeyCharges> | undefined
  /** Values of which this process has sent its charges again. */
  restored = 0

  /** @param maxKeys the keys whose charges are known, those charged last */
  constructor(store: RestoringStore, maxKeys: number) {
    this.#store = store
    this.#maxKeys = maxKeys
  }

  /** Made when it is needed, as it reserves memory for all keys: a group's charges are known to its members. */
  get #keys(): LRUCache<string, KeyCharges> {
    this.#made ??= new (lruCache().LRUCache)({ max: this.#maxKeys })
    return this.#made
  }

  /** Notes a decision. */
  decided(op: Asking, { key, cost, limits, free, parts }: Decided, times: CallTimes): void {
    const known = this.#keys.get(key)
    const { rules } = this.#store
    let charges = known
    for (const [i, part] of parts.entries()) {
      const remote = rules[i]!
      const { rule } = remote
      const birth = part.birth!
      const limit = limits?.[i] ?? rule.limit
      const isCounted =
        part.receipt !== undefined || (op === 'check' && !free?.[i] && hasCounted(rule, part, cost, limit))
      if (charges === undefined) {
        if (!isCounted) continue
        charges = this.#newKey(key)
      }
      const isChanged = see(charges, i, birth, times.receivedMs)
      if (isCounted) {
        const units = unitsOf(cost, rule.unit ?? 1)
        const mark = part.receipt?.[0] ?? -1
        const charge = { units, limit, mark, lastsMs: part.resetMs, ageMs: 0 }
        addTo(charges, i, remote, birth, charge, times)
      }
      const own = charges.own[i]
      if (own === undefined) continue
      if (own instanceof BucketCharges) own.drainedAt(times.receivedMs + part.resetMs)
      else if (isChanged && part.remaining > 0)
        own.atMost(limit - part.remaining / (rule.unit ?? 1), countedSince(remote, part, times.receivedMs))
    }
    if (charges !== undefined && charges.missing.length > 0) void this.#restore(key, charges)
  }

  /** Notes a change. */
  changed(op: Changing, { key, units, limits, parts, receipts, ageMs }: Changed, times: CallTimes): void {
    if (op === 'clear') {
      this.forget(key)
      return
    }
    const { rules } = this.#store
    const isCharge = op === 'penalize' || op === 'penalizeAgo'
    let charges = this.#keys.get(key)
    for (const [i, { result, mark, birth, ms, left }] of parts.entries()) {
      const remote = rules[i]!
      const limit = limits?.[i] ?? remote.rule.limit
      const own = charges?.own[i]
      if (op === 'refund' && result > 0 && own !== undefined && isOfLife(own, birth))
        own.refund({ units: result, newest: mark, ageMs: ms, left }, limit, times)
      else if (op === 'giveBack' && own !== undefined && receipts[2 * i] !== '') {
        const [receipt, was] = [Number(receipts[2 * i]), Number(receipts[2 * i + 1])]
        // A value that is lost gives nothing back, but what was given back is not sent again.
        const isLost = lifeOf(birth) !== lifeOf(was) && own.birth !== undefined && own.birth === was
        own.giveBack(isLost ? units[i]! : result, receipt, limit)
      }
      if (charges !== undefined) see(charges, i, birth, times.receivedMs)
      if (!isCharge || mark < 0) continue
      charges ??= this.#newKey(key)
      addTo(charges, i, remote, birth, { units: units[i]!, limit, mark, lastsMs: ms, ageMs }, times)
    }
    if (charges !== undefined && charges.missing.length > 0) void this.#restore(key, charges)
  }

  /** The keys whose charges are known. */
  keys(): readonly string[] {
    return [...this.#keys.keys()]
  }

  /** The counts of a key have been forgotten, or those of all keys. */
  forget(key?: string): void {
    if (key === undefined) this.#keys.clear()
    else this.#keys.delete(key)
  }

  #newKey(key: string): KeyCharges {
    const charges = { own: this.#store.rules.map(() => undefined), missing: [], isSending: false }
    this.#keys.set(key, charges)
    return charges
  }

  /** Sends missing charges again, each once. What was certainly not sent goes with the next observation. */
  async #restore(key: string, charges: KeyCharges): Promise<void> {
    if (charges.isSending) return
    const { missing } = charges
    charges.missing = []
    const nowMs = this.#store.nowMs()
    const { rules } = this.#store
    const lost = missing.flatMap(({ index, own }) =>
      own.counting(nowMs, rules[index]!.rule.limit).map((aged) => ({ ...aged, index })),
    )
    if (lost.length === 0) return
    this.#store.noteLoss()
    charges.isSending = true
    let isDone = false
    try {
      const all = lost.map(({ units, ageMs, index }) => ({
        units: rules.map((_, i) => (i === index ? units : 0)),
        ageMs,
      }))
      const { parts, times } = await this.#store.sendAgain(key, all)
      for (const [at, { index, units, ageMs }] of lost.entries()) {
        const { mark, birth, ms } = parts[at]![index]!
        if (mark < 0) continue // it does not count any more
        const { limit } = rules[index]!.rule
        // No decision has its receipt. Its age is that of when it was sent.
        const charge = { units, limit, mark: -1, lastsMs: ms, ageMs: ageMs + times.receivedMs - nowMs }
        addTo(charges, index, rules[index]!, birth, charge, times)
      }
      this.restored++
      isDone = true
    } catch (error) {
      if (!(error instanceof Outage || error instanceof MillraceError)) throw error
      if (error instanceof Outage && error.mayBeCharged)
        for (const each of missing) takeForSent(charges, each)
      else charges.missing.unshift(...missing)
    }
    charges.isSending = false
    // The value to which others were charged meanwhile is lost, too.
    if (isDone && charges.missing.length > 0) void this.#restore(key, charges)
  }
}

/** Whether charges are of the life of the value with this birth. What is refunded in another life is not theirs. */
const isOfLife = (own: Own, birth: number): boolean =>
  own.birth === undefined || lifeOf(own.birth) === lifeOf(birth)

/**
 * Notes that a value has this birth: if it is another life than before, the charges of this process are missing.
 * @returns whether something was refunded by key or cleared since this process has seen it last
 */
function see(charges: KeyCharges, index: number, birth: number, nowMs: number): boolean {
  const own = charges.own[index]
  if (own === undefined || own.birth === birth) return false
  if (!isOfLife(own, birth)) {
    charges.own[index] = undefined
    if (own.exists(nowMs)) charges.missing.push({ index, own })
    return false
  }
  own.birth = birth
  return true
}

/** Since when all charges are in the figures of a part. */
function countedSince(
  { rule, windowMs }: RemoteRule,
  { resetMs, remaining, limit }: RemotePart,
  nowMs: number,
) {
  if (rule.edge !== 'smooth' || remaining === limit) return Number.NEGATIVE_INFINITY
  // Those of the window before are in them by a part. Nothing is left at the end of this window, or of the next one.
  return nowMs - (Math.ceil(resetMs / windowMs) * windowMs - resetMs)
}

function addTo(
  charges: KeyCharges,
  index: number,
  remote: RemoteRule,
  birth: number,
  charge: OwnCharge,
  times: CallTimes,
): void {
  see(charges, index, birth, times.receivedMs)
  let own = charges.own[index]
  if (own === undefined) {
    own = ownCharges(birth, remote)
    charges.own[index] = own
  }
  own.add(charge, times)
}

/** Nobody knows whether they have been charged. They count as own charges of the value that the key has next. */
function takeForSent(charges: KeyCharges, { index, own }: Missing): void {
  const present = charges.own[index]
  if (present === undefined) {
    own.birth = undefined
    charges.own[index] = own
  } else present.absorb(own as never)
}
