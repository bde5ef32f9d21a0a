// The algorithms that keep entries of units: each counts until its end. They differ in which entry a charge goes into,
// and when an entry ends.

import type { CalendarPeriod } from '../core/calendar.js'
import { areOfPeriod, isOfPeriod, type RemoteRule } from '../remote/remote-rule.js'
import { untilAtMost, usedUnits } from '../remote/sliding-counter.js'
import { type CallTime, Count, NOTHING, type Refunded } from './count.js'
import type { Entry, SavedCount } from './saved-count.js'

/** The most units of a window that count. */
const MOST_UNITS = 2 ** 24 - 1
const MOST_IN_FIXED = 2 ** 21 - 1

export abstract class EntryCount extends Count {
  /** Those that count, the oldest first. */
  protected entries: Entry[]
  /** Those that have left. They stay until the count changes: a clock that steps back before finds them again. */
  readonly #left: readonly Entry[]

  constructor(
    remote: RemoteRule,
    limit: number,
    time: CallTime,
    saved: SavedCount | undefined,
    ticksPerMs?: number,
  ) {
    super(remote, limit, time, saved, ticksPerMs)
    const all = saved?.entries ?? []
    this.entries = all.filter(({ at }) => this.tick < this.endOf(at))
    this.#left = all.slice(0, all.length - this.entries.length)
  }

  /** The time of the entry of a charge as of this tick. Undefined: it does not count any more. */
  protected abstract placeOf(tick: number): number | undefined
  /** The tick from which an entry does not count. */
  protected abstract endOf(at: number): number
  /** The last tick of the charges of an entry. */
  protected abstract lastOf(at: number): number

  protected get most(): number {
    return MOST_UNITS
  }

  get used(): number {
    return sumOf(this.entries)
  }

  fits(cost: number): boolean {
    return cost === 0 || this.used + cost <= this.limit
  }

  untilFitsMs(cost: number): number {
    return this.untilMsOf(this.atMostFrom(this.limit - cost))
  }

  get remaining(): number {
    return Math.max(0, this.limit - this.used)
  }

  get emptyMs(): number {
    const newest = this.entries.at(-1)
    return newest === undefined ? 0 : this.untilMsOf(this.endOf(newest.at))
  }

  usedInLast(ms: number): number {
    const from = this.placeOf(this.nowTick - ms * this.ticksPerMs) ?? Number.NEGATIVE_INFINITY
    return sumOf(this.entries.filter(({ at }) => at >= from))
  }

  charge(cost: number, ageMs = 0): number {
    const at = this.placeOf(this.tick - ageMs * this.ticksPerMs)
    const units = Math.min(cost, this.most - this.unitsBeside(at))
    if (at === undefined || units <= 0 || this.tick >= this.endOf(at)) return NOTHING
    this.charged(this.endOf(at))
    return this.add(at, units)
  }

  /** The units that leave less room for a charge with this time. */
  protected unitsBeside(_at: number | undefined): number {
    return sumOf(this.entries)
  }

  /** Adds units, and returns the mark of the receipt. */
  protected add(at: number, units: number): number {
    const same = this.entries.findIndex((entry) => entry.at === at)
    if (same >= 0) this.entries[same] = { at, units: this.entries[same]!.units + units, serial: 0 }
    else this.insert({ at, units, serial: 0 })
    return at
  }

  protected insert(entry: Entry): void {
    const after = this.entries.findLastIndex(({ at }) => at <= entry.at)
    this.entries.splice(after + 1, 0, entry)
  }

  refund(cost: number): Refunded {
    let given = 0
    let newest = 0
    let ageMs = 0
    for (const entry of [...this.entries]) {
      if (given === cost) break
      newest = this.take(entry, cost - given)
      given += newest
      ageMs = Math.max(0, Math.floor((this.tick - this.lastOf(entry.at)) / this.ticksPerMs))
    }
    if (given > 0) this.countRefund()
    return { given, newest, ageMs }
  }

  giveBack(mark: number, cost: number): number {
    const entry = this.entryOf(mark)
    return entry === undefined || cost === 0 ? 0 : this.take(entry, cost)
  }

  protected entryOf(mark: number): Entry | undefined {
    return this.entries.find(({ at }) => at === mark)
  }

  protected take(entry: Entry, most: number): number {
    const less = Math.min(entry.units, most)
    const at = this.entries.indexOf(entry)
    const left = { ...entry, units: entry.units - less }
    this.entries.splice(at, 1, ...(left.units > 0 ? [left] : []))
    this.isChanged = true
    return less
  }

  protected empty(): void {
    this.entries = []
  }

  get saved(): SavedCount {
    return this.savedWith(this.isChanged ? this.entries : [...this.#left, ...this.entries])
  }

  /** The first tick from which at most so many units count. */
  protected atMostFrom(units: number): number {
    let left = this.used - units
    let end = this.nowTick
    for (const entry of this.entries) {
      if (left <= 0) break
      end = this.endOf(entry.at)
      left -= entry.units
    }
    return end
  }
}

const sumOf = (entries: readonly Entry[]): number => entries.reduce((sum, { units }) => sum + units, 0)

/** A sliding window: an entry for each granule, which counts for the window and a granule. */
export class WindowCount extends EntryCount {
  protected placeOf(tick: number): number {
    return Math.floor((tick * this.remote.parts) / this.windowTicks)
  }

  protected endOf(at: number): number {
    const { parts } = this.remote
    return Math.ceil(((at + parts + 1) * this.windowTicks) / parts) + this.skewTicks
  }

  protected lastOf(at: number): number {
    return Math.ceil(((at + 1) * this.windowTicks) / this.remote.parts)
  }
}

/** A fixed window: one entry, at the time of its beginning. */
export class FixedCount extends EntryCount {
  protected placeOf(tick: number): number | undefined {
    const { parts, windowMs } = this.remote
    const present = this.entries[0]
    if (present === undefined) return Math.floor(tick / parts) * parts
    if (tick >= present.at) return present.at
    // What was used before the window of the first request began counts in it, if it is not older than a window.
    return parts < windowMs && this.tick - tick < windowMs ? present.at : undefined
  }

  protected endOf(at: number): number {
    const { parts, windowMs } = this.remote
    // One that is aligned to the clock has a number: each process may begin it at another time, but counts in it.
    return at + windowMs + (parts < windowMs ? this.skewTicks : 0)
  }

  protected lastOf(at: number): number {
    return this.endOf(at)
  }

  protected override get most(): number {
    return MOST_IN_FIXED
  }

  override usedInLast(): number {
    return this.used
  }
}

/**
 * The periods of a calendar: one entry, at the end of its period. No process counts a unit for less long than to the end
 * that it has read. One whose own end of that period is later, because it has other data of time zones, counts the units
 * to that one, and writes it with its own charge.
 */
export class CalendarCount extends FixedCount {
  readonly #own: CalendarPeriod

  constructor(remote: RemoteRule, limit: number, time: CallTime, saved: SavedCount | undefined) {
    const own = remote.calendar!.at(Math.max(Math.floor(time.nowMs), saved?.newest ?? 0))
    const entries = saved?.entries.map((entry) =>
      isOfPeriod(entry.at, own.startMs, remote.windowMs)
        ? { ...entry, at: Math.max(entry.at, own.endMs) }
        : entry,
    )
    super(remote, limit, time, saved && { ...saved, entries: entries! })
    this.#own = own
  }

  protected override placeOf(tick: number): number | undefined {
    const present = this.entries[0]?.at ?? this.#own.endMs
    // That of a period which is kept for longer than the own data say may be older.
    return tick >= this.#own.startMs || present < this.#own.endMs ? present : undefined
  }

  protected override endOf(at: number): number {
    return at
  }

  /** The end may have been moved since the receipt. */
  protected override entryOf(mark: number): Entry | undefined {
    return this.entries.find(({ at }) => areOfPeriod(mark, at, this.remote.windowMs))
  }
}

/** A sliding counter: an entry for the present window, and one for that before, which counts by the part still covered. */
export class CounterCount extends EntryCount {
  protected placeOf(tick: number): number {
    return Math.floor(tick / this.windowTicks)
  }

  protected endOf(at: number): number {
    return (at + 2) * this.windowTicks
  }

  protected lastOf(at: number): number {
    return (at + 1) * this.windowTicks
  }

  override get used(): number {
    return usedUnits(this.#counted)
  }

  /** Those of the other window come to less and less. They must not make a charge of this one free. */
  protected override unitsBeside(at: number | undefined): number {
    return at === undefined ? 0 : (this.entryOf(at)?.units ?? 0)
  }

  protected override atMostFrom(units: number): number {
    return this.tick + untilAtMost(units, this.#counted)
  }

  get #counted() {
    const windowMs = this.windowTicks
    const index = this.placeOf(this.tick)
    const unitsAt = (at: number) => this.entryOf(at)?.units ?? 0
    const elapsedMs = this.tick - index * windowMs
    return { windowMs, elapsedMs, previous: unitsAt(index - 1), current: unitsAt(index) }
  }
}
