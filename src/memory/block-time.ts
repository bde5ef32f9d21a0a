import { FOR_EVER, PER_SECOND } from './layout.js'

/** A way that changes hands keeps the end of a block with this bit changed: half of the range away. */
const LEFT = 0x80000000
/** An end that lies further in the past than this may be one that has been changed. 18 hours. */
const LONGEST_PAST = 2 ** 20

/** A longer block is for ever. Half of the range of UNTIL, about 4 years. */
const LONGEST_BLOCK_MS = (2 ** 31 - LONGEST_PAST) * (1000 / PER_SECOND)

/** What a way's next key finds in UNTIL instead of the end `word`. */
export function leftUntil(word: number): number {
  return (word ^ LEFT) | 0
}

/** The word of UNTIL for a sixteenth of a second later. For ever stays for ever. */
export function nextUntil(word: number): number {
  const until = word >>> 0
  if (until === FOR_EVER) return until
  return (until + 1 === FOR_EVER ? 0 : until + 1) | 0
}

/** Converts times to and from words of UNTIL. */
export class BlockTime {
  readonly #originMs: number

  constructor(originMs: number) {
    this.#originMs = originMs
  }

  /** The word for `ms` milliseconds after `nowMs`. */
  wordFor(nowMs: number, ms: number): number {
    if (ms > LONGEST_BLOCK_MS) return FOR_EVER
    const until = Math.ceil(this.#sixteenthsAt(nowMs + ms)) >>> 0
    return until === FOR_EVER ? 0 : until
  }

  /** Whether the word is an end that a key of the way has set, and not one that `leftUntil` has changed. */
  isOwn(word: number, nowMs: number): boolean {
    const left = (word - Math.floor(this.#sixteenthsAt(nowMs))) | 0
    return word >>> 0 !== FOR_EVER && left > -LONGEST_PAST && left <= 2 ** 31 - LONGEST_PAST
  }

  /** Milliseconds until a word's time, 0 or less if it has passed. */
  leftMs(word: number, nowMs: number): number {
    const until = word >>> 0
    if (until === FOR_EVER) return Number.POSITIVE_INFINITY
    const since = this.#sixteenthsAt(nowMs)
    const whole = Math.floor(since)
    const left = ((until - whole) | 0) - (since - whole) // a distance, because UNTIL wraps after 8.5 years
    return left * (1000 / PER_SECOND)
  }

  /** The number of whole milliseconds after which a word's time has passed, 0 if it has passed by `nowMs`. */
  wholeMs(word: number, nowMs: number): number {
    const left = this.leftMs(word, nowMs)
    if (left <= 0) return 0
    if (left === Number.POSITIVE_INFINITY) return left
    let ms = Math.ceil(left)
    // Makes it exact: `leftMs` may round differently at the later reading.
    while (this.leftMs(word, nowMs + ms) > 0) ms++
    while (ms > 1 && this.leftMs(word, nowMs + ms - 1) <= 0) ms--
    return ms
  }

  #sixteenthsAt(ms: number): number {
    return ((ms - this.#originMs) * PER_SECOND) / 1000
  }
}
