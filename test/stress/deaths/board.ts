/** What the threads are to do, and what each is about to do: one cache line of shared words each, written atomically. */
const LINE = 16
const ORDER = 0
const CLOCK = 1

export const GO = 0
export const PAUSE = 1
export const STOP = 2

/** The main thread's orders, and for each thread whether it has paused and what it is in the midst of. */
export class Board {
  readonly buffer: SharedArrayBuffer
  readonly #words: Int32Array

  static allocate(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(4 * LINE * (1 + threads))
  }

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.#words = new Int32Array(buffer)
  }

  get order(): number {
    return Atomics.load(this.#words, ORDER)
  }

  set order(order: number) {
    Atomics.store(this.#words, ORDER, order)
    Atomics.notify(this.#words, ORDER)
  }

  /** Whether survivors are to turn the clock. */
  get clockRuns(): boolean {
    return Atomics.load(this.#words, CLOCK) === 1
  }

  set clockRuns(runs: boolean) {
    Atomics.store(this.#words, CLOCK, runs ? 1 : 0)
  }

  /** Says that the thread has paused, and stays until another order comes. */
  pause(thread: number): void {
    Atomics.store(this.#words, LINE * (1 + thread), 1)
    while (this.order === PAUSE) Atomics.wait(this.#words, ORDER, PAUSE)
    Atomics.store(this.#words, LINE * (1 + thread), 0)
  }

  hasPaused(thread: number): boolean {
    return Atomics.load(this.#words, LINE * (1 + thread)) === 1
  }

  /** The thread is about to charge `cost` units to the key, or to give them back; the key comes last and stands for both. */
  intend(thread: number, key: number, cost: number): void {
    Atomics.store(this.#words, LINE * (1 + thread) + 2, cost)
    Atomics.store(this.#words, LINE * (1 + thread) + 1, key + 1)
  }

  /** It has, and its entry stands in the log. */
  done(thread: number): void {
    Atomics.store(this.#words, LINE * (1 + thread) + 1, 0)
  }

  /** What the thread was in the midst of, if anything: for the dead. */
  intentOf(thread: number): { key: number; cost: number } | undefined {
    const key = Atomics.load(this.#words, LINE * (1 + thread) + 1) - 1
    return key < 0 ? undefined : { key, cost: Atomics.load(this.#words, LINE * (1 + thread) + 2) }
  }
}
