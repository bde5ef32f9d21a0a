import type { RemoteRule } from '../remote/remote-rule.js'
import type { CallTime } from './count.js'
import { EntryCount } from './entry-counts.js'
import type { Entry, SavedCount } from './saved-count.js'

/** An entry and all of a log have fewer units than these. */
export const MARK_RANGE = 2 ** 23
export const UNITS_RANGE = 2 ** 24
/** Serials are modulo this. */
export const SERIALS = 2 ** 29
const TICKS_PER_MS = 1_000

/** A sliding log: an entry for each charge, with a serial, which counts for the window to the microsecond. */
export class LogCount extends EntryCount {
  constructor(remote: RemoteRule, limit: number, time: CallTime, saved: SavedCount | undefined) {
    super(remote, limit, time, saved, TICKS_PER_MS)
  }

  protected placeOf(tick: number): number {
    return Math.max(1, tick)
  }

  protected endOf(at: number): number {
    return at + this.windowTicks + this.skewTicks
  }

  protected lastOf(at: number): number {
    return at
  }

  override usedInLast(ms: number): number {
    const since = this.tick - ms * TICKS_PER_MS
    return this.entries.reduce((sum, { at, units }) => (at > since ? sum + units : sum), 0)
  }

  protected override add(at: number, units: number): number {
    const own = Math.min(units, MARK_RANGE - 1)
    this.serial = (this.serial + 1) % SERIALS
    this.insert({ at, units: own, serial: this.serial })
    const beyond = this.entries.length - this.remote.rule.units
    if (beyond > 0) this.entries.splice(0, beyond)
    return this.serial * MARK_RANGE + own
  }

  /** Entries of the same time are in the order of a sorted set, which compares texts: so scripts count the same. */
  protected override insert(entry: Entry): void {
    const after = this.entries.findLastIndex(({ at, ...each }) =>
      at === entry.at ? textOf(each) < textOf(entry) : at < entry.at,
    )
    this.entries.splice(after + 1, 0, entry)
  }

  protected override entryOf(mark: number): Entry | undefined {
    const [serial, units] = [Math.floor(mark / MARK_RANGE), mark % MARK_RANGE]
    return this.entries.find((entry) => entry.serial === serial && entry.units === units)
  }
}

const textOf = ({ units, serial }: Pick<Entry, 'units' | 'serial'>): string => `${units}:${serial}`
