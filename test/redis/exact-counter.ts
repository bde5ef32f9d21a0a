// What a sliding counter on Redis promises, by its definition: the charges of two windows, in whole numbers.
import type { LimiterRule } from 'millrace'
import type { Model } from './exact.js'
import { refundsSeen } from './exact-rules.js'

/** One key of one rule. Refunds by key and `clear` make the receipts before them void. */
export class CounterModel implements Model {
  readonly windowMs: number
  readonly #limit: number
  /** Units by the number of their window. */
  #units = new Map<number, number>()
  /** When it was changed last in a new window, or charged. A clock that has stepped back stands still there. */
  #lastMs = Number.NEGATIVE_INFINITY
  #untilMs = 0
  #birthMs: number | undefined
  #refunds = 0

  constructor({ limit, windowMs }: LimiterRule) {
    this.#limit = limit
    this.windowMs = windowMs
  }

  decide(cost: number, nowMs: number): { allowed: boolean; retryAfterMs: number } {
    const isBlocked = this.#untilMs > nowMs
    const isOver = cost > 0 && this.#used(nowMs) + cost > this.#limit
    if (!isBlocked && !isOver) return { allowed: true, retryAfterMs: 0 }
    if (cost > this.#limit || this.#untilMs === Number.POSITIVE_INFINITY)
      return { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }
    const fits = isOver ? this.#until(this.#limit - cost, nowMs) : 0
    return { allowed: false, retryAfterMs: Math.max(fits, isBlocked ? this.#untilMs - nowMs : 0) }
  }

  figures(nowMs: number): { remaining: number; resetMs: number } {
    const isBlocked = this.#untilMs > nowMs
    const emptyMs = this.#until(0, nowMs)
    return {
      remaining: isBlocked ? 0 : Math.max(0, this.#limit - this.#used(nowMs)),
      resetMs: isBlocked ? Math.max(emptyMs, this.#untilMs - nowMs) : emptyMs,
    }
  }

  charge(cost: number, nowMs: number): object | undefined {
    if (cost === 0) return undefined
    this.#birthMs ??= nowMs
    this.#lastMs = this.#timeAt(nowMs)
    this.#forget()
    const place = this.#windowAt(this.#lastMs)
    this.#add(place, cost)
    return { place, cost, epoch: this.#epoch() }
  }

  refund(cost: number, nowMs: number): number {
    const present = this.#windowAt(this.#timeAt(nowMs))
    let left = cost
    for (const place of [present - 1, present]) {
      const less = Math.min(left, this.#in(place))
      if (less > 0) this.#change(nowMs)
      this.#add(place, -less)
      left -= less
    }
    if (left < cost) this.#refunds++
    return cost - left
  }

  giveBack(receipt: object | undefined, nowMs: number): number {
    const { place, cost, epoch } = receipt as { place: number; cost: number; epoch: string }
    const age = this.#windowAt(this.#timeAt(nowMs)) - place
    if (epoch !== this.#epoch() || age > 1) return 0
    const less = Math.min(cost, this.#in(place))
    if (less > 0) this.#change(nowMs)
    this.#add(place, -less)
    return less
  }

  block(ms: number, nowMs: number): void {
    this.#birthMs ??= nowMs
    this.#untilMs = nowMs + ms
    this.#change(nowMs)
  }

  unblock(nowMs: number): boolean {
    const was = this.#untilMs > nowMs
    this.#untilMs = 0
    if (this.#birthMs !== undefined) this.#change(nowMs)
    return was
  }

  clear(nowMs: number): void {
    if (this.#birthMs === undefined) return
    this.#change(nowMs)
    this.#units.clear()
    this.#untilMs = 0
    this.#refunds++
  }

  usage(lastMs: number, nowMs: number): number {
    const atMs = this.#timeAt(nowMs)
    const present = this.#windowAt(atMs)
    return [present - 1, present]
      .filter((place) => place >= this.#windowAt(atMs - lastMs))
      .reduce((sum, place) => sum + this.#in(place), 0)
  }

  /** The value has the units of two windows: of the last change, and the one before. */
  #change(nowMs: number): void {
    const atMs = this.#timeAt(nowMs)
    if (this.#windowAt(atMs) !== this.#windowAt(this.#lastMs)) this.#lastMs = atMs
    this.#forget()
  }

  #forget(): void {
    const oldest = this.#windowAt(this.#lastMs) - 1
    for (const place of this.#units.keys()) if (place < oldest) this.#units.delete(place)
  }

  #timeAt(nowMs: number): number {
    return Math.max(nowMs, this.#lastMs)
  }

  #windowAt(ms: number): number {
    return Math.floor(ms / this.windowMs)
  }

  #in(place: number): number {
    return this.#units.get(place) ?? 0
  }

  #add(place: number, units: number): void {
    this.#units.set(place, this.#in(place) + units)
  }

  #used(nowMs: number): number {
    const atMs = this.#timeAt(nowMs)
    const present = this.#windowAt(atMs)
    const windowMs = BigInt(this.windowMs)
    const left = windowMs - (BigInt(atMs) % windowMs)
    const before = (BigInt(this.#in(present - 1)) * left + windowMs - 1n) / windowMs
    return this.#in(present) + Number(before)
  }

  /** Milliseconds until at most `most` are used. Nothing is charged meanwhile, so the estimate only falls. */
  #until(most: number, nowMs: number): number {
    let low = nowMs - 1
    let high = this.#timeAt(nowMs) + 2 * this.windowMs
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#used(middle) <= most) high = middle
      else low = middle
    }
    return high - nowMs
  }

  #epoch(): string {
    return `${this.#birthMs} ${refundsSeen(this.#refunds)}`
  }
}
