/** Words per cache line. Words of different threads are on different lines. */
const LINE = 16
const READY = 0
const DONE = LINE
const CHANGED = 2 * LINE

/**
 * Counts in shared memory by which the threads of a run meet. They only rise, over all rounds.
 *
 *     ready    threads that have begun a round
 *     done     threads that have made all their changes of a round
 *     changed  changes made
 *     turns    one word for each thread: the turns that it has made
 */
export class Board {
  readonly #words: Int32Array
  readonly #threads: number

  static allocate(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(4 * LINE * (3 + threads))
  }

  constructor(buffer: SharedArrayBuffer, threads: number) {
    this.#words = new Int32Array(buffer)
    this.#threads = threads
  }

  /** Waits until every thread has begun the round. */
  meet(round: number): void {
    const goal = this.#threads * (round + 1)
    Atomics.add(this.#words, READY, 1)
    Atomics.notify(this.#words, READY)
    for (;;) {
      const ready = Atomics.load(this.#words, READY)
      if (ready >= goal) return
      Atomics.wait(this.#words, READY, ready)
    }
  }

  endTurn(thread: number): void {
    Atomics.add(this.#words, LINE * (3 + thread), 1)
  }

  /** The turns of every thread. */
  turns(): number[] {
    return Array.from({ length: this.#threads }, (_, thread) =>
      Atomics.load(this.#words, LINE * (3 + thread)),
    )
  }

  endChanges(): void {
    Atomics.add(this.#words, DONE, 1)
  }

  areChangesOver(round: number, changers: number): boolean {
    return Atomics.load(this.#words, DONE) >= changers * (round + 1)
  }

  countChange(): void {
    Atomics.add(this.#words, CHANGED, 1)
  }

  /** The number of changes so far. By a plain read: it adds no fence to what a thread does around it. */
  get changed(): number {
    return this.#words[CHANGED]!
  }
}
