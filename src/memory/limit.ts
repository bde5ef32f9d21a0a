import { HEADER } from './layout.js'
import { changeCurrentLimit, isCurrent, limitIn, recordIn } from './records.js'
import { add, notify, read, type Words } from './words.js'

/**
 * Changes the limit for all threads. The limit is stored before the count of updates. A thread that reads the
 * new count decides by the new limit. Any other thread is notified, or reads the count again
 * (`core/word-watch.ts`). Threads watch the count of `first`, the first arena of the buffer.
 */
export function changeLimit(words: Words, limit: number, first: Words = words): void {
  changeCurrentLimit(words, limit)
  announceChange(first)
}

/** Wakes the pending calls of `wait` of all threads, after a change for all keys. */
export function announceChange(words: Words): void {
  add(words, HEADER.UPDATES, 1)
  notify(words, HEADER.UPDATES)
}

/** The rule that holds at present, for one thread: its limit, and the record that it counts by. */
export class PresentRule {
  readonly #words: Words
  readonly #takeRecord: (record: number) => boolean
  #record: number
  #word = -1
  #limit = 1
  /** Called with each limit, before a decision goes by it. */
  onLimit: (limit: number) => void = () => {}

  /**
   * `record` is the record that the thread counts by. `takeRecord` goes on with another one. It returns false
   * if it can't, because something else has written to the record.
   */
  constructor(words: Words, record: number, takeRecord: (record: number) => boolean) {
    this.#words = words
    this.#record = record
    this.#takeRecord = takeRecord
  }

  /** Reads the limit. Notices a change, and then calls `takeRecord` if the record is another one. */
  readLimit(): number {
    const word = read(this.#words, HEADER.CURRENT)
    if (word !== this.#word) this.#change(word)
    return this.#limit
  }

  /**
   * An invalid rule means that something else has written to the memory: the last valid one stays in force.
   */
  #change(word: number): void {
    if (!isCurrent(this.#words, word)) return
    const record = recordIn(word)
    if (record !== this.#record && !this.#takeRecord(record)) return
    this.#record = record
    this.#word = word
    this.#limit = limitIn(word)
    this.onLimit(this.#limit)
  }
}
