import { HEADER } from '#millrace/memory/layout.js'

/**
 * Thrown at the first operation that the thread may not do yet. It is not an Error, so no stack is captured.
 */
export const STOP = { stop: true }

/** A thread that does more operations than this in one run, alone, is taken to hang. */
export const MOST_AT_ONCE = 10_000
const AT_REST = 31

/** All results that one thread has read from shared memory so far. They determine the thread's state. */
export class Log {
  readonly results: number[] = []
  hash1 = 1
  hash2 = 2

  push(result: number): void {
    this.results.push(result)
    this.#mix(result)
  }

  #mix(result: number): void {
    const whole = result | 0
    const rest = (result * 4096) | 0 // a clock's reading may have a fraction
    this.hash1 = Math.imul(this.hash1 ^ whole, 0x9e3779b1) ^ rest
    this.hash1 ^= this.hash1 >>> 15
    this.hash2 = Math.imul(this.hash2 + whole, 0x85ebca6b) ^ (this.hash2 >>> 13)
  }

  /** From now on `state` alone determines the thread's state. */
  standsAt(state: readonly number[]): void {
    this.hash1 = 1
    this.hash2 = 2
    for (const part of state) this.#mix(part)
  }

  backTo({ length, hash1, hash2 }: LogMark): void {
    this.results.length = length
    this.hash1 = hash1
    this.hash2 = hash2
  }
}

export interface LogMark {
  length: number
  hash1: number
  hash2: number
}

/** Called for every change that a thread makes to shared memory. */
export type Watch = (index: number, before: number, after: number) => void

/**
 * Shared memory in which one thread at a time does one operation at a time. A thread is a function that runs
 * again from its start for every step. Its log answers the operations that it did in earlier runs; the first
 * operation beyond its allowance stops it. So no real thread is needed, and no thread state is copied.
 *
 * The notes follow the arena's words: they are the explorer's own state (`ledger.ts`), changed and undone
 * together with the memory. Words and notes have a running hash, by which a state that was visited before is
 * recognised.
 *
 * **Steps.** An operation on a word that only one thread touches, or that no thread writes, is not a step of
 * its own: it returns the same at any time. The search finds out which words are shared as it runs
 * (`shared`). When a word turns out to be shared, everything explored so far was too coarse and is explored
 * again.
 */
export class Machine {
  readonly words: Int32Array
  readonly notes: Int32Array
  /** For each word, then each note: 1 if several threads touch it and one of them writes. */
  readonly shared: Uint8Array
  /** Whether the last run found a shared word that was not known to be shared. */
  foundShared = false
  hash1 = 0
  hash2 = 0
  /** Operations done by the last {@link run}, on shared words and on others. */
  done = 0
  watch: Watch = () => {}
  /** Whether a conversion of a cell is charging what the cell counted by another record (`copy.ts`). */
  isCarrying = false
  /** Called after every operation of a thread, with the word's value before and after it. */
  trace: ((thread: number, index: number, before: number, after: number) => void) | undefined
  /** Called before every operation of a thread. */
  beforeEach: (thread: number) => void = () => {}
  /** For each word, 1 if it is a statistic of an arena. */
  readonly #statistics: Uint8Array
  readonly #touchedBy: Int32Array
  readonly #written: Uint8Array
  readonly #changed: number[] = []
  #thread = 0
  #log = new Log()
  #at = 0
  /** Outside a run, operations take effect at once and are not logged. */
  #running = false
  #steps = 0
  #most = 0
  #paused = false
  #stopped = false

  /** `starts` are the indices of the arenas' first words. */
  constructor(words: Int32Array, notes: number, shared?: Uint8Array, starts: readonly number[] = [0]) {
    this.words = words
    this.#statistics = new Uint8Array(words.length + notes)
    for (const start of starts) this.#statistics.fill(1, start + HEADER.ALLOWED, start + HEADER.CLAIMING + 2)
    this.notes = new Int32Array(notes)
    this.shared = shared ?? new Uint8Array(words.length + notes)
    this.#touchedBy = new Int32Array(words.length + notes)
    this.#written = new Uint8Array(words.length + notes)
  }

  /**
   * Runs a thread for `steps` operations on shared words, and stops it before the next one. Operations on
   * other words are free, but the thread does not run past {@link pause}. With `most`, the thread stops after
   * that many operations of any kind. Returns whether the thread has ended.
   */
  run(
    thread: number,
    log: Log,
    program: () => void,
    steps: number,
    most = Number.POSITIVE_INFINITY,
  ): boolean {
    this.#thread = thread
    this.#log = log
    this.#at = 0
    this.#steps = steps
    this.#most = most
    this.done = 0
    this.#paused = false
    this.#stopped = false
    this.#running = true
    try {
      program()
      return true
    } catch (stop) {
      if (stop !== STOP) throw stop
      return false
    } finally {
      this.#running = false
    }
  }

  /** Whether the running thread has replayed its log: its next operation is a new one. */
  get isNew(): boolean {
    return this.#at === this.#log.results.length
  }

  /**
   * Ends a step here: the thread's next operation belongs to the next step, unless the run is bounded by
   * `most`. `state` is all that the thread keeps from before.
   */
  pause(state: readonly number[]): void {
    this.#log.standsAt(state)
    this.#paused = this.#most === Number.POSITIVE_INFINITY
  }

  read(index: number): number {
    if (!this.#running) return this.#get(index)
    if (!this.isNew) return this.#log.results[this.#at++]!
    this.#take(index, false)
    return this.#keep(index, this.#get(index))
  }

  write(index: number, value: number): void {
    if (!this.#running) this.#change(index, value)
    else if (!this.isNew) this.#at++
    else {
      this.#take(index, true)
      const before = this.#get(index)
      this.#change(index, value)
      this.#keep(index, 0, before)
    }
  }

  compareExchange(index: number, expected: number, next: number): number {
    if (this.#running && !this.isNew) return this.#log.results[this.#at++]!
    const found = this.#get(index)
    const hit = found === (expected | 0)
    if (!this.#running) {
      if (hit) this.#change(index, next | 0)
      return found
    }
    this.#take(index, hit)
    if (hit) this.#change(index, next | 0)
    return this.#keep(index, found)
  }

  add(index: number, value: number): number {
    if (this.#running && !this.isNew) return this.#log.results[this.#at++]!
    const before = this.#get(index)
    if (!this.#running) {
      this.set(index, before + value)
      return before
    }
    this.#take(index, true)
    this.#change(index, before + value)
    return this.#keep(index, before)
  }

  /** Reads the clock: `readings[position]`. Note 0 holds the position. */
  readClock(readings: readonly number[]): number {
    const index = this.words.length
    if (!this.#running) return readings[this.notes[0]!]!
    if (!this.isNew) return this.#log.results[this.#at++]!
    this.#take(index, false)
    return this.#keep(index, readings[this.notes[0]!]!)
  }

  /** From now on the clock's position may change while threads run. */
  shareClock(): void {
    this.shared[this.words.length] = 1
  }

  getNote(note: number): number {
    return this.notes[note]!
  }

  setNote(note: number, value: number): void {
    this.set(this.words.length + note, value)
  }

  set(index: number, value: number): void {
    const before = this.#get(index)
    const after = value | 0
    if (before === after) return
    this.#changed.push(index, before)
    this.#put(index, before, after)
  }

  /** The number of changes so far, to be undone by {@link backTo}. */
  mark(): number {
    return this.#changed.length
  }

  backTo(mark: number): void {
    while (this.#changed.length > mark) {
      const before = this.#changed.pop()!
      const index = this.#changed.pop()!
      this.#put(index, this.#get(index), before)
    }
  }

  /**
   * Runs a reader that is not a thread and inspects the memory at rest. The words that it reads count as
   * shared.
   */
  runAtRest(program: () => void): void {
    const { watch, beforeEach } = this
    this.watch = () => {}
    this.beforeEach = () => {}
    this.run(AT_REST, new Log(), program, Number.POSITIVE_INFINITY)
    this.watch = watch
    this.beforeEach = beforeEach
  }

  #take(index: number, writes: boolean): void {
    const isShared = this.shared[index] === 1
    // The code may catch STOP, to take charges back. It must not do an operation in that run any more.
    this.#stopped ||= this.#paused || this.done === this.#most || this.done === MOST_AT_ONCE
    this.#stopped ||= isShared && this.#steps === 0
    if (this.#stopped) throw STOP
    if (isShared) this.#steps--
    this.done++
    this.beforeEach(this.#thread)
    // Statistics are only added to: the order of additions makes no difference.
    if (this.#statistics[index] === 1) return
    this.#touchedBy[index]! |= 1 << this.#thread
    if (writes) this.#written[index] = 1
    const by = this.#touchedBy[index]!
    if (this.shared[index] === 0 && this.#written[index] === 1 && (by & (by - 1)) !== 0) {
      this.shared[index] = 1
      this.foundShared = true
    }
  }

  #keep(index: number, result: number, before = result): number {
    this.#log.push(result)
    this.#at++
    this.trace?.(this.#thread, index, before, this.#get(index))
    return result
  }

  #change(index: number, after: number): void {
    const before = this.#get(index)
    this.set(index, after)
    this.watch(index, before, after)
  }

  #get(index: number): number {
    const { words } = this
    return index < words.length ? words[index]! : this.notes[index - words.length]!
  }

  #put(index: number, before: number, after: number): void {
    const { words } = this
    if (index < words.length) words[index] = after
    else this.notes[index - words.length] = after
    this.hash1 ^= mix(index, before, 0x9e3779b1) ^ mix(index, after, 0x9e3779b1)
    this.hash2 = (this.hash2 - mix(index, before, 0x85ebca6b) + mix(index, after, 0x85ebca6b)) | 0
  }
}

function mix(index: number, value: number, by: number): number {
  if (value === 0) return 0
  const h = Math.imul(value ^ Math.imul(index + 1, 0x27d4eb2f), by)
  return Math.imul(h ^ (h >>> 15), 0x2c1b3c6d) ^ (h >>> 12)
}
