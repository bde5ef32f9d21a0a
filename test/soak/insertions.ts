// Counts inserted keys, which no statistic does, by observing the real insertion without changing it.
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import { Insertion } from '#millrace/memory/insertion.js'
import { ADM, FREE, LIVE, STATE } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import { Table } from '#millrace/memory/table.js'
import { load } from '#millrace/memory/words.js'

/** The insertions of this thread into one arena. */
export class Insertions {
  /** Keys that this thread has inserted. */
  made = 0
  /** Keys that this thread may have inserted: another key had the way when the thread checked. */
  unclear = 0
  readonly #arena: Arena
  readonly #table: Table

  constructor(arena: Arena) {
    this.#arena = arena
    this.#table = new Table(arena.words, arena.shape)
  }

  /** Starts to count this thread's insertions. */
  watch(): void {
    watching = this
  }

  /** An attempt to promote a named way has ended; the way's state shows whether it succeeded. */
  note(way: number, lo: number, hi: number): void {
    const state = load(this.#arena.words, this.#table.base(way) + ADM) & STATE
    const isNamed = this.#table.isNamed(way, lo, hi)
    if (state === LIVE && isNamed) this.made++
    else if (state !== FREE || !isNamed) this.unclear++
    // FREE with this name: another thread that inserts the same key has vetoed it
  }
}

let watching: Insertions | undefined
let chosen = -1
let settled = false

const { insert, choose } = Insertion.prototype
const { enter } = SlidingWindow.prototype

Insertion.prototype.choose = function (lo, hi) {
  chosen = choose.call(this, lo, hi)
  return chosen
}
SlidingWindow.prototype.enter = function (base, reading) {
  settled = true
  enter.call(this, base, reading)
}
Insertion.prototype.insert = function (lo, hi) {
  settled = false
  const hadRoom = insert.call(this, lo, hi)
  if (settled) watching?.note(chosen, lo, hi)
  return hadRoom
}
