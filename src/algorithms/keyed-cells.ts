import type { Reading } from '../core/reading.js'
import { BlockTime, leftUntil } from '../memory/block-time.js'
import { ADM, HI, LIVE, NAMES_AT, type Shape, STATE, TICK, UNTIL } from '../memory/layout.js'
import { compareExchange, isStill, load, read, type Words } from '../memory/words.js'
import { FULL } from './algorithm.js'
import { Epochs } from './epochs.js'

/** What all algorithms do with the head of a cell: name, admission word, tick, and block. */
export abstract class KeyedCells {
  readonly words: Words
  readonly shape: Shape
  readonly until: BlockTime
  readonly epochs: Epochs
  /** @see Algorithm.blockMask */
  abstract readonly blockMask: number
  chargedTick = 0
  chargedStamp = 0
  lastAdm = 0
  lastUntil = 0
  suspectFrom = 0
  readonly #record: number
  readonly #waysAt: number
  readonly #wayWords: number

  constructor(words: Words, shape: Shape, originMs: number) {
    this.words = words
    this.shape = shape
    this.until = new BlockTime(originMs)
    this.epochs = new Epochs(shape)
    this.#record = shape.record
    this.#waysAt = shape.waysAt
    this.#wayWords = shape.wayWords
  }

  /** Brings a cell's tick to the reading. */
  abstract enter(base: number, reading: Reading): void

  base(way: number): number {
    return this.#waysAt + way * this.#wayWords
  }

  /** Whether the way is LIVE by its admission word `v`, and has the key's name, read after `v`. */
  isOf(v: number, way: number, lo: number, hi: number): boolean {
    if ((v & STATE) !== LIVE || read(this.words, NAMES_AT + way) !== lo) return false
    return read(this.words, this.base(way) + HI) === (hi | this.#record)
  }

  observe(way: number, lo: number, hi: number): boolean {
    const v = load(this.words, this.base(way) + ADM)
    if (!this.isOf(v, way, lo, hi)) return false
    this.full(v, read(this.words, this.base(way) + TICK))
    return true
  }

  isUnchanged(way: number, lo: number, hi: number, v: number, e: number): boolean {
    return load(this.words, this.base(way) + ADM) === v && this.isCurrent(v, way, lo, hi, e)
  }

  isStillUnchanged(way: number, v: number, e: number): boolean {
    const base = this.base(way)
    return isStill(this.words, base + ADM, v) && read(this.words, base + TICK) === e
  }

  /** Keeps what a refusal found. */
  full(v: number, e: number): typeof FULL {
    this.lastAdm = v
    this.chargedTick = e
    return FULL
  }

  /** Whether the cell's tick is `e` and the way is the key's. */
  isCurrent(v: number, way: number, lo: number, hi: number, e: number): boolean {
    return read(this.words, this.base(way) + TICK) === e && this.isOf(v, way, lo, hi)
  }

  /**
   * Milliseconds until the block ends, 0 or less if it has ended. Valid only if the admission word is
   * blocked.
   */
  blockedMs(base: number, nowMs: number): number {
    this.lastUntil = load(this.words, base + UNTIL)
    return this.until.leftMs(this.lastUntil, nowMs)
  }
  /** @see Cells.leaveBlock */
  leaveBlock(base: number, nowMs: number): void {
    const u = load(this.words, base + UNTIL)
    if (u !== 0 && this.until.isOwn(u, nowMs)) compareExchange(this.words, base + UNTIL, u, leftUntil(u))
  }
}
