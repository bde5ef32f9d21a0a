import type { Reading } from '../core/reading.js'
import { again } from '../core/tries.js'
import { ADM, HASH, HI, LIVE, MOST_BLOCKED, STATE } from '../memory/layout.js'
import type { Table } from '../memory/table.js'
import { load, type Words } from '../memory/words.js'
import type { Algorithm } from './algorithm.js'
import type { Conversion } from './conversion.js'

export interface BlockBoundOptions {
  readonly record: number
  /** Whether another record is the present one. */
  readonly isOutdated: () => boolean
  /** Converts cells of other records. Undefined by the first record. */
  readonly conversion: Conversion | undefined
}

/**
 * Keeps blocks from filling the table: at most half of a key's 32 ways stay blocked. Beyond that, the block
 * that ends soonest gives way:
 *
 *  - To another block, here. Its key keeps its way and its counts. Only the block ends, as in `unblock`.
 *  - To a new key that finds no way, in `memory/insertion.ts`. The new key takes over the way with its
 *    counts.
 *
 * A thread sets its block first, and then counts the others by atomic loads. If two threads block at once,
 * the later one to count sees both blocks. Both may see both, and then each ends one. So k threads that block
 * at the same moment may leave up to k blocks less than half. A thread that dies in between leaves one block
 * too many, until the next block in these ways. A way belongs to the sets of many keys. A block for one key
 * may leave another key with more than half of its ways blocked. That key's next block or insertion corrects
 * it.
 */
export class BlockBound {
  readonly #words: Words
  readonly #table: Table
  readonly #algorithm: Algorithm
  readonly #record: number
  readonly #isOutdated: () => boolean
  readonly #conversion: Conversion | undefined
  /** The admission word with which `#surplus` chose its way. */
  #chosen = 0

  constructor(
    words: Words,
    table: Table,
    algorithm: Algorithm,
    { record, isOutdated, conversion }: BlockBoundOptions,
  ) {
    this.#words = words
    this.#table = table
    this.#algorithm = algorithm
    this.#record = record
    this.#isOutdated = isOutdated
    this.#conversion = conversion
  }

  /**
   * Ends blocks of other keys until at most half of this key's ways are blocked. Returns the number of ended
   * blocks. If the record is outdated, it may return earlier: the caller goes on by the present one.
   */
  hold(lo: number, hi: number, reading: Reading): number {
    for (let ended = 0, tries = 0; ; tries = again(tries)) {
      const way = this.#surplus(lo, hi, reading)
      if (way < 0) return ended
      if (this.#isOwn(way)) {
        if (this.#end(way, reading)) ended++
      } else if (!this.#conversion?.convert(way) || this.#isOutdated()) return ended
    }
  }

  /** Whether the cell counts by this record. The name is loaded after the admission word. */
  #isOwn(way: number): boolean {
    return (load(this.#words, this.#algorithm.base(way) + HI) & ~HASH) === this.#record
  }

  /** Another key's way whose block ends soonest, or -1 if no more than half of the ways are blocked. */
  #surplus(lo: number, hi: number, reading: Reading): number {
    const algorithm = this.#algorithm
    let blocked = 0
    let soonest = -1
    let soonestMs = Number.POSITIVE_INFINITY
    for (const way of this.#table.waysOf(lo, hi)) {
      const base = algorithm.base(way)
      const v = load(this.#words, base + ADM)
      if ((v & STATE) !== LIVE || !algorithm.isBlocked(base, v, reading.nowMs)) continue
      blocked++
      const ms = algorithm.blockedMs(base, reading.nowMs)
      if (this.#table.isNamed(way, lo, hi) || (soonest >= 0 && ms >= soonestMs)) continue
      soonest = way
      soonestMs = ms
      this.#chosen = v
    }
    return blocked > MOST_BLOCKED ? soonest : -1
  }

  /**
   * Ends the block with which `#surplus` chose this way. Returns false if the way has changed since.
   *
   * The CAS expects the admission word v that `#surplus` loaded. UNTIL was read after v. A block that
   * replaces the chosen one writes UNTIL first, and then the admission word with a new epoch. If it writes
   * that epoch
   *
   *  - before the load of v: UNTIL was its own, and it is the chosen block.
   *  - between the load of v and this CAS: this CAS fails. If it expected a word loaded here, it would end
   *    the new block, which may be for ever.
   *  - after this CAS: that write fails, and the block is set again.
   *
   * `endBlock` reads the counts after v. A cell of another record is not summed by this one: it is converted
   * first, and the block that ends soonest is chosen again. If that begins after `hold` has loaded the name,
   * the CAS fails.
   */
  #end(way: number, reading: Reading): boolean {
    const algorithm = this.#algorithm
    const base = algorithm.base(way)
    if (!algorithm.endBlock(base, this.#chosen, reading)) return false
    algorithm.epochs.count(base)
    return true
  }
}
