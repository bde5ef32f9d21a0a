/** How often a word is read that lies in memory on which no thread can wait: that of a mapped file. */
export const POLL_MS = 250

/** What a pending `Atomics.waitAsync` refers to. It can't be cancelled, so it must not keep the watch from collection. */
interface Pending {
  isArmed: boolean
  /** The watch, while it has listeners. */
  watch: WordWatch | undefined
}

/**
 * Calls its listeners after a counter in shared memory has changed: a counter that threads add to and then notify
 * (`Atomics.notify`). However many listeners there are, at most one `Atomics.waitAsync` is pending: each takes a kilobyte, and
 * nothing but a notification ends it. In memory on which no thread can wait the counter is read every {@link POLL_MS}.
 *
 * No change is missed. A listener is added, then reads what the counter tells of. What changes after that changes the
 * counter, too; and the counter is read anew each time before a wait for its next change begins, with the value read as
 * what the wait expects. So a change either ends the wait, or keeps it from beginning, or was read: in each case `look`
 * finds another value than before, and calls. The counter never shows an earlier value again (but 2^32 changes later).
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

  /** Nothing is read any more once the last listener is gone. */
  delete(listener: () => void): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
    this.#pending.watch = undefined
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  /** Calls the listeners at once if the counter has changed, and not again when its notification comes. */
  check(): void {
    const before = this.#last
    do this.#last = Atomics.load(this.#words, this.#index)
    while (!this.#isWaiting())
    if (this.#last === before) return
    for (const listener of this.#listeners) listener()
  }

  /** Ends the pending wait, if nobody listens. It ends those of other threads too, which find nothing changed and wait again. */
  end(): void {
    if (this.#listeners.size === 0 && this.#pending.isArmed) Atomics.notify(this.#words, this.#index)
  }

  /** Begins to wait for a change from the value seen. False: it has changed already. */
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
