/** A power of two: values of two adjacent times and of up to half as many counts have places of their own. */
const PLACES = 2_048
/** Larger counts are quantities, such as bytes, which rarely repeat. They are not kept. */
const MAX_COUNT = 2 ** 22
const MAX_SECONDS = 2 ** 31

/** In place of seconds: the time is infinite, and the value leaves it out. */
export const NEVER = -1

/**
 * Header values of a count and a time, such as `"default";r=50;t=30`. The clients of a server have few
 * different ones, and a value that is kept takes a few nanoseconds. A new one takes 150: most of that is
 * `setHeader`, which makes one string of its parts (`--case headers`).
 *
 * Each value has one place, by its count and time, and a new value replaces the one there.
 */
export class ValueCache {
  readonly #start: string
  readonly #middle: string
  /** By place: the count and the time of its value. Allocated on first use. */
  #keys: Float64Array | undefined
  #values: string[] = []

  constructor(start: string, middle: string) {
    this.#start = start
    this.#middle = middle
  }

  /** @param seconds a whole number, or `NEVER` */
  of(count: number, seconds: number): string {
    if (!(count < MAX_COUNT && seconds >= 0 && seconds < MAX_SECONDS)) return this.#make(count, seconds)
    const key = seconds * MAX_COUNT + count
    const place = (count + Math.imul(seconds, PLACES / 2 + 1)) & (PLACES - 1)
    const keys = this.#keys ?? this.#allocate()
    const values = this.#values
    if (keys[place] !== key) {
      values[place] = this.#make(count, seconds)
      keys[place] = key
    }
    return values[place]!
  }

  #allocate(): Float64Array {
    this.#keys = new Float64Array(PLACES).fill(NEVER)
    this.#values = new Array<string>(PLACES).fill('')
    return this.#keys
  }

  #make(count: number, seconds: number): string {
    return seconds === NEVER ? this.#start + count : this.#start + count + this.#middle + seconds
  }
}
