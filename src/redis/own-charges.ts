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

/** A charge, and what the reply says of the rule. */
export interface OwnCharge extends CallTimes {
  readonly units: number
  /** In units. */
  readonly limit: number
  readonly resetMs: number
}

/** Charges of one rule that are close together. They are sent again together, as of the last of them. */
interface Group {
  readonly units: number
  readonly firstMs: number
  readonly receivedMs: number
}

/** Groups of a window. */
const GROUPS = 32

/** What this process has charged to one value, so that it can be restored if the server loses it. */
export abstract class OwnCharges {
  readonly birth: number

  constructor(birth: number) {
    this.birth = birth
  }

  abstract add(charge: OwnCharge): void
  abstract giveBack(units: number): void
  /** The charges that count at `nowMs`, the oldest first. None if the value may have expired. */
  abstract counting(nowMs: number): readonly AgedUnits[]
}

/** Charges that count for a window each, or until a fixed window ends. */
export class WindowCharges extends OwnCharges {
  readonly #windowMs: number
  #groups: Group[] = []
  /** Until then the value has certainly not expired: each charge keeps it for as long as its `resetMs`. */
  #existsUntilMs = 0

  constructor(birth: number, windowMs: number) {
    super(birth)
    this.#windowMs = windowMs
  }

  add({ units, sentMs, receivedMs, resetMs }: OwnCharge): void {
    if (receivedMs > this.#existsUntilMs) this.#groups = []
    this.#existsUntilMs = Math.max(this.#existsUntilMs, sentMs + resetMs)
    const last = this.#groups.at(-1)
    if (last !== undefined && receivedMs - last.firstMs < this.#windowMs / GROUPS)
      this.#groups[this.#groups.length - 1] = { ...last, receivedMs, units: last.units + units }
    else this.#groups.push({ receivedMs, firstMs: receivedMs, units })
    if (this.#groups.length > 2 * GROUPS) this.#groups.shift() // older than a window
  }

  giveBack(units: number): void {
    let left = units
    for (const [i, group] of [...this.#groups.entries()].reverse()) {
      const less = Math.min(left, group.units)
      this.#groups[i] = { ...group, units: group.units - less }
      left -= less
    }
  }

  counting(nowMs: number): readonly AgedUnits[] {
    if (nowMs >= this.#existsUntilMs) return []
    return this.#groups
      .filter(({ units }) => units > 0)
      .map(({ units, receivedMs }) => ({ units, ageMs: Math.max(0, Math.floor(nowMs - receivedMs)) }))
  }
}

/**
 * Charges of a token bucket. Its level by these charges alone is never above its level by all charges, because
 * both fall at the same rate. So while it is above 0, the value exists.
 */
export class BucketCharges extends OwnCharges {
  readonly #windowMs: number
  #limit = 1
  #emptyAtMs = 0

  constructor(birth: number, windowMs: number) {
    super(birth)
    this.#windowMs = windowMs
  }

  add({ units, sentMs, limit }: OwnCharge): void {
    this.#limit = limit
    this.#emptyAtMs = Math.max(this.#emptyAtMs, sentMs) + (units * this.#windowMs) / limit
  }

  giveBack(units: number): void {
    this.#emptyAtMs -= (units * this.#windowMs) / this.#limit
  }

  counting(nowMs: number): readonly AgedUnits[] {
    const units = Math.ceil(((this.#emptyAtMs - nowMs) * this.#limit) / this.#windowMs)
    return units > 0 ? [{ units, ageMs: 0 }] : []
  }
}
