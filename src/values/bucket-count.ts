import { fullBy } from '../core/rule-algorithms.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import { type CallTime, Count, NOTHING, type Refunded } from './count.js'
import type { SavedCount } from './saved-count.js'

/** A receipt's mark is the millisecond of its charge, and above it how often the bucket was charged when empty. */
const FILLED_RANGE = 2 ** 44
const MOST_FILLED = 512
/** Penalties fill a bucket up to so many times its size. */
const MOST_LEVEL = 3

/** A token bucket: how full it is, in time units. It drains by `parts` of them in a window. */
export class BucketCount extends Count {
  /** When it is full, by the limit of the call. */
  readonly #full: number
  #level: number

  constructor(remote: RemoteRule, limit: number, time: CallTime, saved: SavedCount | undefined) {
    super(remote, limit, time, saved)
    this.#full = fullBy(limit, remote.parts)
    const [entry] = saved?.entries ?? []
    const drained = entry === undefined ? 0 : this.#unitsAt(entry.at) + entry.units
    this.#level = Math.max(0, drained - this.#unitsAt(this.tick))
    this.serial = entry?.serial ?? 0
  }

  fits(cost: number): boolean {
    return cost === 0 || this.#needOf(cost) <= this.#full - this.#level
  }

  untilFitsMs(cost: number): number {
    return this.#untilLevelMs(this.#full - this.#needOf(cost))
  }

  get remaining(): number {
    return Math.max(0, this.limit - this.used)
  }

  get used(): number {
    return Math.ceil((this.#level * this.limit) / this.#full)
  }

  get emptyMs(): number {
    return this.#level === 0 ? 0 : this.#untilLevelMs(0)
  }

  usedInLast(): number {
    return this.used
  }

  charge(cost: number): number {
    if (cost === 0) return NOTHING
    if (this.exists && this.#level === 0) this.serial = (this.serial + 1) % MOST_FILLED
    this.#level = Math.min(this.#level + this.#needOf(cost), MOST_LEVEL * this.#size)
    this.charged(this.tick + this.#untilLevelTicks(0))
    return this.serial * FILLED_RANGE + this.tick
  }

  refund(cost: number): Refunded {
    const given = Math.floor((this.#lower(cost) * this.limit) / this.#full)
    if (given > 0) this.countRefund()
    return { given, newest: NOTHING, ageMs: 0 }
  }

  giveBack(mark: number, cost: number): number {
    if (Math.floor(mark / FILLED_RANGE) !== this.serial) return 0 // what it has charged has drained
    return this.#lower(cost) > 0 ? cost : 0
  }

  protected empty(): void {
    this.#level = 0
  }

  get saved(): SavedCount {
    const entry = { at: this.tick, units: this.#level, serial: this.serial }
    return { ...this.savedWith([entry]), newest: this.tick }
  }

  get #size(): number {
    return this.remote.parts
  }

  #needOf(cost: number): number {
    return Math.ceil((cost * this.#full) / this.limit)
  }

  #lower(cost: number): number {
    const less = Math.min(this.#level, this.#needOf(cost))
    this.#level -= less
    this.isChanged ||= less > 0
    return less
  }

  /** Milliseconds until the level has fallen to this. */
  #untilLevelMs(level: number): number {
    return this.untilMsOf(this.tick + this.#untilLevelTicks(level))
  }

  #untilLevelTicks(level: number): number {
    return this.#msOf(this.#unitsAt(this.tick) + this.#level - level) - this.tick
  }

  /** Time units that have passed at a millisecond, and the first one at which so many have. Products stay below 2^53. */
  #unitsAt(ms: number): number {
    const { windowMs } = this.remote
    const windows = Math.floor(ms / windowMs)
    return windows * this.#size + Math.floor(((ms - windows * windowMs) * this.#size) / windowMs)
  }

  #msOf(units: number): number {
    const { windowMs } = this.remote
    const windows = Math.floor(units / this.#size)
    return windows * windowMs + Math.ceil(((units - windows * this.#size) * windowMs) / this.#size)
  }
}
