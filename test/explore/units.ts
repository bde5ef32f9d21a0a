import type { Machine } from './machine.js'
import type { Timeline, TimelineSize } from './timeline.js'

/** How units came into a bucket: by admissions, by penalties, or by the conversion of a cell. */
export type Kind = typeof ADMITTED | typeof PENALTIES | typeof CARRIED
export const ADMITTED = 0
export const PENALTIES = 1
/** An earlier record has charged these units before. */
export const CARRIED = 2
const KINDS = 3

/**
 * The notes of one ledger about the units of each key. An admission is noted at the place at which it takes
 * effect, everything else at the place of its tick.
 */
export class Units {
  readonly #machine: Machine
  readonly #timeline: Timeline
  readonly #keys: readonly number[]
  readonly #at: number
  readonly #limitsAt: number
  readonly #forgottenAt: number

  static notesFor(keys: number, { records, places }: TimelineSize): number {
    return keys * (KINDS * places + 2 * records)
  }

  /** `at` is the index of the first note. */
  constructor(machine: Machine, timeline: Timeline, keys: readonly number[], at: number) {
    this.#machine = machine
    this.#timeline = timeline
    this.#keys = keys
    this.#at = at
    this.#limitsAt = at + keys.length * KINDS * timeline.size.places
    this.#forgottenAt = this.#limitsAt + keys.length * timeline.size.records
  }

  add(kind: Kind, key: number, place: number, units: number): void {
    const note = this.#note(kind, key, place)
    this.#machine.setNote(note, this.#machine.getNote(note) + units)
  }

  at(kind: Kind, key: number, place: number): number {
    return this.#machine.getNote(this.#note(kind, key, place))
  }

  /** The units in the tick of a place. */
  inTick(kind: Kind, key: number, place: number): number {
    return this.#timeline.placesOfTick(place).reduce((sum, other) => sum + this.at(kind, key, other), 0)
  }

  /** All units that were charged for the key at any time, without those that were taken out. */
  ever(key: number): number {
    const all = Array.from({ length: this.#timeline.size.places }, (_, place) => place)
    return all.reduce((sum, place) => sum + this.at(ADMITTED, key, place) + this.at(PENALTIES, key, place), 0)
  }

  /** Takes up to `most` units out of the tick of a place. Returns how many. */
  take(kind: Kind, key: number, place: number, most: number): number {
    let left = most
    for (const other of this.#timeline.placesOfTick(place)) {
      const taken = Math.min(left, this.at(kind, key, other))
      this.add(kind, key, other, -taken)
      left -= taken
    }
    return most - left
  }

  /**
   * Takes up to `most` units out that a conversion has brought to the tick of a place. Earlier records have
   * charged them. Returns how many.
   */
  takeCarried(key: number, place: number, most: number): number {
    const taken = this.take(CARRIED, key, place, most)
    let left = taken
    for (const earlier of this.#placesBefore(this.#timeline.recordOf(place))) {
      left -= this.take(ADMITTED, key, earlier, left)
      left -= this.take(PENALTIES, key, earlier, left)
    }
    return taken
  }

  /** The units charged by a record in the `wide` ticks that end with `tick`. */
  charged(kinds: readonly Kind[], key: number, record: number, tick: number, wide: number): number {
    return this.#sum(kinds, key, record, tick, wide, this.#timeline.placesOf(record))
  }

  /**
   * The units charged by earlier records, in the same ticks of this record. Without those that neither the cell's nor
   * their own record counted any more when the key's cell was converted.
   */
  chargedBefore(kinds: readonly Kind[], key: number, record: number, tick: number, wide: number): number {
    const places = [...this.#placesBefore(record)].filter((place) => {
      const from = this.#machine.getNote(this.#forgotten(key, this.#timeline.recordOf(place)))
      return this.#timeline.msOf(place) >= this.#timeline.moments[from]!
    })
    return this.#sum(kinds, key, record, tick, wide, places)
  }

  /** The units that a record has charged for the key before this moment count by no later record. */
  forget(key: number, record: number, beforeMs: number): void {
    const note = this.#forgotten(key, record)
    const { moments } = this.#timeline
    const index = moments.findIndex((ms) => ms >= beforeMs)
    this.#machine.setNote(note, Math.max(this.#machine.getNote(note), index < 0 ? moments.length : index))
  }

  /** The largest limit of the key's admissions by a record; 0: there was none. */
  limit(key: number, record: number): number {
    return this.#machine.getNote(this.#limit(key, record))
  }

  raiseLimit(key: number, record: number, limit: number): void {
    this.#machine.setNote(this.#limit(key, record), Math.max(limit, this.limit(key, record)))
  }

  #sum(
    kinds: readonly Kind[],
    key: number,
    record: number,
    tick: number,
    wide: number,
    places: Iterable<number>,
  ): number {
    let sum = 0
    for (const place of places) {
      const age = tick - this.#timeline.tickAt(record, this.#timeline.msOf(place))
      if (age < 0 || age >= wide) continue
      for (const kind of kinds) sum += this.at(kind, key, place)
    }
    return sum
  }

  *#placesBefore(record: number): Generator<number> {
    for (const earlier of this.#timeline.records) {
      if (earlier < record) yield* this.#timeline.placesOf(earlier)
    }
  }

  #note(kind: Kind, key: number, place: number): number {
    return this.#at + (KINDS * this.#keys.indexOf(key) + kind) * this.#timeline.size.places + place
  }

  #limit(key: number, record: number): number {
    return this.#limitsAt + this.#keys.indexOf(key) * this.#timeline.size.records + record
  }

  #forgotten(key: number, record: number): number {
    return this.#forgottenAt + this.#keys.indexOf(key) * this.#timeline.size.records + record
  }
}
