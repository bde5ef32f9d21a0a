/**
 * A token bucket as the generic cell rate algorithm (GCRA), by the protocol of `word-cells.ts`. A leaky bucket as
 * a meter is the same: what has been taken from the one is in the other.
 *
 * The meter is the *theoretical arrival time* (TAT): the moment at which the bucket will be full again. A request
 * of cost c at time t is admitted if max(TAT, t) + c T <= t + B, and this sum becomes the TAT. T is the time in
 * which a token comes, and B that in which the empty bucket fills up. (ITU-T I.371, "virtual scheduling
 * algorithm"; the same as RFC 2697's bucket of one rate.)
 *
 * **Units.** Time is counted in parts of a token: the units of B are the burst times the largest power of two with
 * which they are at most 2^18, and not much shorter than a microsecond. So T is a whole number, and nothing drifts.
 * A limit of a call counts in parts of the bucket: with twice the limit, a request takes half as much of it. By another
 * limit, of a call or after an update, T is rounded up, and B is a whole number of them, at most a token more
 * (`fullBy`): the limit fits at once. B is the rule's where the limits of calls do not matter: below, and for penalties.
 *
 * **The word.** The meter has 21 bits: the TAT modulo M = 2^21 units. The cell's tick t, of G units, says which
 * multiple of M to add: while t is the tick, each TAT lies before `start(t + 1) + D`. D = 3 B: a penalty may
 * go beyond the empty bucket that far, and no admission does. If a TAT passes a multiple of M, it gives the word a
 * new epoch, too: otherwise a thread that stalls for M units could find the same word.
 *
 * **Moving on.** A tick moves to a later one without a change of the TAT if that one begins before start(t + 1) +
 * D: then 2 (G + D) <= M is enough for the new tick to find the same TAT. Before that, a TAT from before t is moved up to t.
 * Otherwise it could come to lie M back, tick by tick. A longer way empties the cell.
 *
 * **Giving back** returns what has not come back by itself: `min(cost, until - now, TAT - now)`. `until` is when
 * the units of the charge are full again. While there was no other refund, that is the TAT that the charge left.
 * An earlier refund moved them up, so `until` may be as early as its reading + its cost. If it was a refund by
 * key, it may have taken these units: nothing is given back. The clock is read after
 * the admission word: an older reading would return what came back before an admission that the word counts.
 */
import { Reading } from '../../core/reading.js'
import { fullBy } from '../../core/rule-algorithms.js'
import type { Ticks } from '../../core/ticks.js'
import { ONE_EPOCH, type Shape } from '../../memory/layout.js'
import type { Words } from '../../memory/words.js'
import type { MostUsed } from '../algorithm.js'
import { METER, tickOf } from './meter.js'
import { areFew } from './recent-refunds.js'
import { WordAdjustments } from './word-adjustments.js'
import { type Refunded, WordCells, type WordCharge } from './word-cells.js'
import { WordEstimates } from './word-estimates.js'

export const M_BITS = 21
/** What penalties may take, in buckets. */
export const MOST_BUCKETS_TAKEN = 3

/** @see Algorithm */
export class TokenBucket extends WordCells {
  readonly estimates = new WordEstimates(this)
  readonly adjustments = new WordAdjustments(this)
  readonly renewsEpoch = true
  readonly refundTicks: number
  readonly chargeTicks = 1
  readonly runsOff = true
  readonly most: MostUsed
  /** Units of a tick, of a full bucket, and the latest TAT after the start of the cell's tick. */
  readonly #g: number
  readonly #b: number
  readonly #latest: number
  /** Units of a millisecond. */
  readonly #perMs: number
  /** The last limit, and by it the units of a full bucket and those of a token. */
  #limit = 0
  #full = 0
  #token = 0
  /** The last tick of a reading, and when it began. */
  #tick = -1
  #startMs = 0

  constructor(words: Words, shape: Shape, originMs: number, ticks: Ticks) {
    super(words, shape, originMs, ticks)
    this.#b = shape.units
    this.#g = shape.units / shape.buckets
    this.most = { mask: METER, perTick: this.#g, full: this.#b }
    this.#perMs = this.#g / ticks.granuleMs
    this.#latest = this.#g - 1 + MOST_BUCKETS_TAKEN * this.#b
    this.refundTicks = Math.ceil(this.#latest / this.#g)
  }

  /** The time of a cost by a limit, in units. The limit is the last one then. */
  #timeOf(cost: number, limit: number): number {
    if (limit !== this.#limit) this.#takeLimit(limit)
    return cost === 1 ? this.#token : Math.ceil((cost * this.#full) / limit)
  }

  /** The units of a time by a limit: rounded up. */
  #unitsOf(time: number, limit: number): number {
    if (limit !== this.#limit) this.#takeLimit(limit)
    return time > 0 ? Math.ceil((time * limit) / this.#full) : 0
  }

  #takeLimit(limit: number): void {
    this.#limit = limit
    this.#full = fullBy(limit, this.#b)
    this.#token = Math.ceil(this.#b / limit)
  }

  /** The start of a tick modulo M. All other times are in units after the start of the cell's tick. */
  #start(w: number): number {
    return Math.imul(tickOf(w), this.#g) & METER
  }

  /** The TAT. */
  #tat(v: number, w: number): number {
    return this.#latest - ((this.#latest + this.#start(w) - v) & METER)
  }

  /** `v` with its TAT moved from `from` to `to`. */
  #moved(v: number, w: number, from: number, to: number): number {
    const start = this.#start(w)
    const laps = ((start + to) >> M_BITS) - ((start + from) >> M_BITS)
    return ((v & ~METER) + laps * ONE_EPOCH) | ((start + to) & METER)
  }

  /** The time of the reading, or of the start of the cell's tick if that is later. */
  #now(w: number, reading: Reading): number {
    if (reading.tick === tickOf(w)) return this.#inTick(reading)
    const since = this.ticksSince(w, reading)
    return since < 0 ? 0 : since * this.#g + this.#inTick(reading)
  }

  /** The units of the reading's tick that have passed. */
  #inTick(reading: Reading): number {
    if (reading.tick !== this.#tick) {
      this.#tick = reading.tick
      this.#startMs = this.ticks.startMs(reading.absoluteTick)
    }
    return this.#unitsAfter(reading.nowMs - this.#startMs)
  }

  #unitsAfter(ms: number): number {
    const units = (ms * this.#perMs) | 0 // ms is less than a granule
    return units < 0 ? 0 : units < this.#g ? units : this.#g - 1
  }

  protected emptyAt(tick: number): number {
    return Math.imul(tick, this.#g) & METER
  }

  protected isOver(behind: number): boolean {
    return behind * this.#g >= this.#latest
  }

  ticksToEmpty(v: number, w: number): number {
    return Math.max(0, Math.ceil(this.#tat(v, w) / this.#g))
  }

  protected mustMove(base: number, v: number, w: number): boolean | undefined {
    return this.#tat(v, w) >= 0 || this.empties(base, v, w) ? true : undefined
  }

  charged(v: number, w: number, cost: number, limit: number, reading: Reading): number {
    const tat = this.#tat(v, w)
    const now = this.#now(w, reading)
    const next = (tat > now ? tat : now) + this.#timeOf(cost, limit)
    return next - now > this.#full ? v : this.#moved(v, w, tat, next)
  }

  penalized(v: number, w: number, cost: number, limit: number, reading: Reading): number {
    const now = this.#now(w, reading)
    return this.#raised(v, w, Math.max(this.#tat(v, w), now) + this.#timeOf(cost, limit), now)
  }

  raised(v: number, w: number, cost: number, limit: number, reading: Reading): number {
    const now = this.#now(w, reading)
    return this.#raised(v, w, now + this.#timeOf(cost, limit), now)
  }

  /** `v` with a TAT that is at least `to`, or as late as a penalty may make it. */
  #raised(v: number, w: number, to: number, now: number): number {
    const tat = this.#tat(v, w)
    const next = Math.min(to, now + MOST_BUCKETS_TAKEN * this.#b)
    return next > tat ? this.#moved(v, w, tat, next) : v
  }

  unitsAt(v: number, w: number, reading: Reading, limit: number): number {
    return this.#unitsOf(this.#tat(v, w) - this.#now(w, reading), limit)
  }

  untilRoom(v: number, w: number, cost: number, limit: number, reading: Reading): number {
    const time = this.#timeOf(cost, limit)
    return this.#untilTime(this.#tat(v, w) + time - this.#full, w, reading)
  }

  untilOver(v: number, w: number, reading: Reading): number {
    return this.#untilTime(this.#tat(v, w), w, reading)
  }

  /** The number of whole milliseconds after the reading until a time. */
  #untilTime(time: number, w: number, reading: Reading): number {
    if (time <= this.#now(w, reading)) return 0
    const { ticks } = this
    const ticksOn = Math.floor(time / this.#g)
    const tick = reading.absoluteTick - this.ticksSince(w, reading) + ticksOn
    const units = time - ticksOn * this.#g
    const startMs = ticks.startMs(tick)
    const isReached = (ms: number) => {
      const own = Math.floor(ticks.position(reading.nowMs + ms))
      return own > tick || (own === tick && this.#unitsAfter(reading.nowMs + ms - startMs) >= units)
    }
    let ms = Math.ceil(startMs + (units * ticks.granuleMs) / this.#g - reading.nowMs)
    while (!isReached(ms)) ms++
    while (isReached(ms - 1)) ms--
    return Math.max(0, ms)
  }

  refunded(v: number, w: number, most: number, limit: number, reading: Reading): Refunded | undefined {
    const tat = this.#tat(v, w)
    const time = Math.min(this.#timeOf(most, limit), tat - this.#now(w, reading))
    if (time <= 0) return undefined
    return { next: this.#taken(v, w, tat, time), units: Math.min(most, this.#unitsOf(time, limit)) }
  }

  givenBack(v: number, w: number, charge: WordCharge, reading: Reading): number | undefined {
    const age = this.time.distance(tickOf(w), tickOf(charge.w)) * this.#g
    if (age >= this.#latest) return undefined // full again since
    const now = this.#now(w, reading)
    const tat = this.#tat(v, w)
    const time = Math.min(
      this.#timeOf(charge.cost, charge.limit),
      this.#until(v, w, charge, age) - now,
      tat - now,
    )
    return time > 0 ? this.#taken(v, w, tat, time) : undefined
  }

  /** When the units of a charge are full again. */
  #until(v: number, w: number, charge: WordCharge, age: number): number {
    const { receipt, cost, limit, at, refunds } = charge
    const left = this.#tat(receipt, w)
    const start = this.#start(w)
    const laps = ((start + this.#tat(v, w)) >> M_BITS) - ((start + left) >> M_BITS)
    const isAlone = areFew(refunds) && ((receipt + laps * ONE_EPOCH) ^ v) >>> 24 === 0
    if (isAlone) return left
    if (refunds.byKey) return 0 // it may have taken these units
    const reading = new Reading({ now: () => at }, this.ticks)
    reading.take()
    const inTick = reading.tick === tickOf(charge.w) ? this.#inTick(reading) : 0
    return inTick - age + this.#timeOf(cost, limit)
  }

  /** `v` with `time` less, and a new epoch. */
  #taken(v: number, w: number, tat: number, time: number): number {
    return (this.#moved(v, w, tat, tat - time) + ONE_EPOCH) | 0
  }
}
