const SLOTS = 2 ** 12
const MOST = 1_023
const PERIODS = 2 ** 12

/**
 * How much is asked for keys, about: units in the present period and in the one before it, by a part of the key's
 * fingerprint. Keys that share a part are taken together, and seem to be asked for more. It takes 16 KB for all keys.
 */
export class Demand {
  readonly #periodMs: number
  /** period:12 | units of the period before:10 | units:10 */
  readonly #words = new Uint32Array(SLOTS)

  constructor(periodMs: number) {
    this.#periodMs = periodMs
  }

  /** Adds units. Returns the larger one of both periods, at most 1,023. */
  add(lo: number, units: number, ms: number): number {
    const i = lo & (SLOTS - 1)
    const word = this.#words[i]!
    const period = Math.floor(ms / this.#periodMs) & (PERIODS - 1)
    const past = (period - (word >>> 20)) & (PERIODS - 1)
    const before = past === 0 ? (word >>> 10) & MOST : past === 1 ? word & MOST : 0
    const own = Math.min(MOST, (past === 0 ? word & MOST : 0) + units)
    this.#words[i] = (period << 20) | (before << 10) | own
    return Math.max(own, before)
  }
}
