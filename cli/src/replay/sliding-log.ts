/** An exact sliding log of one client: the times of its entries, which must not decrease. */
export class SlidingLog {
  readonly #windowMs: number
  #times: number[] = []
  #oldest = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** The number of entries in (atMs - windowMs, atMs]. An entry exactly one window ago does not count. */
  used(atMs: number): number {
    while (this.#oldest < this.#times.length && this.#times[this.#oldest]! <= atMs - this.#windowMs)
      this.#oldest++
    if (this.#oldest > 1024 && 2 * this.#oldest > this.#times.length) {
      this.#times = this.#times.slice(this.#oldest)
      this.#oldest = 0
    }
    return this.#times.length - this.#oldest
  }

  add(atMs: number): void {
    this.#times.push(atMs)
  }

  /** Removes all entries, for the next client. */
  clear(): void {
    this.#times.length = 0
    this.#oldest = 0
  }
}
