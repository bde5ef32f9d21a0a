import type { Machine } from './machine.js'

/** The notes of a charge: tick place + 1, units, the units owed to a refund, the key. */
const PLACE = 0
const UNITS = 1
const OWED = 2
const KEY = 3
/** Whether a refund by key may have taken the charge. */
const ROBBED = 4
/** The same notes of an admission that the thread gives back or settles later. */
const HELD = 5
const NOTES_OF_THREAD = 10
/** Stands for all keys of a batch. */
export const ANY_KEY = 0

/** An admission that its thread gives back or settles later. -1: no admission. */
export interface Held {
  /** The place of its tick (`timeline.ts`). */
  readonly place: number
  readonly units: number
  readonly isRobbed: boolean
}

/** The notes of one ledger about each thread: its pending charge, and the admission that it holds. */
export class ThreadCharges {
  readonly #machine: Machine
  readonly #first: number

  /** The number of notes for this many threads. */
  static notesFor(threads: number): number {
    return NOTES_OF_THREAD * threads
  }

  /** `first` is the index of the first note. */
  constructor(machine: Machine, first: number) {
    this.#machine = machine
    this.#first = first
  }

  /** A thread has charged units, which are pending. */
  set(thread: number, place: number, units: number, key: number): void {
    this.#write(this.#at(thread), [place + 1, units, 0, key, 0])
  }

  /** A thread has no pending charge. */
  end(thread: number): void {
    this.set(thread, -1, 0, ANY_KEY)
  }

  /** The thread's pending charge. */
  pending(thread: number): Pick<Held, 'place' | 'units'> {
    const at = this.#at(thread)
    return { place: this.#machine.getNote(at + PLACE) - 1, units: this.#machine.getNote(at + UNITS) }
  }

  isRobbed(thread: number): boolean {
    return this.#machine.getNote(this.#at(thread) + ROBBED) === 1
  }

  /** The units of the pending charge that a refund by key has counted as refunded. */
  owed(thread: number): number {
    return this.#machine.getNote(this.#at(thread) + OWED)
  }

  /** The thread's pending charge is admitted, and given back or settled later. */
  hold(thread: number, place: number, units: number, key: number): void {
    const isRobbed = this.#machine.getNote(this.#at(thread) + ROBBED)
    this.#write(this.#at(thread) + HELD, [place + 1, units, 0, key, isRobbed])
  }

  held(thread: number): Held {
    const at = this.#at(thread) + HELD
    const [place, units, robbed] = [PLACE, UNITS, ROBBED].map((which) => this.#machine.getNote(at + which))
    return { place: place! - 1, units: units!, isRobbed: robbed === 1 }
  }

  /** A thread has given back units of the admission that it holds. */
  release(thread: number, units: number): void {
    const note = this.#at(thread) + HELD + UNITS
    this.#machine.setNote(note, this.#machine.getNote(note) - units)
  }

  /** A refund by key has taken from this tick. It may have taken any charge there of these threads. */
  rob(threads: number, by: number, key: number, place: number): void {
    for (let thread = 0; thread < threads; thread++) {
      const note = this.#at(thread)
      if (this.#isOf(note + HELD, key, place)) this.#machine.setNote(note + HELD + ROBBED, 1)
      if (thread !== by && this.#isOf(note, key, place)) this.#machine.setNote(note + ROBBED, 1)
    }
  }

  /** Pending charges of other threads than `by` owe these units. */
  owe(threads: number, by: number, key: number, place: number, units: number): void {
    let rest = units
    for (let thread = 0; thread < threads && rest > 0; thread++) {
      const note = this.#at(thread)
      if (thread === by || !this.#isOf(note, key, place)) continue
      const owed = Math.min(rest, this.#machine.getNote(note + UNITS) - this.owed(thread))
      this.#machine.setNote(note + OWED, this.owed(thread) + owed)
      rest -= owed
    }
  }

  #isOf(note: number, key: number, place: number): boolean {
    const isOfKey = [ANY_KEY, key].includes(this.#machine.getNote(note + KEY))
    return isOfKey && this.#machine.getNote(note + PLACE) === place + 1
  }

  #at(thread: number): number {
    return this.#first + NOTES_OF_THREAD * thread
  }

  #write(note: number, values: readonly number[]): void {
    for (const [i, value] of values.entries()) this.#machine.setNote(note + i, value)
  }
}
