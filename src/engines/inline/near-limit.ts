import type { Algorithm } from '../../algorithms/algorithm.js'
import type { InlineDecision } from '../../core/inline-decision.js'
import { leastNear } from '../../core/near-limit.js'
import { Reading } from '../../core/reading.js'
import { EPOCH } from '../../memory/layout.js'
import type { Arena } from '../../memory/records.js'
import type { Words } from '../../memory/words.js'
import { unlessDamaged } from '../damage.js'

/** Keys whose use is remembered, by their ways: a power of two. */
const REMEMBERED = 1_024

/**
 * Finds the admissions that leave a key with a share of its limit used, or more.
 *
 * What an admission word says of the use errs high, so most admissions need one comparison. For the others, the units
 * are summed. In a window, the sum tells how far the total may rise until the next one is due: while the word keeps its
 * epoch, a key has used at most what it had used then, and what was admitted since. So a key that uses half of its
 * limit, and whose total is above the share for most of the time, is summed once for many admissions.
 */
export class NearLimit {
  readonly share: number
  #mask = 0
  #perTick = 0
  #full = 0
  /** The limit of the last decision, and from where on its admissions are suspects. */
  #limit = -1
  #from = 0
  /** From how many used units on a key is near that limit. */
  #least = 0
  #algorithm!: Algorithm
  #words!: Words
  /** The reading of the decision that is looked at. */
  #reading!: Reading
  #known: Known | undefined

  /** @param share above this share of its limit, a key is near it; `Infinity`: none ever is */
  constructor(share: number) {
    this.share = share
  }

  /** Goes on with another record. */
  use(algorithm: Algorithm, { words }: Arena, { clock, ticks }: Reading): void {
    const { mask, perTick, full } = algorithm.most
    this.#mask = mask
    this.#perTick = perTick
    this.#full = full
    this.#algorithm = algorithm
    this.#words = words
    this.#reading = new Reading(clock, ticks)
    this.#limit = -1
    this.#known = undefined
  }

  /** Whether an admission by this limit may be near it, which left this admission word and this tick. */
  isSuspect(adm: number, tick: number, limit: number): boolean {
    if (limit !== this.#limit) this.#goBy(limit)
    // Of a bucket, the time that its units last; of others, the units.
    return ((adm - Math.imul(tick >>> 1, this.#perTick)) & this.#mask) >= this.#from
  }

  #goBy(limit: number): void {
    this.#limit = limit
    this.#least = leastNear(limit, this.share)
    const from = this.#perTick === 0 ? this.#least : (this.#full * (this.#least - 1)) / limit // units are rounded up
    this.#from = Math.min(Math.ceil(from), this.#mask + 1)
  }

  /** Whether the last suspect, which has just been decided, has left its key near the limit. */
  isNear(made: InlineDecision): boolean {
    const { way, adm, limit, tick } = made
    if (this.#perTick > 0) return this.#used(made) >= this.#least
    this.#known ??= knownOfNone()
    const { ways, epochs, limits, free, ticks } = this.#known
    const at = way & (REMEMBERED - 1)
    const total = adm & this.#mask
    const epoch = adm & EPOCH
    if (ways[at] === way && epochs[at] === epoch && limits[at] === limit) {
      if (total < free[at]!) return false
      if (ticks[at] === tick && this.#algorithm.hasWholeMs) return true // no unit leaves within a tick
    }
    const used = this.#used(made)
    ways[at] = way
    epochs[at] = epoch
    limits[at] = limit
    ticks[at] = tick
    free[at] = total + this.#least - used
    return used >= this.#least
  }

  #used({ way, tick, at, limit }: InlineDecision): number {
    const algorithm = this.#algorithm
    const reading = this.#reading
    reading.set(at)
    const sum = () => algorithm.estimates.usedAtCharge(algorithm.base(way), tick, reading, limit)
    return unlessDamaged(this.#words, limit, sum)
  }
}

/** By a part of the way: the last key that was summed, the epoch of its word, the limit, and the total up to which it is not near. */
interface Known {
  readonly ways: Int32Array
  readonly epochs: Int32Array
  readonly limits: Int32Array
  readonly free: Int32Array
  /** The tick of the sum. */
  readonly ticks: Int32Array
}

const knownOfNone = (): Known => ({
  ways: new Int32Array(REMEMBERED).fill(-1),
  epochs: new Int32Array(REMEMBERED),
  limits: new Int32Array(REMEMBERED),
  free: new Int32Array(REMEMBERED),
  ticks: new Int32Array(REMEMBERED),
})
