/**
 * Runs the calls of a key one after the other, in order: two calls of one process would only make each other's swaps
 * fail.
 */
export class KeyTurns {
  /** By key: the end of its last call. */
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const own = before === undefined ? act() : before.then(act)
    const end = own.catch(() => {}) // the caller gets the error
    this.#last.set(key, end)
    try {
      return await own
    } finally {
      if (this.#last.get(key) === end) this.#last.delete(key)
    }
  }
}
