import { HEADER, NAMES_AT, RECORD, RECORD_WORDS, RECORDS_AT } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import { recordIn } from '#millrace/memory/records.js'
import type { Machine } from './machine.js'
import { changesOf, GRANULE_MS, type Scenario } from './scenario.js'

export interface TimelineSize {
  readonly records: number
  readonly places: number
}

/**
 * The records of a rule, and all moments at which its units may count. A *place* is a moment as one record
 * counts it. The *tick place* of a tick of a record is the first of its places.
 */
export class Timeline {
  readonly size: TimelineSize
  /** In milliseconds, in order. */
  readonly moments: readonly number[]
  readonly #machine: Machine
  readonly #arena: Arena
  readonly #windows: Float64Array
  readonly #times: readonly number[]
  /**
   * The index of the first note. It has a bit for each record that has been the present one. A note for each
   * record follows: the position of the clock when another record replaced it, plus one.
   */
  readonly #note: number

  /** The most records that a scenario's rule may have, and the number of their places. */
  static sizeFor(scenario: Scenario, rule: number, ring: number): TimelineSize {
    const records = recordsFor(scenario, rule)
    return { records, places: records * momentsOf(scenario, rule, ring).length }
  }

  static notesFor({ records }: TimelineSize): number {
    return 1 + records
  }

  /** `scenario` has the first window of the rule with this index. `note` is the index of the first note. */
  constructor(scenario: Scenario, rule: number, machine: Machine, arena: Arena, note: number) {
    const { buffer, byteOffset } = arena.words
    this.moments = momentsOf(scenario, rule, arena.shape.ring)
    this.size = Timeline.sizeFor(scenario, rule, arena.shape.ring)
    this.#machine = machine
    this.#arena = arena
    this.#windows = new Float64Array(buffer, byteOffset, NAMES_AT / 2)
    this.#times = scenario.times
    this.#note = note
    machine.setNote(note, 1)
  }

  /** CURRENT has changed. */
  changes(before: number, after: number): void {
    const machine = this.#machine
    machine.setNote(this.#note, machine.getNote(this.#note) | (1 << recordIn(after)))
    if (recordIn(before) !== recordIn(after))
      machine.setNote(this.#endOf(recordIn(before)), machine.getNote(0) + 1)
  }

  /** The last moment at which this was the present record, or `ms` if that is earlier. */
  until(record: number, ms: number): number {
    const end = this.#machine.getNote(this.#endOf(record))
    return end === 0 ? ms : Math.min(ms, this.#times[end - 1]! * GRANULE_MS)
  }

  #endOf(record: number): number {
    return this.#note + 1 + record
  }

  get current(): number {
    return recordIn(this.#arena.words[HEADER.CURRENT]!)
  }

  /** The records that are or were the present one, in order. */
  get records(): number[] {
    const used = this.#machine.getNote(this.#note)
    return Array.from({ length: 32 - Math.clz32(used) }, (_, record) => record).filter(
      (record) => (used & (1 << record)) !== 0,
    )
  }

  /** Granules in the window of a record. */
  bucketsOf(record: number): number {
    return this.#arena.words[this.#at(record) + RECORD.BUCKETS]!
  }

  /** A granule of a record in milliseconds. */
  granuleMsOf(record: number): number {
    return this.#windowMsOf(record) / this.bucketsOf(record)
  }

  /** The tick of a moment by a record, without its shift. */
  tickAt(record: number, ms: number): number {
    return Math.floor((ms * this.bucketsOf(record)) / this.#windowMsOf(record))
  }

  recordOf(place: number): number {
    return Math.floor(place / this.moments.length)
  }

  msOf(place: number): number {
    return this.moments[place % this.moments.length]!
  }

  tickOf(place: number): number {
    return this.tickAt(this.recordOf(place), this.msOf(place))
  }

  /** The places of a record, in order. */
  *placesOf(record: number): Generator<number> {
    const from = record * this.moments.length
    for (let place = from; place < from + this.moments.length; place++) yield place
  }

  /** The place of a moment, or -1. */
  placeAt(record: number, ms: number): number {
    const index = this.moments.indexOf(ms)
    return index < 0 ? -1 : record * this.moments.length + index
  }

  /** The tick place of a tick of a record, or -1. */
  placeOfTick(record: number, tick: number): number {
    for (const place of this.placesOf(record)) if (this.tickOf(place) === tick) return place
    return -1
  }

  /** The places of the tick of a place. */
  placesOfTick(place: number): number[] {
    const tick = this.tickOf(place)
    return [...this.placesOf(this.recordOf(place))].filter((other) => this.tickOf(other) === tick)
  }

  /** The tick place of a tick word, or -1. */
  placeOfWord(word: number): number {
    for (const record of this.records) {
      for (const place of this.placesOf(record)) {
        if ((this.shiftedTickOf(place) | 0) === word) return place
      }
    }
    return -1
  }

  /**
   * The tick place of a bucket in a cell whose tick word is `newest`, or -1. Laps have eight bits: the latest
   * possible tick is taken.
   */
  placeOfBucket(slot: number, bucket: number, newest: number): number {
    const { ring } = this.#arena.shape
    const lap = bucket >>> 24
    let latest = -1
    let found = -1
    for (const record of this.records) {
      for (const place of this.placesOf(record)) {
        const tick = this.shiftedTickOf(place)
        if (tick > newest >>> 0 || tick <= latest) continue
        if (tick % ring !== slot || (Math.floor(tick / ring) & 255) !== lap) continue
        latest = tick
        found = place
      }
    }
    return found
  }

  /** The tick of a place as a word of shared memory, but not as a signed integer. */
  shiftedTickOf(place: number): number {
    const shift = this.#arena.words[this.#at(this.recordOf(place)) + RECORD.SHIFT]! >>> 0
    return (this.tickOf(place) + shift) % this.#arena.shape.modulus
  }

  /** The tick by a record of a cell whose tick word is `word`, without the shift. */
  tickOfWord(record: number, word: number): number {
    const { modulus } = this.#arena.shape
    const shift = this.#arena.words[this.#at(record) + RECORD.SHIFT]! >>> 0
    return ((word >>> 0) - shift + modulus) % modulus
  }

  #windowMsOf(record: number): number {
    return this.#windows[(this.#at(record) + RECORD.WINDOW_MS) / 2]!
  }

  #at(record: number): number {
    return RECORDS_AT + record * RECORD_WORDS
  }
}

/** The most records that a rule may have. A change that is overtaken by another one makes one more. */
function recordsFor(scenario: Scenario, rule: number): number {
  const changes = changesOf(scenario, rule).length
  const updates = scenario.threads.flat().filter((op) => op.do === 'update').length
  return 1 + changes * (changes + updates)
}

/**
 * The readings of the clock; the beginnings of their ticks, and the ends if there are several records, where
 * a conversion may charge; the ticks at which a long move stops.
 */
function momentsOf(scenario: Scenario, rule: number, ring: number): number[] {
  const { times, before = [], ahead = [] } = scenario
  const changes = changesOf(scenario, rule)
  const lengths = [...new Set([1, ...changes.map(({ granule = 1 }) => granule)])].map((s) => s * GRANULE_MS)
  const readings = [...times, ...before.map(([time]) => time)].flatMap((time) =>
    [0, ...ahead].map((more) => (time + more) * GRANULE_MS),
  )
  // A decision may keep its reading in whole milliseconds.
  const moments = new Set([...readings, ...readings.map(Math.floor)])
  for (const granuleMs of lengths) {
    const ticks = new Set(readings.map((ms) => Math.floor(ms / granuleMs)))
    for (const from of ticks) {
      for (const to of ticks) {
        const beyond = to - from - 64 * ring
        if (beyond > 0) ticks.add(from + 64 * ring + 256 * ring * Math.floor(beyond / (256 * ring)))
      }
    }
    for (const tick of ticks) {
      moments.add(tick * granuleMs)
      if (changes.length > 0) moments.add((tick + 1) * granuleMs)
    }
  }
  for (const ms of [...moments]) {
    for (const granuleMs of lengths) moments.add(Math.floor(ms / granuleMs) * granuleMs)
  }
  return [...moments].sort((a, b) => a - b)
}
