import { FOR_EVER, PER_SECOND } from '../memory/layout.js'

/** Half of what UNTIL can tell apart, four years: what is longer is for ever. */
const LONGEST_BLOCK_MS = (2 ** 31 - 2 ** 20) * (1000 / PER_SECOND)

/** A sixteenth of a second later, as a word of UNTIL; never for ever. */
export function nextUntil(until: number): number {
  const next = (until + 1) >>> 0
  return (next === FOR_EVER ? 0 : next) | 0
}

/** Times as they stand in UNTIL: in sixteenths of a second from the arena's origin, modulo 2^32. */
export class BlockTime {
  readonly #originMs: number

  constructor(originMs: number) {
    this.#originMs = originMs
  }

  /** The word for so many milliseconds from now on. */
  wordFor(nowMs: number, ms: number): number {
    if (ms > LONGEST_BLOCK_MS) return FOR_EVER
    const until = Math.ceil(this.#sixteenthsAt(nowMs + ms)) >>> 0
    return until === FOR_EVER ? nextUntil(until) : until
  }

  /** How long it is until a word's time: at most 0 where it has passed. */
  leftMs(word: number, nowMs: number): number {
    const until = word >>> 0
    if (until === FOR_EVER) return Number.POSITIVE_INFINITY
    const since = this.#sixteenthsAt(nowMs)
    const whole = Math.floor(since)
    return (((until - whole) | 0) - (since - whole)) * (1000 / PER_SECOND) // as a distance: UNTIL wraps in 8.5 years
  }

  /** The first whole number of milliseconds after `nowMs` at which a word's time has passed: 0 where it has. */
  wholeMs(word: number, nowMs: number): number {
    const left = this.leftMs(word, nowMs)
    if (left <= 0) return 0
    if (left === Number.POSITIVE_INFINITY) return left
    let ms = Math.ceil(left)
    // Exact: `leftMs` at the later reading may be rounded otherwise.
    while (this.leftMs(word, nowMs + ms) > 0) ms++
    while (ms > 1 && this.leftMs(word, nowMs + ms - 1) <= 0) ms--
    return ms
  }

  #sixteenthsAt(ms: number): number {
    return ((ms - this.#originMs) * PER_SECOND) / 1000
  }
}
