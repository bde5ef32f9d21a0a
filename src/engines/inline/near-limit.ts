import type { Algorithm } from '../../algorithms/algorithm.js'
import type { InlineDecision } from '../../core/inline-decision.js'
import { EPOCH } from '../../memory/layout.js'

/** Keys whose use is remembered, by their ways: a power of two. */
const REMEMBERED = 1_024

/**
 * Finds the admissions that leave a key with a share of its limit used, or more.
 *
 * The total of an admission word errs high, so most admissions need one comparison with it. For the others, the units
 * are summed (`unitsLeft`). The sum tells how far the total may rise until the next one is due: while the word keeps its
 * epoch, a key has used at most what it had used then, and what was admitted since. So a key that uses half of its
 * limit, and whose total is above the share for most of the time, is summed once for many admissions.
 */
export class NearLimit {
  readonly share: number
  /** The bits of an admission word that err high; 0: none, and each admission is looked at. */
  #mask = 0
  #factor = 0
  #known: Known | undefined

  /** @param share above this share of its limit, a key is near it; `Infinity`: none ever is */
  constructor(share: number) {
    this.share = share
  }

  /** Goes on with another record. */
  use({ totalMask }: Algorithm): void {
    this.#mask = totalMask
    this.#factor = totalMask === 0 && this.share <= 1 ? 0 : this.share
    this.#known = undefined
  }

  /** Whether an admission by this limit, which left this admission word, may be near it. */
  isSuspect(adm: number, limit: number): boolean {
    return (adm & this.#mask) >= limit * this.#factor
  }

  /** Whether a suspect, which has just been decided, has left its key near the limit. */
  isNear(made: InlineDecision): boolean {
    const { limit } = made
    if (this.#mask === 0) return this.#isReached(limit, made)
    const { way, adm } = made
    this.#known ??= knownOfNone()
    const { ways, epochs, limits, free } = this.#known
    const at = way & (REMEMBERED - 1)
    const total = adm & this.#mask
    const epoch = adm & EPOCH
    if (ways[at] === way && epochs[at] === epoch && limits[at] === limit && total < free[at]!) return false
    const used = limit - made.unitsLeft
    ways[at] = way
    epochs[at] = epoch
    limits[at] = limit
    free[at] = total + Math.ceil(limit * this.share) - used
    return used >= limit * this.share
  }

  #isReached(limit: number, made: InlineDecision): boolean {
    return limit - made.unitsLeft >= limit * this.share
  }
}

/** By a part of the way: the last key that was summed, the epoch of its word, the limit, and the total up to which it is not near. */
interface Known {
  readonly ways: Int32Array
  readonly epochs: Int32Array
  readonly limits: Int32Array
  readonly free: Int32Array
}

const knownOfNone = (): Known => ({
  ways: new Int32Array(REMEMBERED).fill(-1),
  epochs: new Int32Array(REMEMBERED),
  limits: new Int32Array(REMEMBERED),
  free: new Int32Array(REMEMBERED),
})
