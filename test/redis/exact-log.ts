// What a sliding log on Redis promises, by its definition: a list of charges, in a test's milliseconds.
import type { LimiterRule } from 'millrace'
import type { Model } from './exact.js'
import { refundsSeen } from './exact-rules.js'

interface Charge {
  readonly atMs: number
  readonly units: number
  readonly serial: number
}

/** One key of one rule. Refunds by key and `clear` make the receipts before them void. */
export class LogModel implements Model {
  readonly windowMs: number
  readonly #limit: number
  readonly #most: number
  #charges: Charge[] = []
  #serial = 0
  /** When it was charged last. A clock that has stepped back stands still there. */
  #lastMs = Number.NEGATIVE_INFINITY
  #untilMs = 0
  #birthMs: number | undefined
  #refunds = 0

  constructor({ limit, windowMs, maxLimit }: LimiterRule) {
    this.#limit = limit
    this.windowMs = windowMs
    this.#most = maxLimit!
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
    this.#charges = this.#live(nowMs)
    this.#lastMs = this.#timeAt(nowMs)
    const charge = { atMs: this.#lastMs, units: cost, serial: ++this.#serial }
    this.#charges = [...this.#charges, charge].sort(inOrder).slice(-this.#most)
    return { charge, epoch: this.#epoch() }
  }

  refund(cost: number, nowMs: number): number {
    let left = cost
    const kept = this.#live(nowMs).map((charge) => {
      const less = Math.min(left, charge.units)
      left -= less
      return { ...charge, units: charge.units - less }
    })
    if (left < cost) {
      this.#charges = kept.filter(({ units }) => units > 0)
      this.#refunds++
    }
    return cost - left
  }

  giveBack(receipt: object | undefined, nowMs: number): number {
    const { charge, epoch } = receipt as { charge: Charge; epoch: string }
    const live = this.#live(nowMs)
    if (epoch !== this.#epoch() || !live.includes(charge)) return 0
    this.#charges = live.filter((each) => each !== charge)
    return charge.units
  }

  block(ms: number, nowMs: number): void {
    this.#birthMs ??= nowMs
    this.#untilMs = nowMs + ms
    this.#charges = this.#live(nowMs)
  }

  unblock(nowMs: number): boolean {
    const was = this.#untilMs > nowMs
    this.#untilMs = 0
    if (this.#birthMs !== undefined) this.#charges = this.#live(nowMs)
    return was
  }

  clear(): void {
    if (this.#birthMs === undefined) return
    this.#charges = []
    this.#untilMs = 0
    this.#refunds++
  }

  usage(lastMs: number, nowMs: number): number {
    const atMs = this.#timeAt(nowMs)
    return sumOf(this.#live(nowMs).filter((charge) => atMs - charge.atMs < lastMs))
  }

  #timeAt(nowMs: number): number {
    return Math.max(nowMs, this.#lastMs)
  }

  #live(nowMs: number): Charge[] {
    return this.#charges.filter(({ atMs }) => this.#timeAt(nowMs) - atMs < this.windowMs)
  }

  #used(nowMs: number): number {
    return sumOf(this.#live(nowMs))
  }

  /** Milliseconds until at most `most` are used. */
  #until(most: number, nowMs: number): number {
    const times = this.#live(nowMs).map(({ atMs }) => atMs + this.windowMs)
    return Math.min(...[nowMs, ...times].filter((ms) => this.#used(ms) <= most)) - nowMs
  }

  #epoch(): string {
    return `${this.#birthMs} ${refundsSeen(this.#refunds)}`
  }
}

const sumOf = (charges: readonly Charge[]): number => charges.reduce((sum, { units }) => sum + units, 0)

/** The server has charges of the same time in the order of their texts. */
const inOrder = (a: Charge, b: Charge): number => a.atMs - b.atMs || (textOf(a) < textOf(b) ? -1 : 1)

const textOf = ({ units, serial }: Charge): string => `${units}:${serial}`
