/** The words of a cell whose counts are all in its admission word: see `word-cells.ts`. */

/** The admission word: the key is blocked. Of a way that is not LIVE: nothing counts there. */
export const SHUT = 1 << 21
export const UNCOUNTED = SHUT
/** The admission word: the meter. */
export const METER = SHUT - 1

/** TICK: the tick of its two parts, and the word of a tick. */
export const tickOf = (w: number): number => w >>> 1
export const isSettled = (w: number): boolean => (w & 1) === 1
export const settled = (tick: number): number => (tick << 1) | 1
export const marked = (tick: number): number => tick << 1

/** More than any limit: `carry` takes it for one whole limit. */
export const UNKNOWN_UNITS = METER
