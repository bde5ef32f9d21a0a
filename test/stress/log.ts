// What threads tell each other of their decisions, in shared memory beside the limiter's: how many units of each key took
// effect in each tick, and which operations overlapped. `sweep.ts` reads it behind them.

/** What travels to a thread: structured-cloneable. */
export interface LogMemory {
  readonly buffer: SharedArrayBuffer
  readonly threads: number
  /** How many things are counted apart: keys, or a table's ways. */
  readonly columns: number
  /** How many ticks the tallies have room for: a power of two. */
  readonly rows: number
}

/** A cache line in words: what different threads write stands on lines of its own. */
const LINE = 16
/** The pin of a thread that logs nothing any more. */
export const DONE = 2 ** 31 - 1
const MOST_ROWS = 2 ** 16
const MOST_TALLIES = 2 ** 24

/** A mark: how many operations have begun on the key (24 bits, wrapping), and how many of them have not ended (8). */
const ONE_BEGUN = 1 << 8
const UNENDED = ONE_BEGUN - 1

/**
 * The log. Ticks count here from the first one of the run; every word is written by atomic operations.
 *
 *     swept    the first tick that has not been judged yet           written by the sweep
 *     pins     a thread logs nothing below its pin any more          each by its thread; DONE by whoever saw it end
 *     made     how many decisions a thread has made so far           each by its thread
 *     marks    operations begun and not ended, one word a key        by all
 *     tallies  units admitted and not given back, [tick][column]     by all; the sweep clears rows that are done with
 *
 * **Nothing is dropped.** A thread takes the clock, pins that tick, and only then decides: whatever it logs from there on
 * took effect at that tick or later, however long it is held up between a decision and its entry. So a row below all
 * pins is complete when the sweep judges it. An entry that does not fit in the rows is an error that ends the run.
 *
 * **What the races of the log itself can hide.** Entries of one tick have no order among themselves; windows are counted
 * in whole ticks, as the promise is, so none is needed. Units given back are taken out of the row they were entered in
 * (the thread stays pinned meanwhile): a window is judged by what stands in the end, and an admission too many that was
 * given back is not seen. There are shapes without refunds for that.
 *
 * **What the marks can hide.** Each operation between `begin` and `end` stands between two atomic operations of its
 * thread. They are fences: an operation whose memory accesses ran past its own beginning or end would be held in by them.
 * And they take time, in which fewer operations meet. There are shapes without marks for that, in which only windows are
 * judged and a refusal touches no memory but the limiter's.
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

  /** Before a thread's next operations: `tick` is the clock's now. */
  pin(thread: number, tick: number): void {
    Atomics.store(this.#words, LINE * (1 + thread), tick)
  }

  /** Waits while the sweep is half of the rows or more behind `tick`. Not for the thread that sweeps. */
  waitForSweep(tick: number): void {
    for (;;) {
      const swept = this.swept
      if (tick - swept < this.#rows / 2) return
      Atomics.wait(this.#words, 0, swept, 1_000)
    }
  }

  /** The thread logs nothing any more: said by itself, or by whoever saw it end. */
  unpin(thread: number): void {
    this.pin(thread, DONE)
  }

  /** How many decisions the thread has made. */
  made(thread: number): number {
    return Atomics.load(this.#words, LINE * (1 + thread) + 1)
  }

  make(thread: number, decisions: number): void {
    Atomics.add(this.#words, LINE * (1 + thread) + 1, decisions)
  }

  /** The first tick that some thread may still log in. */
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

  /** Enters units that took effect in `tick`; below 0: given back. Of `width` rows behind `swept` the sweep still reads. */
  enter(column: number, tick: number, units: number, width: number): void {
    const ahead = tick - this.swept
    if (ahead < 0 || ahead >= this.#rows - width) {
      throw new Error(`tick ${tick} is not in the log: ${ahead} of ${this.#rows} rows from the first`)
    }
    Atomics.add(this.#words, this.#at(column, tick), units)
  }

  /**
   * Units logged for the column in the ticks `from` to `to`. Plain reads: what ended before the reader's own `begin` has
   * been entered before that, and whatever did not makes `wasAlone` false.
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

  /** An operation on the column's key begins. What it returns is for `end` and `wasAlone`. */
  begin(column: number): number {
    return Atomics.add(this.#words, this.#marksAt + LINE * column, ONE_BEGUN + 1)
  }

  /** The operation, its entry in the log with it, has ended. */
  end(column: number): number {
    return Atomics.sub(this.#words, this.#marksAt + LINE * column, 1)
  }

  /** Whether nothing was under way on the key at the beginning. */
  static beganAlone(begun: number): boolean {
    return (begun & UNENDED) === 0
  }

  /**
   * Whether no other operation on the key overlapped: none was under way at the beginning, and none has begun since. (One
   * held up while exactly 2^24 others began would be taken to have been alone.)
   */
  static wasAlone(begun: number, ended: number): boolean {
    return Log.beganAlone(begun) && ended === ((begun + ONE_BEGUN + 1) | 0)
  }

  #at(column: number, tick: number): number {
    return this.#talliesAt + (tick & (this.#rows - 1)) * this.#columns + column
  }
}
