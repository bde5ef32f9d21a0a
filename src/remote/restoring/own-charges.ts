import { ALGORITHM_ROWS, serverOf } from '../../core/algorithms.js'
import { fullBy } from '../../core/rule-algorithms.js'
import type { RemoteRule } from '../remote-rule.js'
import { BIRTH_RANGE_MS } from '../reply-codes.js'

/** When a call was sent, and when its reply came. Redis has charged in between. */
export interface CallTimes {
  readonly sentMs: number
  readonly receivedMs: number
}

/** Charges that were made so long ago. */
export interface AgedUnits {
  readonly units: number
  readonly ageMs: number
}

/** A charge of this process, and what the reply says of it. */
export interface OwnCharge {
  readonly units: number
  /** In units. */
  readonly limit: number
  /** Of the receipt. Below 0: no decision has it, so nobody gives it back. */
  readonly mark: number
  /** How long the store keeps the value at least, from the call on. */
  readonly lastsMs: number
  /** How long ago it was made, when the reply came: or some of the time of the call longer. */
  readonly ageMs: number
}

/** A refund by key, of the oldest charges of all processes. */
export interface KeyRefund {
  readonly units: number
  /** How many of the units were charged last: in one granule, or at one time. All that is older is gone. */
  readonly newest: number
  /** How long before the call those were charged, or less. */
  readonly ageMs: number
  /** Units that count still. */
  readonly left: number
}

/** Charges of one rule that are close together. They are sent again together, as of the last of them. */
interface Group {
  units: number
  readonly firstMark: number
  /** When the first was sent. */
  readonly firstMs: number
  /** When the reply to the last one came. */
  lastMs: number
}

/** Charges of a bucket that are close together: its level in milliseconds that is theirs. */
interface Layer {
  ms: number
  /** When all of it has drained. */
  endMs: number
  readonly firstMark: number
  readonly firstMs: number
}

/** Groups of a window. */
const GROUPS = 32
/** A sliding counter counts for two windows, and a bucket that penalties have filled drains for three. */
const MOST_GROUPS = 3 * GROUPS
const MOST_LEVEL = 3

/** The life of a value: from its creation until it expires, or is lost. Refunds and `clear` do not end it. */
export const lifeOf = (birth: number): number => birth % BIRTH_RANGE_MS

/** What this process has charged to one value, so that it can be restored if the server loses it. */
abstract class OwnCharges {
  /** As this process has seen it last. Undefined: a reply that was lost has had it. */
  birth: number | undefined
  /** Until then the value has certainly not expired: no charge shortens the time that an earlier one has set. */
  #existsUntilMs = Number.NEGATIVE_INFINITY

  constructor(birth: number) {
    this.birth = birth
  }

  /** Whether the value has certainly not expired. */
  exists(nowMs: number): boolean {
    return nowMs < this.#existsUntilMs
  }

  add(charge: OwnCharge, times: CallTimes): void {
    const { sentMs, receivedMs } = times
    if (!this.exists(receivedMs)) this.forget()
    const lastsMs = Math.min(charge.lastsMs, this.longestMs)
    this.#existsUntilMs = Math.max(this.#existsUntilMs, sentMs + lastsMs)
    this.keep(charge, times, receivedMs + lastsMs)
  }

  /** The charges that count at `nowMs`, the oldest first. None if the value may have expired. */
  counting(nowMs: number, limit: number): readonly AgedUnits[] {
    return this.exists(nowMs) ? this.left(nowMs, limit) : []
  }

  /** Gives back units of the charge with this mark. */
  abstract giveBack(units: number, mark: number, limit: number): void
  /** Takes out what was refunded by key, and never more, at any later time, than left the value on the server. */
  abstract refund(refund: KeyRefund, limit: number, times: CallTimes): void
  /** Takes over the charges to another life of the value. */
  abstract absorb(other: this): void
  /** All charges have left. */
  protected abstract forget(): void
  protected abstract keep(charge: OwnCharge, times: CallTimes, endMs: number): void
  protected abstract left(nowMs: number, limit: number): readonly AgedUnits[]
  /** For how long a charge may count. */
  protected abstract get longestMs(): number
}

/** The last one that begins at this mark or before. */
const indexOfMark = (groups: readonly { readonly firstMark: number }[], mark: number): number =>
  Math.max(
    0,
    groups.findLastIndex(({ firstMark }) => firstMark <= mark),
  )

/** Charges that count for a window each, or until a fixed window ends. */
class WindowCharges extends OwnCharges {
  readonly #windowMs: number
  /** Units that are refunded together were charged within this time. */
  readonly #granuleMs: number
  protected readonly longestMs: number
  /** The oldest first. */
  #groups: Group[] = []

  constructor(birth: number, { rule, windowMs, parts }: RemoteRule) {
    super(birth)
    this.#windowMs = windowMs
    const server = serverOf(rule.algorithm)
    this.#granuleMs = server.granuleMs(windowMs, parts)
    this.longestMs = server.longestMs(windowMs, parts)
  }

  giveBack(units: number, mark: number): void {
    const at = indexOfMark(this.#groups, mark)
    // Several groups have the mark of a window. Those after them are of a later one.
    this.#take(units, [...this.#groups.slice(0, at + 1).reverse(), ...this.#groups.slice(at + 1)])
  }

  /**
   * Others may have charged what was refunded. Then the units of this process stay, because they still count. What is
   * taken out here has left the server's value, too: units older than all that is left there; as many as were refunded
   * last, of those as old; and units beyond what all processes have left together.
   */
  refund({ newest, ageMs, left }: KeyRefund, _: number, { sentMs, receivedMs }: CallTimes): void {
    const goneMs = sentMs - ageMs - this.#granuleMs - 1
    for (const group of this.#groups) if (group.lastMs < goneMs) group.units = 0
    this.#take(
      newest,
      this.#groups.filter(({ lastMs }) => lastMs <= receivedMs - ageMs),
    )
    this.atMost(left, Number.NEGATIVE_INFINITY)
  }

  /** Of the charges of all processes since then, no more than these are left: others may have taken out the oldest. */
  atMost(units: number, sinceMs: number): void {
    const since = this.#groups.filter(({ firstMs }) => firstMs >= sinceMs)
    const own = since.reduce((sum, group) => sum + group.units, 0)
    if (own > units) this.#take(own - units, since)
  }

  absorb(other: this): void {
    this.#groups = [...other.#groups, ...this.#groups].sort((a, b) => a.lastMs - b.lastMs)
  }

  protected forget(): void {
    this.#groups = []
  }

  protected keep({ units, mark, ageMs }: OwnCharge, { sentMs, receivedMs }: CallTimes): void {
    const [firstMs, lastMs] = [sentMs - ageMs, receivedMs - ageMs]
    const at = this.#groups.findLastIndex((group) => group.firstMs <= firstMs)
    const near = this.#groups[at]
    if (near !== undefined && lastMs - near.firstMs < this.#windowMs / GROUPS) {
      near.units += units
      near.lastMs = Math.max(near.lastMs, lastMs)
      return
    }
    this.#groups.splice(at + 1, 0, { units, firstMark: mark, firstMs, lastMs })
    if (this.#groups.length > MOST_GROUPS) this.#groups.shift() // older than it can count
  }

  protected left(nowMs: number): readonly AgedUnits[] {
    return this.#groups
      .map(({ units, lastMs }) => ({ units, ageMs: Math.max(0, Math.floor(nowMs - lastMs)) }))
      .filter(({ units, ageMs }) => units > 0 && ageMs < this.longestMs)
  }

  #take(units: number, from: readonly Group[]): void {
    let left = units
    for (const group of from) {
      const less = Math.min(left, group.units)
      group.units -= less
      left -= less
    }
  }
}

/**
 * Charges of a token bucket. Its level falls by one millisecond in each, and each charge lies on top of those before: so
 * the bottom drains first. A reply says how high the level is with its charge, so when that begins to drain and when it
 * has drained. What is left of the charges of all processes is the level.
 */
export class BucketCharges extends OwnCharges {
  readonly #windowMs: number
  readonly #parts: number
  protected readonly longestMs: number
  /** The one that drains first comes first. */
  #layers: Layer[] = []

  constructor(birth: number, { windowMs, parts }: RemoteRule) {
    super(birth)
    this.#windowMs = windowMs
    this.#parts = parts
    this.longestMs = MOST_LEVEL * windowMs
  }

  giveBack(units: number, mark: number, limit: number): void {
    const at = indexOfMark(this.#layers, mark)
    this.#lower(this.#levelOf(units, limit), at)
  }

  refund({ units }: KeyRefund, limit: number): void {
    this.#lower(this.#levelOf(units, limit), 0)
  }

  /** The level is 0 then: others may have given back what was below. */
  drainedAt(endMs: number): void {
    for (let i = this.#layers.length - 1; i >= 0 && this.#layers[i]!.endMs > endMs; i--)
      this.#layers[i]!.endMs = endMs
  }

  absorb(other: this): void {
    this.#layers = [...other.#layers, ...this.#layers].sort((a, b) => a.endMs - b.endMs)
  }

  protected forget(): void {
    this.#layers = []
  }

  protected keep({ units, limit, mark }: OwnCharge, { receivedMs }: CallTimes, endMs: number): void {
    const ms = this.#levelOf(units, limit)
    const last = this.#layers.at(-1)
    if (last !== undefined && receivedMs - last.firstMs < this.#windowMs / GROUPS) {
      last.ms += ms
      last.endMs = Math.max(last.endMs, endMs)
      return
    }
    this.#layers = this.#layers.filter((layer) => layer.endMs > receivedMs)
    this.#layers.push({ ms, endMs, firstMark: mark, firstMs: receivedMs })
  }

  protected left(nowMs: number, limit: number): readonly AgedUnits[] {
    const own = this.#layers.reduce((sum, { ms, endMs }) => sum + Math.max(0, Math.min(ms, endMs - nowMs)), 0)
    const level = Math.min(own, (this.#layers.at(-1)?.endMs ?? nowMs) - nowMs)
    const units = Math.ceil((level * limit) / this.#fullMs(limit))
    return units > 0 ? [{ units, ageMs: 0 }] : []
  }

  #levelOf(units: number, limit: number): number {
    return (units * this.#fullMs(limit)) / limit
  }

  #fullMs(limit: number): number {
    return (this.#windowMs * fullBy(limit, this.#parts)) / this.#parts
  }

  /** Takes so much out of a layer and those above, which sink by it. */
  #lower(ms: number, from: number): void {
    let left = ms
    for (const layer of this.#layers.slice(from)) {
      const less = Math.min(left, layer.ms)
      layer.ms -= less
      left -= less
      layer.endMs -= ms
    }
  }
}

/** @param birth of the value */
export function ownCharges(birth: number, remote: RemoteRule): WindowCharges | BucketCharges {
  return ALGORITHM_ROWS[remote.rule.algorithm].units === 'time'
    ? new BucketCharges(birth, remote)
    : new WindowCharges(birth, remote)
}
