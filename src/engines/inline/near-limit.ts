import { type Algorithm, mostIn } from '../../algorithms/algorithm.js'
import { leastNear } from '../../core/near-limit.js'
import { Reading } from '../../core/reading.js'
import { EPOCH, HEADER } from '../../memory/layout.js'
import { type Arena, limitIn } from '../../memory/records.js'
import { load, type Words } from '../../memory/words.js'
import type { NativeSingle } from '../../native/single.js'
import { unlessDamaged } from '../damage.js'

/** Keys whose use is remembered, by their ways: a power of two. */
const REMEMBERED = 1_024

/**
 * Finds the admissions that leave a key with a share of its limit used, or more.
 *
 * What an admission word says of the use errs high. So what decides compares it where the word is at hand, and calls an
 * admission above a bound a suspect: most are none. Of suspects, the units are summed. In a window, the sum tells how
 * far the total may rise until the next one is due: while the word keeps its epoch, a key has used at most what it had
 * used then, and what was admitted since. So a key that uses half of its
 * limit, and whose total is above the share for most of the time, is summed once for many admissions.
 */
export class NearLimit {
  readonly share: number
  /** The limit of the rule, and the one that decisions go by, which have to say whether they are suspects. */
  #ofRule = 0
  #limit = 0
  #from = 0
  #algorithm!: Algorithm
  #single: NativeSingle | undefined
  #words!: Words
  /** The reading of the decision that is looked at. */
  #reading!: Reading
  #known: Known | undefined

  /** @param share above this share of its limit, a key is near it; `Infinity`: none ever is */
  constructor(share: number) {
    this.share = share
  }

  /** Goes on with another record. A limit follows. */
  use(algorithm: Algorithm, { words }: Arena, { clock, ticks }: Reading, single?: NativeSingle): void {
    this.#algorithm = algorithm
    this.#single = single
    this.#words = words
    this.#reading = new Reading(clock, ticks)
    this.#known = undefined
  }

  /** The limit of the rule has changed. */
  goByRule(limit: number): void {
    this.#ofRule = limit
    this.goBy(limit)
  }

  /** The next decisions go by this limit: by default that of the rule. */
  goBy(limit = this.#ofRule): void {
    this.#limit = limit
    this.#from = this.#fromOf(limit)
    this.#algorithm.suspectFrom = this.#from
    this.#single?.suspect(limit, this.#from)
  }

  /** By the limit that decisions go by: from where on they are suspects, and from how many used units on near. */
  get bounds(): { readonly suspectFrom: number; readonly nearFrom: number } {
    return { suspectFrom: this.#from, nearFrom: leastNear(this.#limit, this.share) }
  }

  /** From where on the admissions by a limit are suspects: of a bucket, the time that its units last; of others, the units. */
  #fromOf(limit: number): number {
    const { mask, perTick, full } = this.#algorithm.most
    const least = leastNear(limit, this.share)
    const from = perTick === 0 ? least : (full * (least - 1)) / limit // units are rounded up
    return Math.min(Math.ceil(from), mask + 1)
  }

  /** Whether an admission by this limit may be near it, which left this admission word and this tick. */
  isSuspect(adm: number, tick: number, limit: number): boolean {
    // The addon may have read a new limit first. Nothing here may throw, as the key has been charged.
    if (limit !== this.#limit && limit === limitIn(load(this.#words, HEADER.CURRENT))) this.goByRule(limit)
    const from = limit === this.#limit ? this.#from : this.#fromOf(limit)
    return mostIn(adm, tick, this.#algorithm.most) >= from
  }

  /** Whether the last suspect, which has just been decided at the reading `at`, has left its key near the limit. */
  isNear(way: number, adm: number, tick: number, at: number, limit: number): boolean {
    const least = leastNear(limit, this.share)
    if (this.#algorithm.most.perTick > 0) return this.#used(way, tick, at, limit) >= least
    this.#known ??= knownOfNone()
    const { ways, epochs, limits, free, ticks } = this.#known
    const place = way & (REMEMBERED - 1)
    const total = adm & this.#algorithm.most.mask
    const epoch = adm & EPOCH
    if (ways[place] === way && epochs[place] === epoch && limits[place] === limit) {
      if (total < free[place]!) return false
      if (ticks[place] === tick && this.#algorithm.hasWholeMs) return true // no unit leaves within a tick
    }
    const used = this.#used(way, tick, at, limit)
    ways[place] = way
    epochs[place] = epoch
    limits[place] = limit
    ticks[place] = tick
    free[place] = total + least - used
    return used >= least
  }

  #used(way: number, tick: number, at: number, limit: number): number {
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
