import type { Machine } from './machine.js'

/** The notes of a charge: tick + 1, units, the units owed to a refund, the key. */
const TICK = 0
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

/** An admission that its thread gives back or settles later. `tick` is an index; -1: no admission. */
export interface Held {
  readonly tick: number
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
  set(thread: number, tick: number, units: number, key: number): void {
    this.#write(this.#at(thread), [tick + 1, units, 0, key, 0])
  }

  /** A thread has no pending charge. */
  end(thread: number): void {
    this.set(thread, -1, 0, ANY_KEY)
  }

  isRobbed(thread: number): boolean {
    return this.#machine.getNote(this.#at(thread) + ROBBED) === 1
  }

  /** The units of the pending charge that a refund by key has counted as refunded. */
  owed(thread: number): number {
    return this.#machine.getNote(this.#at(thread) + OWED)
  }

  /** The thread's pending charge is admitted, and given back or settled later. */
  hold(thread: number, tick: number, units: number, key: number): void {
    const isRobbed = this.#machine.getNote(this.#at(thread) + ROBBED)
    this.#write(this.#at(thread) + HELD, [tick + 1, units, 0, key, isRobbed])
  }

  held(thread: number): Held {
    const at = this.#at(thread) + HELD
    const [tick, units, robbed] = [TICK, UNITS, ROBBED].map((which) => this.#machine.getNote(at + which))
    return { tick: tick! - 1, units: units!, isRobbed: robbed === 1 }
  }

  /** A thread has given back units of the admission that it holds. */
  release(thread: number, units: number): void {
    const note = this.#at(thread) + HELD + UNITS
    this.#machine.setNote(note, this.#machine.getNote(note) - units)
  }

  /** A refund by key has taken from this tick. It may have taken any charge there of these threads. */
  rob(threads: number, by: number, key: number, tick: number): void {
    for (let thread = 0; thread < threads; thread++) {
      const note = this.#at(thread)
      if (this.#isOf(note + HELD, key, tick)) this.#machine.setNote(note + HELD + ROBBED, 1)
      if (thread !== by && this.#isOf(note, key, tick)) this.#machine.setNote(note + ROBBED, 1)
    }
  }

  /** Pending charges of other threads than `by` owe these units. */
  owe(threads: number, by: number, key: number, tick: number, units: number): void {
    let rest = units
    for (let thread = 0; thread < threads && rest > 0; thread++) {
      const note = this.#at(thread)
      if (thread === by || !this.#isOf(note, key, tick)) continue
      const owed = Math.min(rest, this.#machine.getNote(note + UNITS) - this.owed(thread))
      this.#machine.setNote(note + OWED, this.owed(thread) + owed)
      rest -= owed
    }
  }

  #isOf(note: number, key: number, tick: number): boolean {
    const isOfKey = [ANY_KEY, key].includes(this.#machine.getNote(note + KEY))
    return isOfKey && this.#machine.getNote(note + TICK) === tick + 1
  }

  #at(thread: number): number {
    return this.#first + NOTES_OF_THREAD * thread
  }

  #write(note: number, values: readonly number[]): void {
    for (const [i, value] of values.entries()) this.#machine.setNote(note + i, value)
  }
}
