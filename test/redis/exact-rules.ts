// What the rules of a limiter on Redis promise, by their definition: plain numbers, no packed values.
import type { LimiterRule } from 'millrace'

/** Units of one charge, in a granule, a fixed window or a bucket. */
interface Charge {
  place: number
  units: number
  readonly cost: number
}

/** What a birth has of refunds: 0, and 1 to 31 in turn. */
export const refundsSeen = (refunds: number): number => (refunds === 0 ? 0 : ((refunds - 1) % 31) + 1)

/** One key of one rule. Refunds by key and `clear` make the receipts before them void. */
export class ModelRule {
  readonly windowMs: number
  readonly #limit: number
  readonly #kind: 'sliding' | 'fixed' | 'bucket'
  /** Milliseconds of a granule, of the grid on which a fixed window may begin, or of a time unit of a bucket. */
  readonly #stepMs: number
  readonly #parts: number
  #charges: Charge[] = []
  /** Those that count now. The others may count again if the clock steps back before the next charge. */
  #live: Charge[] = []
  /** The newest granule; the beginning of a fixed window, ms. */
  #mark = Number.NEGATIVE_INFINITY
  /** A bucket: when it was charged last, ms, and how full it was then, in time units. */
  #lastMs = Number.NEGATIVE_INFINITY
  #full = 0
  /** The same now. A clock that has stepped back stands still at the last change. */
  #atMs = 0
  #present = 0
  #untilMs = 0
  /** A value is born by a charge or a block, in a millisecond, and counts refunds by key. Receipts bear both. */
  #birthMs: number | undefined
  #refunds = 0
  /** How often a bucket was charged when it was empty: what was charged before is gone. */
  #fillings = 0

  constructor({ limit, windowMs, granularityMs, algorithm }: LimiterRule) {
    this.#limit = limit
    this.windowMs = windowMs
    this.#stepMs = granularityMs
    this.#parts = Math.round(windowMs / granularityMs)
    this.#kind = algorithm === 'fixed-window' ? 'fixed' : algorithm === 'token-bucket' ? 'bucket' : 'sliding'
  }

  decide(cost: number, nowMs: number): { allowed: boolean; retryAfterMs: number } {
    this.#advance(nowMs)
    const isBlocked = this.#untilMs > nowMs
    const isOver = cost > 0 && this.#needed(cost) > this.#free()
    if (!isBlocked && !isOver) return { allowed: true, retryAfterMs: 0 }
    if (cost > this.#limit || this.#untilMs === Number.POSITIVE_INFINITY)
      return { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }
    const fits = isOver ? this.#until(this.#capacity() - this.#needed(cost), nowMs) : 0
    return { allowed: false, retryAfterMs: Math.max(fits, isBlocked ? this.#untilMs - nowMs : 0) }
  }

  /** As of now, also after a charge. */
  figures(nowMs: number): { remaining: number; resetMs: number } {
    this.#advance(nowMs)
    const isBlocked = this.#untilMs > nowMs
    const emptyMs = this.#used() > 0 ? this.#until(0, nowMs) : 0
    const left =
      this.#kind === 'bucket' ? Math.floor((this.#free() * this.#limit) / this.#parts) : this.#free()
    return {
      remaining: isBlocked ? 0 : Math.max(0, left),
      resetMs: isBlocked ? Math.max(emptyMs, this.#untilMs - nowMs) : emptyMs,
    }
  }

  /** Charges, also beyond the limit. Returns the receipt. */
  charge(cost: number, nowMs: number): object | undefined {
    this.#advance(nowMs)
    if (cost === 0) return undefined
    this.#birthMs ??= nowMs
    if (this.#kind === 'bucket') {
      if (this.#present === 0) this.#fillings++
      this.#keep(Math.min(this.#present + this.#needed(cost), 3 * this.#parts))
    }
    const charge = { place: this.#mark, units: cost, cost }
    this.#charges.push(charge)
    if (this.#live !== this.#charges) this.#live.push(charge)
    return { charge, epoch: this.#epoch() }
  }

  /** Takes out up to `cost` units, the oldest first. Returns how many. */
  refund(cost: number, nowMs: number): number {
    this.#advance(nowMs)
    if (this.#kind === 'bucket') {
      const less = Math.min(this.#present, this.#needed(cost))
      if (less > 0) {
        this.#keep(this.#present - less)
        this.#refunds++
      }
      return Math.floor((less * this.#limit) / this.#parts)
    }
    let left = cost
    for (const charge of this.#live) {
      const units = Math.min(charge.units, left)
      charge.units -= units
      left -= units
    }
    if (left < cost) {
      this.#refunds++
      this.#forget()
    }
    return cost - left
  }

  /** Gives back a charge that still counts. */
  giveBack(receipt: object | undefined, nowMs: number): number {
    this.#advance(nowMs)
    const { charge, epoch } = receipt as { charge: Charge; epoch: string }
    if (epoch !== this.#epoch()) return 0
    if (this.#kind === 'bucket') {
      if (this.#present === 0) return 0
      this.#keep(this.#present - Math.min(this.#present, this.#needed(charge.cost)))
      return charge.cost
    }
    // Of charges in the same granule or window, one is as good as another.
    let left = charge.cost
    for (const each of this.#live.filter(({ place }) => place === charge.place)) {
      const units = Math.min(each.units, left)
      each.units -= units
      left -= units
    }
    if (left < charge.cost) this.#forget()
    return charge.cost - left
  }

  block(ms: number, nowMs: number): void {
    this.#advance(nowMs)
    this.#birthMs ??= nowMs
    this.#untilMs = nowMs + ms
    this.#keep(this.#present)
    this.#forget()
  }

  unblock(nowMs: number): boolean {
    this.#advance(nowMs)
    const was = this.#untilMs > nowMs
    this.#untilMs = 0
    if (this.#lastMs > 0) this.#keep(this.#present)
    if (this.#birthMs !== undefined) this.#forget()
    return was
  }

  /** Like a refund of all units. The value keeps its birth, and its newest granule. */
  clear(): void {
    if (this.#birthMs === undefined) return
    const newest = this.#charges.reduce((most, { place }) => Math.max(most, place), Number.NEGATIVE_INFINITY)
    this.#charges = this.#kind === 'sliding' ? [{ place: newest, units: 0, cost: 0 }] : []
    this.#live = this.#charges
    this.#full = 0
    this.#present = 0
    this.#untilMs = 0
    this.#refunds++
  }

  /** Forgets what has left. A clock that steps back stands still. */
  #advance(nowMs: number): void {
    if (this.#kind === 'bucket') {
      this.#atMs = Math.max(nowMs, this.#lastMs)
      const passed = this.#lastMs > 0 ? this.#unitsAt(this.#atMs) - this.#unitsAt(this.#lastMs) : 0
      this.#present = Math.max(0, this.#full - passed)
      return
    }
    if (this.#kind === 'fixed') {
      // A window begins with a charge.
      const begun = this.#charges.at(-1)?.place ?? Number.NEGATIVE_INFINITY
      this.#live = this.#charges.filter(({ place }) => place === begun)
      if (this.#used() > 0 && nowMs < begun + this.windowMs) {
        this.#mark = begun
        return
      }
      this.#mark = Math.floor(nowMs / this.#stepMs) * this.#stepMs
      this.#live = []
      return
    }
    // The newest granule is the one with the newest charge: only a charge moves it on.
    const newest = this.#charges.reduce((most, { place }) => Math.max(most, place), Number.NEGATIVE_INFINITY)
    this.#mark = Math.max(this.#granuleAt(nowMs), newest)
    this.#live = this.#charges.filter(({ place }) => place >= this.#mark - this.#parts)
  }

  /** A change forgets what does not count now, also for a clock that steps back later. */
  #forget(): void {
    this.#charges = this.#live
    if (this.#kind === 'sliding' && this.#live.length === 0)
      this.#charges = [{ place: this.#mark, units: 0, cost: 0 }]
  }

  #epoch(): string {
    return `${this.#birthMs} ${this.#fillings} ${refundsSeen(this.#refunds)}`
  }

  /** A change of a bucket. */
  #keep(full: number): void {
    this.#lastMs = this.#atMs
    this.#full = full
    this.#present = full
  }

  #capacity(): number {
    return this.#kind === 'bucket' ? this.#parts : this.#limit
  }

  #needed(cost: number): number {
    return this.#kind === 'bucket' ? Math.ceil((cost * this.#parts) / this.#limit) : cost
  }

  #used(): number {
    return this.#kind === 'bucket' ? this.#present : this.#live.reduce((sum, { units }) => sum + units, 0)
  }

  #free(): number {
    return this.#capacity() - this.#used()
  }

  /** Milliseconds until at most `most` are used. */
  #until(most: number, nowMs: number): number {
    if (this.#kind === 'fixed') return this.#mark + this.windowMs - nowMs
    if (this.#kind === 'bucket') return this.#msOf(this.#unitsAt(this.#atMs) + this.#present - most) - nowMs
    let used = this.#used()
    let place = this.#mark
    for (const charge of [...this.#live].sort((a, b) => a.place - b.place)) {
      if (used <= most) break
      used -= charge.units
      if (charge.units > 0) place = charge.place
    }
    const end = place + this.#parts + 1
    let ms = Math.ceil((end * this.windowMs) / this.#parts)
    while (this.#granuleAt(ms) < end) ms++
    return ms - nowMs
  }

  #granuleAt(ms: number): number {
    return Number((BigInt(ms) * BigInt(this.#parts)) / BigInt(this.windowMs))
  }

  #unitsAt(ms: number): number {
    return Number((BigInt(ms) * BigInt(this.#parts)) / BigInt(this.windowMs))
  }

  /** The first millisecond at which so many time units have passed. */
  #msOf(units: number): number {
    const product = BigInt(units) * BigInt(this.windowMs)
    const parts = BigInt(this.#parts)
    return Number((product + parts - 1n) / parts)
  }
}
