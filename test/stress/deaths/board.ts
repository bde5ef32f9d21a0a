/**
 * Words per cache line. The main thread's orders and each thread's state have a line each, accessed
 * atomically.
 */
const LINE = 16
const ORDER = 0
const CLOCK = 1

export const GO = 0
export const PAUSE = 1
export const STOP = 2

/** The main thread's orders, and for each thread whether it has paused and its current operation. */
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

  /** Whether the survivors advance the clock. */
  get clockRuns(): boolean {
    return Atomics.load(this.#words, CLOCK) === 1
  }

  set clockRuns(runs: boolean) {
    Atomics.store(this.#words, CLOCK, runs ? 1 : 0)
  }

  /** Marks the thread as paused and waits for another order. */
  pause(thread: number): void {
    Atomics.store(this.#words, LINE * (1 + thread), 1)
    while (this.order === PAUSE) Atomics.wait(this.#words, ORDER, PAUSE)
    Atomics.store(this.#words, LINE * (1 + thread), 0)
  }

  hasPaused(thread: number): boolean {
    return Atomics.load(this.#words, LINE * (1 + thread)) === 1
  }

  /**
   * Records that the thread will charge or refund `cost` units of the key. The key is stored last and
   * publishes both.
   */
  intend(thread: number, key: number, cost: number): void {
    Atomics.store(this.#words, LINE * (1 + thread) + 2, cost)
    Atomics.store(this.#words, LINE * (1 + thread) + 1, key + 1)
  }

  /** Records that the operation and its log entry are complete. */
  done(thread: number): void {
    Atomics.store(this.#words, LINE * (1 + thread) + 1, 0)
  }

  /** The unfinished operation of a dead thread, if any. */
  intentOf(thread: number): { key: number; cost: number } | undefined {
    const key = Atomics.load(this.#words, LINE * (1 + thread) + 1) - 1
    return key < 0 ? undefined : { key, cost: Atomics.load(this.#words, LINE * (1 + thread) + 2) }
  }
}
