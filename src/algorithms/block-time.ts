import { FOR_EVER, PER_SECOND } from '../memory/layout.js'

/** A longer block is for ever. Half of the range of UNTIL, about 4 years. */
const LONGEST_BLOCK_MS = (2 ** 31 - 2 ** 20) * (1000 / PER_SECOND)

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
