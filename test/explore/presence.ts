import type { Machine } from './machine.js'

/** Note 0 is the clock's position, the next three are masks of threads. */
const DEAD = 1
const ACTIVE = 2
const OVERLAPPED = 3
/** The first note that the ledgers may use. */
export const FIRST_OF_LEDGERS = 4

/** Records which threads are dead, inside an operation, or overlapped by another one's, as notes. */
export class Presence {
  readonly #machine: Machine

  constructor(machine: Machine) {
    this.#machine = machine
  }

  get dead(): number {
    return this.#machine.getNote(DEAD)
  }

  dies(thread: number): void {
    this.#machine.setNote(DEAD, this.dead | (1 << thread))
  }

  isUnderWay(thread: number): boolean {
    return (this.#machine.getNote(ACTIVE) & (1 << thread)) !== 0
  }

  isOverlapped(thread: number): boolean {
    return (this.#machine.getNote(OVERLAPPED) & (1 << thread)) !== 0
  }

  /** A thread is about to do an operation: it overlaps every other thread that is inside an operation. */
  beforeOperation(thread: number): void {
    const active = this.#machine.getNote(ACTIVE)
    const others = active & ~(1 << thread)
    this.#machine.setNote(ACTIVE, active | (1 << thread))
    if (others === 0) return
    this.#machine.setNote(OVERLAPPED, this.#machine.getNote(OVERLAPPED) | others | (1 << thread))
  }

  /** The operation of a thread has returned. */
  ends(thread: number): void {
    const others = ~(1 << thread)
    this.#machine.setNote(ACTIVE, this.#machine.getNote(ACTIVE) & others)
    this.#machine.setNote(OVERLAPPED, this.#machine.getNote(OVERLAPPED) & others)
  }
}
