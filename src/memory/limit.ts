import { isLimit } from '../core/rule.js'
import { HEADER } from './layout.js'
import { add, notify, read, store, type Words } from './words.js'

/**
 * Changes the limit for all threads. The limit is stored before the count of updates. A thread that reads the
 * new count decides by the new limit. Any other thread is notified, or reads the count again
 * (`core/word-watch.ts`). Threads watch the count of `first`, the first arena of the buffer.
 */
export function changeLimit(words: Words, limit: number, first: Words = words): void {
  store(words, HEADER.LIMIT, limit)
  announceChange(first)
}

/** Wakes the pending calls of `wait` of all threads, after a change for all keys. */
export function announceChange(words: Words): void {
  add(words, HEADER.UPDATES, 1)
  notify(words, HEADER.UPDATES)
}

/** The limit of a rule, for one thread. */
export class RuleLimit {
  readonly #words: Words
  #lastValid = 1

  constructor(words: Words) {
    this.#words = words
  }

  get value(): number {
    const limit = read(this.#words, HEADER.LIMIT)
    return limit === this.#lastValid ? limit : this.#changed(limit)
  }

  set value(limit: number) {
    changeLimit(this.#words, limit)
  }

  /**
   * An invalid limit means that something else has written to the memory: the last valid one stays in force.
   */
  #changed(limit: number): number {
    if (isLimit(limit)) this.#lastValid = limit
    return this.#lastValid
  }
}
