import type { Reading } from '../core/reading.js'
import { ADM, LIVE, MOST_BLOCKED, STATE, TICK } from '../memory/layout.js'
import type { Table } from '../memory/table.js'
import { load, read } from '../memory/words.js'
import type { SlidingWindow } from './sliding-window.js'

/**
 * Keeps blocks from filling the table: of a key's 32 ways at most half stay blocked. Beyond that, the block that ends soonest
 * gives way:
 *
 *  - to another block, here. Its key keeps its way and its counts: only the block ends, by a sum, as `unblock` ends one.
 *  - to a new key that finds no way to take, in `memory/insertion.ts`. That key takes the way over with its counts.
 *
 * The block is set first and the others are counted then, by atomic loads: of two threads that block at once, the later to
 * count sees both blocks. Both may see both, and then each ends one: so many threads as block at the same moment, so many
 * blocks less than half may stay. A thread that dies in between leaves one block too many, until the next one in these ways.
 * Ways are in the pairs of sets of many keys, so a block for one key may leave another key with more than half of its ways
 * blocked. That key's next block, or its insertion, makes up for it.
 */
export class BlockBound {
  readonly #table: Table
  readonly #window: SlidingWindow
  /** The admission word by which `#surplus` chose its way. */
  #chosen = 0

  constructor(table: Table, window: SlidingWindow) {
    this.#table = table
    this.#window = window
  }

  /** Ends blocks of other keys until at most half of this key's ways are blocked. Returns how many it ended. */
  hold(lo: number, hi: number, reading: Reading): number {
    for (let ended = 0; ; ) {
      const way = this.#surplus(lo, hi, reading)
      if (way < 0) return ended
      if (this.#end(way, reading)) ended++
    }
  }

  /** Of other keys' blocked ways the one whose block ends soonest; -1 where no more than half are blocked. */
  #surplus(lo: number, hi: number, reading: Reading): number {
    const window = this.#window
    let blocked = 0
    let soonest = -1
    let soonestMs = Number.POSITIVE_INFINITY
    for (const way of this.#table.waysOf(lo, hi)) {
      const base = window.base(way)
      const v = load(window.words, base + ADM)
      if ((v & STATE) !== LIVE || !window.isBlocked(base, v, reading.nowMs)) continue
      blocked++
      const ms = window.blockedMs(base, reading.nowMs)
      if (this.#table.isNamed(way, lo, hi) || (soonest >= 0 && ms >= soonestMs)) continue
      soonest = way
      soonestMs = ms
      this.#chosen = v
    }
    return blocked > MOST_BLOCKED ? soonest : -1
  }

  /**
   * Ends the block by which `#surplus` chose this way, or says false: something else happened to the way; look again.
   *
   * The compare-exchange expects the admission word v that `#surplus` loaded, and UNTIL was read after v. A block that
   * replaces the chosen one writes UNTIL first, then the admission word with a new epoch:
   *
   *  - Its new epoch stands before the load of v: UNTIL was the new one's, and the new block is the one chosen.
   *  - Its new epoch stands after the load of v and before this compare-exchange: this fails. With a word loaded here,
   *    it would end the new block, which may be for ever.
   *  - Its new epoch comes after this compare-exchange: that step of the block fails, and the block is set again.
   *
   * The sum is complete: the tick and the buckets are read after v, as in `decide`.
   */
  #end(way: number, reading: Reading): boolean {
    const window = this.#window
    const base = window.base(way)
    if (!window.resum(base, this.#chosen, read(window.words, base + TICK), reading)) return false
    window.epochs.count(base)
    return true
  }
}
