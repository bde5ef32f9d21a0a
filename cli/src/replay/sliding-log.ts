/** An exact sliding log of one client at a time: every moment it was counted at, which must not go back. */
export class SlidingLog {
  readonly #windowMs: number
  #moments: number[] = []
  #oldest = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** How many were counted in (atMs - windowMs, atMs]: what happened exactly a window ago is out. */
  used(atMs: number): number {
    while (this.#oldest < this.#moments.length && this.#moments[this.#oldest]! <= atMs - this.#windowMs)
      this.#oldest++
    if (this.#oldest > 1024 && 2 * this.#oldest > this.#moments.length) {
      this.#moments = this.#moments.slice(this.#oldest)
      this.#oldest = 0
    }
    return this.#moments.length - this.#oldest
  }

  add(atMs: number): void {
    this.#moments.push(atMs)
  }

  /** Forgets everything: the next client's log. */
  clear(): void {
    this.#moments.length = 0
    this.#oldest = 0
  }
}
