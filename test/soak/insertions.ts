// Counts the keys that were given a place, which no statistic does: beside the real insertion, changing nothing of it.
import { SlidingWindow } from '#millrace/algorithms/sliding-window.js'
import type { Arena } from '#millrace/memory/arena.js'
import { Insertion } from '#millrace/memory/insertion.js'
import { ADM, FREE, LIVE, STATE } from '#millrace/memory/layout.js'
import { Table } from '#millrace/memory/table.js'
import { load } from '#millrace/memory/words.js'

/** The insertions of this thread into one arena. */
export class Insertions {
  /** Ways that this thread made a key's. */
  made = 0
  /** Ways that this thread may have made a key's: when it looked they were another's already. */
  unclear = 0
  readonly #arena: Arena
  readonly #table: Table

  constructor(arena: Arena) {
    this.#arena = arena
    this.#table = new Table(arena.words, arena.shape)
  }

  /** From here on, what this thread inserts is counted here. */
  watch(): void {
    watching = this
  }

  /** A way was named, found to be its key's only one and settled; what stands there now says whether it was promoted. */
  note(way: number, lo: number, hi: number): void {
    const state = load(this.#arena.words, this.#table.base(way) + ADM) & STATE
    const isNamed = this.#table.isNamed(way, lo, hi)
    if (state === LIVE && isNamed) this.made++
    else if (state !== FREE || !isNamed) this.unclear++
    // FREE under its own name: another thread that brought the same key has vetoed it
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
