import type { Forbidden, Scenario } from './scenario.js'
import type { Timeline } from './timeline.js'
import { ADMITTED, CARRIED, PENALTIES, type Units } from './units.js'

/**
 * Judges that the units admitted in any window are at most the limit. An admission is judged by the record that
 * admitted it: all units of that record and of earlier ones count, each at the moment at which it took effect.
 * A window that becomes longer does not bring back what had left the old one, and the one that admitted it, before its
 * end: neither by the tick of the key's cell when it is converted, nor when the key loses its cell.
 */
export class WindowJudge {
  readonly #timeline: Timeline
  readonly #units: Units
  readonly #isSmooth: boolean
  readonly #fail: (what: Forbidden, how: string) => void

  constructor(
    { edge }: Scenario,
    timeline: Timeline,
    units: Units,
    fail: (what: Forbidden, how: string) => void,
  ) {
    this.#timeline = timeline
    this.#units = units
    this.#isSmooth = edge === 'smooth'
    this.#fail = fail
  }

  /** Units have been admitted at this place, by this limit: judges every window that they are in. */
  judge(key: number, place: number, limit: number): void {
    const own = this.#timeline.recordOf(place)
    for (const record of this.#timeline.records) {
      // A decision of an earlier record may return after those of a later one.
      const most = record === own ? limit : this.#units.limit(key, record)
      if (record >= own && most > 0) this.#judgeBy(record, key, this.#timeline.msOf(place), most)
    }
  }

  #judgeBy(record: number, key: number, ms: number, limit: number): void {
    const timeline = this.#timeline
    const tick = timeline.tickAt(record, ms)
    const wide = this.#wide(record)
    for (const last of timeline.placesOf(record)) {
      const end = timeline.tickOf(last)
      if (end < tick || end - tick >= wide) continue
      const admitted = this.#units.charged([ADMITTED], key, record, end, wide)
      if (admitted === 0) continue // no decision by this record
      const sum = admitted + this.#units.chargedBefore([ADMITTED], key, record, end, wide)
      if (sum > limit) this.#fail('over', `key ${key}: ${sum} in ${wide} ticks, the limit is ${limit}`)
    }
  }

  /** The key's cell, of this record and with this tick, changes to another record at this moment. */
  converts(key: number, record: number, tick: number, ms: number): void {
    const firstMs = this.#firstMs(record, Math.min(tick, this.#lastTick(record, ms)))
    for (const own of this.#timeline.records) {
      const ownMs = this.#firstMs(own, this.#timeline.tickAt(own, ms))
      this.#units.forget(key, own, own < record ? Math.min(firstMs, ownMs) : firstMs)
    }
  }

  /** The key loses its cell at this moment. What counts by one of these records still counts. */
  losesCell(key: number, records: readonly number[], ms: number): void {
    const firsts = records.map((record) => this.#firstMs(record, this.#lastTick(record, ms)))
    for (const own of this.#timeline.records) this.#units.forget(key, own, Math.min(...firsts))
  }

  /** The units in the buckets of the window that ends in this tick of a record. */
  inBuckets(key: number, record: number, tick: number): number {
    const wide = this.#timeline.bucketsOf(record) + 1
    return this.#units.charged([ADMITTED, PENALTIES, CARRIED], key, record, tick, wide)
  }

  /** The tick of a moment by a record, or that of the record's end if that is earlier. */
  #lastTick(record: number, ms: number): number {
    return this.#timeline.tickAt(record, this.#timeline.until(record, ms))
  }

  /** The beginning of the window that ends in this tick. */
  #firstMs(record: number, tick: number): number {
    return (tick + 1 - this.#wide(record)) * this.#timeline.granuleMsOf(record)
  }

  /** The ticks in a window for which the promise holds. */
  #wide(record: number): number {
    return this.#timeline.bucketsOf(record) + (this.#isSmooth ? 0 : 1)
  }
}
