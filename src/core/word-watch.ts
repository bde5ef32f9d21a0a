/** Milliseconds between reads of a word on which no thread can wait, because it is in a mapped file. */
export const POLL_MS = 250

/**
 * The part that a pending `Atomics.waitAsync` refers to. It can't be cancelled, and must not keep the watch
 * in memory.
 */
interface Pending {
  isArmed: boolean
  /** The watch, while it has listeners. */
  watch: WordWatch | undefined
}

/**
 * Calls its listeners after a counter in shared memory has changed. Threads add to the counter, and then
 * notify (`Atomics.notify`). At most one `Atomics.waitAsync` is pending for all listeners: each takes a
 * kilobyte, and only a notification ends it. In memory on which no thread can wait, the counter is read every
 * {@link POLL_MS}.
 *
 * No change is missed. A caller adds its listener, and then reads the state that the counter stands for. A
 * later change of the state also changes the counter. The watch reads the counter before each wait, and the
 * wait expects the value read. So a change either ends the wait, or keeps it from beginning, or was read. In
 * each case `check` finds a new value and calls the listeners. The counter never has an earlier value again,
 * except after 2^32 changes.
 *
 * A watch does not keep the process alive.
 */
export class WordWatch {
  readonly #words: Int32Array
  readonly #index: number
  readonly #listeners = new Set<() => void>()
  readonly #pending: Pending = { isArmed: false, watch: undefined }
  readonly #canWait: boolean
  #last = 0
  #poll: NodeJS.Timeout | undefined = undefined

  constructor(words: Int32Array, index: number) {
    this.#words = words
    this.#index = index
    this.#canWait = words.buffer instanceof SharedArrayBuffer && typeof Atomics.waitAsync === 'function'
  }

  add(listener: () => void): void {
    if (this.#listeners.size === 0) {
      this.#pending.watch = this
      this.check()
    }
    this.#listeners.add(listener)
  }

  /** After the last listener is removed, the watch reads nothing. */
  delete(listener: () => void): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
    this.#pending.watch = undefined
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  /** Calls the listeners now if the counter has changed. Its notification then does not call them again. */
  check(): void {
    const before = this.#last
    do this.#last = Atomics.load(this.#words, this.#index)
    while (!this.#isWaiting())
    if (this.#last === before) return
    for (const listener of this.#listeners) listener()
  }

  /**
   * Ends the pending wait if there are no listeners. Waits of other threads end too, find no change, and
   * begin again.
   */
  end(): void {
    if (this.#listeners.size === 0 && this.#pending.isArmed) Atomics.notify(this.#words, this.#index)
  }

  /** Begins to wait for a change from the last value. Returns false if it has changed already. */
  #isWaiting(): boolean {
    const pending = this.#pending
    if (pending.isArmed || pending.watch === undefined) return true
    if (!this.#canWait) {
      this.#poll ??= setInterval(() => this.check(), POLL_MS).unref()
      return true
    }
    const { async, value } = Atomics.waitAsync(this.#words, this.#index, this.#last)
    if (!async) return false
    pending.isArmed = true
    void value.then(() => {
      pending.isArmed = false
      pending.watch?.check()
    })
    return true
  }
}
