// The units that this node holds on lease, in memory that threads can share.
//
//     header   words of the memory
//     cells    sets of 8: for each key that has one
//                NAME_LO, NAME_HI   the key's fingerprint; NAME_LO 0: nobody's
//                END                when the lease ends, in milliseconds from the origin, modulo 2^32
//                FREE               units that the server had left for others, when it last said so
//                HELD               of each rule: tag:8 | units:24
//                SLOTS              a ring: slot:8 | units spent in it:24
//
// One thread *owns* the memory: it alone gives cells to keys, and asks the server. All threads *spend*.
//
// **Spending** (`spend`):
//
//  1. Load HELD of each rule. Then read the clock: what is seen there was granted before. Then check that END is to come,
//     and that the name is the key's.
//  2. Add the units to the slot of the reading, as long as the tag is the one of step 1.
//  3. CAS(HELD -> less units) of each rule, as long as its tag is the one of step 1. The last of them is the decision.
//
// If a tag has changed, the thread begins again, with a new reading: what it may take now may have been granted since.
//
// The owner changes the tag whenever it changes HELD. So a CAS that succeeds takes units of the lease whose END was
// checked, in a cell that was the key's: units that are granted, returned or dropped meanwhile have another tag, and so
// has the cell of the next key. The owner writes END before HELD: who sees the new tag, sees the new end.
//
// The slot comes before HELD. The owner counts as spent what is not held any more, and reads the slots after HELD: all
// that it counts is in them. A thread that fails between the two steps, or dies, leaves units in a slot that nobody has
// spent. Such units do no harm: the newest units of the slots date those that were spent, so each gets a time that is
// its own or a later one (`ages`). In the other order, one that is spent and not noted would get the time of an older
// one, and would leave its window too early.
//
// A slot has 8 bits of its number, which tell which of two is the newer one while they are less than two windows apart.
// A lease lasts less than half a window, and the owner empties older slots before it grants one. A thread that stands
// still longer than that does not write: it loads the slot, then sees that the tag is still the same, and its CAS fails
// if the slot has changed since.
//
// A thread that dies between the words of two rules loses units of the first one: they count as spent.
//
// Tags have 8 bits. A thread would have to stand still within one decision while the owner changes the cell exactly
// 256 times.
import { compareExchange, load, store, type Words } from '../../memory/words.js'

const UNITS = 0xffffff
const ONE_TAG = 1 << 24
const CELLS_PER_SET = 8
const NAME_LO = 0
const NAME_HI = 1
const END = 2
const FREE = 3
const HELD = 4
/** Slots of a cell, and how many of them a window has. */
const SLOTS = 32
const SLOTS_PER_WINDOW = 64
/** The header: when all leases were dropped last, as END. */
const VALID_FROM = 0
const HEADER = 1
/** Times that a thread looks again, because the owner has changed the cell meanwhile. */
const MOST_TRIES = 16

/** Units spent not later than so long ago. */
export type Aged = readonly [ageMs: number, units: number]

/** What a thread needs to take part. It can be cloned. */
export interface LeaseMemoryHandle {
  readonly buffer: SharedArrayBuffer
  readonly rules: number
  /** Of the shortest window. */
  readonly windowMs: number
  /** How long a lease lasts, less what clocks may go wrong. */
  readonly leaseMs: number
  readonly originMs: number
}

export class LeaseMemory {
  /** When this thread has last spent something, or tried to. */
  lastMs = 0
  readonly #words: Words
  readonly #rules: number
  readonly #cellWords: number
  readonly #sets: number
  readonly #slotMs: number
  readonly #leaseMs: number
  readonly #nowMs: () => number
  /** The words of HELD that a decision has read. */
  readonly #seen: number[]

  static create(cells: number, like: Omit<LeaseMemoryHandle, 'buffer'>, nowMs: () => number): LeaseMemory {
    const sets = Math.ceil(cells / CELLS_PER_SET)
    const words = HEADER + sets * CELLS_PER_SET * cellWords(like.rules)
    return new LeaseMemory({ ...like, buffer: new SharedArrayBuffer(4 * words) }, nowMs)
  }

  /** @param nowMs a clock that all threads have in common */
  constructor(handle: LeaseMemoryHandle, nowMs: () => number) {
    const { buffer, rules, windowMs, leaseMs, originMs } = handle
    this.#nowMs = () => nowMs() - originMs
    this.#words = new Int32Array(buffer)
    this.#rules = rules
    this.#cellWords = cellWords(rules)
    this.#sets = Math.floor((this.#words.length - HEADER) / this.#cellWords / CELLS_PER_SET)
    this.#slotMs = windowMs / SLOTS_PER_WINDOW
    this.#leaseMs = leaseMs
    this.#seen = new Array(rules).fill(0)
  }

  /** The cell of a key, or -1. */
  find(lo: number, hi: number): number {
    const first = this.#firstOf(lo)
    for (let at = first; at < first + CELLS_PER_SET * this.#cellWords; at += this.#cellWords)
      if (this.#isOf(at, lo, hi)) return at
    return -1
  }

  /** The time from the origin. */
  now(): number {
    return this.#nowMs()
  }

  /** Takes `cost` units of each rule from a valid lease. Returns whether they were taken: all, or none. */
  spend(cell: number, lo: number, hi: number, cost: number): boolean {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      if (!this.#see(cell, cost)) return false
      const ms = this.#nowMs()
      this.lastMs = ms
      if (!this.#isValid(load(this.#words, cell + END), ms) || !this.#isOf(cell, lo, hi)) return false
      if (this.#note(cell, cost, ms) && this.#take(cell, cost)) return true
    }
    return false
  }

  /** Whether each rule has so many units, and what it has. */
  #see(cell: number, cost: number): boolean {
    for (let r = 0; r < this.#rules; r++) {
      const held = load(this.#words, cell + HELD + r)
      if ((held & UNITS) < cost) return false
      this.#seen[r] = held
    }
    return true
  }

  #isOf(cell: number, lo: number, hi: number): boolean {
    return load(this.#words, cell + NAME_LO) === lo && load(this.#words, cell + NAME_HI) === hi
  }

  #isValid(end: number, ms: number): boolean {
    const now = Math.ceil(ms) | 0
    if (((end - now) | 0) <= 0) return false
    return ((end - Math.ceil(this.#leaseMs) - load(this.#words, VALID_FROM)) | 0) >= 0
  }

  /** Takes the units of each rule from the lease that was seen. If one has too few, the others get theirs back. */
  #take(cell: number, cost: number): boolean {
    for (let r = 0; r < this.#rules; r++) {
      if (this.#takeOf(cell + HELD + r, this.#seen[r]!, cost)) continue
      while (--r >= 0) this.#giveBack(cell + HELD + r, this.#seen[r]!, cost)
      return false
    }
    return true
  }

  #takeOf(at: number, seen: number, cost: number): boolean {
    for (let held = seen; ; ) {
      const found = compareExchange(this.#words, at, held, held - cost)
      if (found === held) return true
      if (((found ^ seen) & ~UNITS) !== 0 || (found & UNITS) < cost) return false
      held = found
    }
  }

  /** If the lease has been changed meanwhile, they are lost: they count as spent. */
  #giveBack(at: number, seen: number, cost: number): void {
    for (let held = load(this.#words, at); ((held ^ seen) & ~UNITS) === 0; ) {
      const found = compareExchange(this.#words, at, held, held + cost)
      if (found === held) return
      held = found
    }
  }

  /**
   * Adds units to the slot of this time. A thread that comes late may find the slot of a later time there: units that
   * are noted later than they were spent do no harm. Returns false if the lease has been changed meanwhile.
   */
  #note(cell: number, cost: number, ms: number): boolean {
    const slot = this.#slotOf(ms)
    const at = this.#slotAt(cell, slot)
    for (;;) {
      const word = load(this.#words, at)
      if (!this.#isSeen(cell)) return false
      const units = word & UNITS
      // Both slots are of one place in the ring, so they differ by a multiple of its length, or not at all.
      const isNew = units === 0 || ((slot << 24) - (word & ~UNITS)) >> 24 > 0
      const next = isNew ? (slot << 24) | cost : (word & ~UNITS) | Math.min(units + cost, UNITS)
      if (compareExchange(this.#words, at, word, next) === word) return true
    }
  }

  #isSeen(cell: number): boolean {
    return ((load(this.#words, cell + HELD) ^ this.#seen[0]!) & ~UNITS) === 0
  }

  /** Units that the key may take now: of the rule that has the fewest. */
  held(cell: number, ms = this.#nowMs()): number {
    if (!this.#isValid(load(this.#words, cell + END), ms)) return 0
    let least = UNITS
    for (let r = 0; r < this.#rules; r++) least = Math.min(least, load(this.#words, cell + HELD + r) & UNITS)
    return least
  }

  /** Milliseconds from the origin, modulo 2^32. */
  end(cell: number): number {
    return load(this.#words, cell + END)
  }

  free(cell: number): number {
    return load(this.#words, cell + FREE)
  }

  /** All leases that were asked for before now are over, in all threads. */
  dropAll(): void {
    store(this.#words, VALID_FROM, Math.ceil(this.#nowMs()) | 0)
  }

  // By the owner alone:

  /** The cells that a key may have. */
  *cellsOf(lo: number): Generator<number> {
    const first = this.#firstOf(lo)
    for (let i = 0; i < CELLS_PER_SET; i++) yield first + i * this.#cellWords
  }

  isNobodys(cell: number): boolean {
    return load(this.#words, cell + NAME_LO) === 0
  }

  /** Gives a cell of nobody to a key. */
  claim(cell: number, lo: number, hi: number): void {
    const words = this.#words
    for (let i = 0; i < SLOTS; i++) store(words, cell + HELD + this.#rules + i, 0)
    store(words, cell + FREE, 0)
    store(words, cell + NAME_HI, hi)
    store(words, cell + NAME_LO, lo)
  }

  /** Takes a cell from its key. What it holds is to be taken before. */
  release(cell: number): void {
    store(this.#words, cell + NAME_LO, 0)
  }

  /**
   * Leaves at most so many units of a rule, and gives HELD another tag.
   * @returns how many there were
   */
  keep(cell: number, rule: number, most: number): number {
    return this.#change(cell + HELD + rule, (units) => Math.min(units, most))
  }

  /**
   * Adds units to each rule.
   * @param free units that the server has left for others
   * @param end when it ends, from the origin; undefined: the end stays
   */
  grant(cell: number, units: number, free: number, end: number | undefined): void {
    const ms = this.#nowMs()
    this.#emptyOldSlots(cell, ms)
    // Times are compared modulo 2^32.
    const from = Math.floor(ms) | 0
    if (((from - load(this.#words, VALID_FROM)) | 0) > 2 ** 30)
      store(this.#words, VALID_FROM, (from - 2 ** 29) | 0)
    if (end !== undefined) store(this.#words, cell + END, Math.floor(end) | 0)
    store(this.#words, cell + FREE, free)
    for (let r = 0; r < this.#rules; r++)
      this.#change(cell + HELD + r, (held) => Math.min(held + units, UNITS))
  }

  #emptyOldSlots(cell: number, ms: number): void {
    const slot = this.#slotOf(ms)
    for (let i = 0; i < SLOTS; i++) {
      const at = this.#slotAt(cell, slot - i)
      const word = load(this.#words, at)
      if (word >>> 24 !== ((slot - i) & 0xff)) compareExchange(this.#words, at, word, 0)
    }
  }

  #change(at: number, by: (units: number) => number): number {
    for (let held = load(this.#words, at); ; ) {
      const next = ((held + ONE_TAG) & ~UNITS) | by(held & UNITS)
      const found = compareExchange(this.#words, at, held, next)
      if (found === held) return held & UNITS
      held = found
    }
  }

  /**
   * What was spent in the last half of a window, the newest first.
   * @param ms the time, read after HELD: nothing that is not held any more was spent later
   */
  ages(cell: number, ms: number): Aged[] {
    const slot = this.#slotOf(ms)
    const aged: Aged[] = []
    for (let i = 0; i < SLOTS; i++) {
      const word = load(this.#words, this.#slotAt(cell, slot - i))
      if ((word & UNITS) === 0 || word >>> 24 !== ((slot - i) & 0xff)) continue
      aged.push([Math.max(0, ms - (slot - i + 1) * this.#slotMs), word & UNITS])
    }
    return aged
  }

  #slotOf(ms: number): number {
    return Math.floor(ms / this.#slotMs)
  }

  #slotAt(cell: number, slot: number): number {
    return cell + HELD + this.#rules + (slot & (SLOTS - 1))
  }

  #firstOf(lo: number): number {
    return HEADER + Math.floor((lo >>> 0) * this.#sets * 2 ** -32) * CELLS_PER_SET * this.#cellWords
  }
}

const cellWords = (rules: number): number => HELD + rules + SLOTS
