import { Ticks } from '#millrace/core/ticks.js'

const MOST_COMPLAINTS = 5

/** An admission in a log of a rule whose window changes. */
export interface Admission {
  /** A column holds one key by one rule. */
  readonly column: number
  /** Units admitted and not refunded. */
  readonly units: number
  /** The earliest moment at which it may have taken effect, in milliseconds. */
  readonly fromMs: number
  /** The first and the last tick, of the window by which it was decided, in which it may have taken effect. */
  readonly first: number
  readonly last: number
  /** The index of that window. */
  readonly record: number
}

/** One of the windows that a rule has had, in their order. */
export interface Had {
  readonly windowMs: number
  readonly buckets: number
  /** The highest limit that the rule had together with this window. */
  readonly limit: number
  /** The latest moment at which the next window may have replaced it. */
  readonly endedMs: number
}

interface Carried {
  readonly tick: number
  readonly units: number
}

/**
 * Judges the windows of a rule that changes. A window that ends with an admission must hold, of its column:
 *
 *  - all units admitted by the same window of the rule, in its ticks;
 *  - all units admitted by earlier windows of the rule within its time, if they *are kept*: at each change
 *    since, the window that ended still covered them. The limiter may count these for longer, from the last
 *    charge before the conversion on, or from the conversion on.
 *
 * Units admitted by a later window of the rule are left out: a cell never returns to an earlier window, so
 * they were admitted later.
 */
export class ChangesJudge {
  /** Judged windows: those that end with an admission. */
  windows = 0
  /** Windows with units that an earlier window of the rule had admitted. */
  carried = 0
  over = 0
  /** Windows that reached the limit. */
  full = 0
  readonly complaints: string[] = []
  readonly #had: readonly Had[]
  readonly #ticks: readonly Ticks[]
  readonly #extra: number
  /** Admissions by column and record, sorted by their last tick. */
  readonly #columns: (readonly Admission[])[][]

  constructor(had: readonly Had[], edge: 'strict' | 'smooth', columns: number, admissions: Admission[]) {
    this.#had = had
    this.#ticks = had.map(({ windowMs, buckets }) => new Ticks(windowMs, buckets, 2 ** 32))
    this.#extra = edge === 'strict' ? 1 : 0
    const lists: Admission[][][] = Array.from({ length: columns }, () => had.map(() => []))
    for (const admission of admissions.toSorted((a, b) => a.last - b.last)) {
      if (admission.units > 0) lists[admission.column]![admission.record]!.push(admission)
    }
    this.#columns = lists
  }

  judgeAll(): void {
    for (const [column, byRecord] of this.#columns.entries()) {
      for (const [record, own] of byRecord.entries()) if (own.length > 0) this.#judge(column, record, own)
    }
  }

  /** The least that the column has used in the window of this record that ends at `nowMs`. */
  usedAtLeast(column: number, record: number, nowMs: number): number {
    const last = this.tickOf(record, nowMs)
    const from = last - this.#widthOf(record)
    const own = this.#columns[column]![record]!.filter((one) => one.first > from && one.last <= last)
    return [...own, ...this.#carriedTo(column, record, from)].reduce((sum, { units }) => sum + units, 0)
  }

  tickOf(record: number, ms: number): number {
    return Math.floor(this.#ticks[record]!.position(ms))
  }

  /** The ticks over which the limit must hold. */
  #widthOf(record: number): number {
    return this.#had[record]!.buckets + this.#extra
  }

  #judge(column: number, record: number, own: readonly Admission[]): void {
    const width = this.#widthOf(record)
    const carried = this.#carriedTo(column, record, own[0]!.last - width)
    let kept = carried.reduce((sum, { units }) => sum + units, 0)
    let left = 0
    for (const [i, { last }] of own.entries()) {
      if (own[i + 1]?.last === last) continue // this window is judged with its last admission
      const from = last - width
      for (; left < carried.length && carried[left]!.tick <= from; left++) kept -= carried[left]!.units
      let used = kept
      for (let j = i; j >= 0 && own[j]!.last > from; j--) if (own[j]!.first > from) used += own[j]!.units
      this.windows++
      if (kept > 0) this.carried++
      const { limit, windowMs } = this.#had[record]!
      if (used === limit) this.full++
      if (used <= limit) continue
      this.over++
      if (this.complaints.length === MOST_COMPLAINTS) continue
      const where = `column ${column}, window ${record} of ${windowMs} ms, tick ${last}`
      this.complaints.push(`${where}: ${used} of ${limit}, ${kept} of them from before it`)
    }
  }

  /** Units of earlier records in ticks after `from`, that are kept. In the order of their ticks. */
  #carriedTo(column: number, record: number, from: number): Carried[] {
    const found: Carried[] = []
    let keptAfterMs = Number.NEGATIVE_INFINITY
    for (let earlier = record - 1; earlier >= 0; earlier--) {
      const { endedMs, windowMs, buckets } = this.#had[earlier]!
      const coveredMs = windowMs * (1 - (1 - this.#extra) / buckets)
      keptAfterMs = Math.max(keptAfterMs, endedMs - coveredMs)
      for (const { fromMs, units } of this.#columns[column]![earlier]!) {
        const tick = this.tickOf(record, fromMs)
        if (fromMs > keptAfterMs && tick > from) found.push({ tick, units })
      }
    }
    return found.sort((a, b) => a.tick - b.tick)
  }
}
