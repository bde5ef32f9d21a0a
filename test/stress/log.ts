// A log of all threads' decisions in shared memory: the units of each key that took effect in each tick, and
// which operations overlapped. `sweep.ts` reads it behind the threads.

/** The log's memory; structured-cloneable. */
export interface LogMemory {
  readonly buffer: SharedArrayBuffer
  readonly threads: number
  /** The number of separate counts: keys, or the table's ways. */
  readonly columns: number
  /** The number of ticks that fit in the tallies: a power of two. */
  readonly rows: number
}

/** Words per cache line. Words of different threads are on different lines. */
const LINE = 16
/** The pin of a thread that has stopped logging. */
export const DONE = 2 ** 31 - 1
const MOST_ROWS = 2 ** 16
const MOST_TALLIES = 2 ** 24

/** A mark: the number of operations begun on the key (24 bits, wrapping), and of those not ended (8 bits). */
const ONE_BEGUN = 1 << 8
const UNENDED = ONE_BEGUN - 1

/**
 * The log. Ticks count from the first tick of the run; all writes are atomic.
 *
 *     swept    the first tick that has not been judged yet           written by the sweep
 *     pins     a thread makes no more entries below its pin          each by its thread; DONE also by main
 *     made     the number of decisions a thread has made             each by its thread
 *     marks    operations begun and not ended, one word a key        by all
 *     tallies  units admitted and not refunded, [tick][column]       by all; the sweep clears old rows
 *
 * **No entry is missed.** A thread reads the clock, pins that tick, and then decides. Its later entries are
 * of that tick or a later one, however long the thread stops between a decision and its entry. So a row below
 * all pins is complete when the sweep judges it. An entry outside the rows is an error that ends the run.
 *
 * **Violations that races of the log can hide.** Entries of one tick have no order. They need none, because
 * windows are counted in whole ticks, like the guarantee. Refunded units leave the row in which they were
 * entered, while the thread stays pinned. So a window is judged by its final count, and an excess admission
 * that was refunded is not detected. The shapes without refunds cover that.
 *
 * **Violations that the marks can hide.** `begin` and `end` are atomic operations around an operation, and
 * act as fences: they contain memory accesses that would otherwise move past the operation's start or end.
 * They also take time, so that fewer operations overlap. The shapes without marks cover that: they judge only
 * windows, and a refusal there accesses no memory but the limiter's.
 */
export class Log {
  readonly memory: LogMemory
  readonly #words: Int32Array
  readonly #columns: number
  readonly #rows: number
  readonly #marksAt: number
  readonly #talliesAt: number

  static allocate(threads: number, columns: number): LogMemory {
    let rows = MOST_ROWS
    while (rows * columns > MOST_TALLIES) rows /= 2
    const words = LINE * (1 + threads + columns) + rows * columns
    return { buffer: new SharedArrayBuffer(4 * words), threads, columns, rows }
  }

  constructor(memory: LogMemory) {
    this.memory = memory
    this.#words = new Int32Array(memory.buffer)
    this.#columns = memory.columns
    this.#rows = memory.rows
    this.#marksAt = LINE * (1 + memory.threads)
    this.#talliesAt = this.#marksAt + LINE * memory.columns
  }

  /** Called before a thread's next operations, with the clock's current tick. */
  pin(thread: number, tick: number): void {
    Atomics.store(this.#words, LINE * (1 + thread), tick)
  }

  /**
   * Waits while the sweep is at least half of the rows behind `tick`. The sweeping thread must not call it.
   */
  waitForSweep(tick: number): void {
    for (;;) {
      const swept = this.swept
      if (tick - swept < this.#rows / 2) return
      Atomics.wait(this.#words, 0, swept, 1_000)
    }
  }

  /**
   * Records that the thread makes no more entries. The thread calls it, or the main thread after the thread's
   * end.
   */
  unpin(thread: number): void {
    this.pin(thread, DONE)
  }

  /** The number of decisions that the thread has made. */
  made(thread: number): number {
    return Atomics.load(this.#words, LINE * (1 + thread) + 1)
  }

  make(thread: number, decisions: number): void {
    Atomics.add(this.#words, LINE * (1 + thread) + 1, decisions)
  }

  /** The first tick for which an entry may still come. */
  get horizon(): number {
    let horizon = DONE
    for (let thread = 0; thread < this.memory.threads; thread++) {
      horizon = Math.min(horizon, Atomics.load(this.#words, LINE * (1 + thread)))
    }
    return horizon
  }

  get swept(): number {
    return Atomics.load(this.#words, 0)
  }

  set swept(tick: number) {
    Atomics.store(this.#words, 0, tick)
    Atomics.notify(this.#words, 0)
  }

  /**
   * Enters units that took effect in `tick`; negative for refunds. The sweep still needs `width` rows below
   * `swept`.
   */
  enter(column: number, tick: number, units: number, width: number): void {
    const ahead = tick - this.swept
    if (ahead < 0 || ahead >= this.#rows - width) {
      throw new Error(`tick ${tick} is not in the log: ${ahead} of ${this.#rows} rows from the first`)
    }
    Atomics.add(this.#words, this.#at(column, tick), units)
  }

  /**
   * Units logged for the column in the ticks `from` to `to`. Plain reads suffice: an operation that ended
   * before the reader's `begin` was entered before it, and any other operation makes `wasAlone` false.
   */
  sum(column: number, from: number, to: number): number {
    let sum = 0
    for (let tick = Math.max(from, 0); tick <= to; tick++) sum += this.#words[this.#at(column, tick)]!
    return sum
  }

  /** Units logged for the column in the tick. */
  read(column: number, tick: number): number {
    return Atomics.load(this.#words, this.#at(column, tick))
  }

  clearRow(tick: number): void {
    const first = this.#at(0, tick)
    this.#words.fill(0, first, first + this.#columns)
  }

  /** Marks the start of an operation on the column's key. Pass the result to `beganAlone` or `wasAlone`. */
  begin(column: number): number {
    return Atomics.add(this.#words, this.#marksAt + LINE * column, ONE_BEGUN + 1)
  }

  /** Marks the end of an operation, after its log entry. */
  end(column: number): number {
    return Atomics.sub(this.#words, this.#marksAt + LINE * column, 1)
  }

  /** Whether no operation on the key was in progress at the start. */
  static beganAlone(begun: number): boolean {
    return (begun & UNENDED) === 0
  }

  /**
   * Whether no other operation on the key overlapped: none was in progress at the start, and none has begun
   * since. If exactly 2^24 others begin during the operation, the result is wrong.
   */
  static wasAlone(begun: number, ended: number): boolean {
    return Log.beganAlone(begun) && ended === ((begun + ONE_BEGUN + 1) | 0)
  }

  #at(column: number, tick: number): number {
    return this.#talliesAt + (tick & (this.#rows - 1)) * this.#columns + column
  }
}
