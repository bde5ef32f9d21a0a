/**
 * The time of a shared file: the machine's monotonic clock and an offset that stands in the header, the same for all who have
 * the file open. It has to go on where it was when the machine starts anew, and its monotonic clock with it.
 *
 * While anybody has the file open nothing changes the offset. Who comes to have it alone compares the boots:
 *
 * - The same boot: the monotonic clock has gone on, so has the file's time; setting the wall clock changes nothing.
 * - Another one: the time that has passed is told by the wall clock, which was noted beside the file's time every second. It
 *   may have been set since, by a clock without a battery to 1970; so there is a lower bound that no clock can spoil: the
 *   newest reading that a count was made by, and as much as the machine has been up since. Counts stay at least as long as
 *   that says, so a wall clock that is behind gives nobody quota back, and none of them stays longer than a window and a granule after the start.
 *   (A wall clock that is far ahead makes counts expire early: nothing on the machine could tell.)
 * - Not known (a system that does not name its boots): the earlier of both readings, not before the newest one that counted.
 */
import type { Clock } from '../core/clock.js'
import { type Arena, headerDoubles } from '../memory/arena.js'
import { HEADER, PER_SECOND } from '../memory/layout.js'
import { load, read, type Words, write } from '../memory/words.js'
import type { Machine } from './machine.js'

const NOTE_EVERY_MS = 1_000
const BOOT_ID_WORDS = 4

export class FileClock implements Clock {
  readonly #machine: Machine
  readonly #doubles: Float64Array
  readonly #offsetMs: number
  #noteAtMs: number

  /** Whoever makes one has the file open, so the offset stands. */
  constructor(arena: Arena, machine: Machine) {
    this.#machine = machine
    this.#doubles = headerDoubles(arena.buffer)
    this.#offsetMs = this.#doubles[HEADER.CLOCK_OFFSET_MS / 2]!
    this.#noteAtMs = Number.NEGATIVE_INFINITY
  }

  now(): number {
    const ms = this.#machine.monotonicMs() + this.#offsetMs
    if (ms >= this.#noteAtMs) this.#note(ms)
    return ms
  }

  /** Notes where the wall clock is, for a restart of the machine. */
  note(): void {
    this.#note(this.#machine.monotonicMs() + this.#offsetMs)
  }

  #note(ms: number): void {
    this.#doubles[HEADER.WALL_AHEAD_MS / 2] = this.#machine.wallMs() - ms
    this.#noteAtMs = ms + NOTE_EVERY_MS
  }
}

/** The clock of a file that is being made: its time is the machine's. */
export function beginTime(header: Words, machine: Machine): void {
  const doubles = headerDoubles(header.buffer)
  doubles[HEADER.CLOCK_OFFSET_MS / 2] = 0
  doubles[HEADER.WALL_AHEAD_MS / 2] = machine.wallMs() - machine.monotonicMs()
  writeBootId(header, machine.bootId())
}

/** Whether the header's offset is of this boot of the machine; undefined where that can't be known. */
export function isOfThisBoot(words: Words, machine: Machine): boolean | undefined {
  const id = machine.bootId()
  const noted = words.subarray(HEADER.BOOT_ID, HEADER.BOOT_ID + BOOT_ID_WORDS)
  if (id === undefined || noted.every((word) => word === 0)) return undefined
  return noted.every((word, i) => word === id[i])
}

/** Lets the file's time go on from where it was. Only for who has the file alone, and before it reads the clock. */
export function resumeTime(arena: Arena, machine: Machine): void {
  const { words, originMs } = arena
  const doubles = headerDoubles(arena.buffer)
  const isSameBoot = isOfThisBoot(words, machine)
  const upMs = machine.monotonicMs()
  const newestMs = originMs + (load(words, HEADER.NEWEST) >>> 0) * (1000 / PER_SECOND)
  const byMonotonicMs = upMs + doubles[HEADER.CLOCK_OFFSET_MS / 2]!
  const byWallMs = machine.wallMs() - doubles[HEADER.WALL_AHEAD_MS / 2]!
  let nowMs = Math.max(byMonotonicMs, newestMs)
  if (isSameBoot === false) nowMs = Math.max(byWallMs, newestMs + upMs)
  if (isSameBoot === undefined) nowMs = Math.max(Math.min(byMonotonicMs, byWallMs), newestMs)
  doubles[HEADER.CLOCK_OFFSET_MS / 2] = nowMs - upMs
  writeBootId(words, machine.bootId())
}

/** Whether the header's times are such as these functions write. */
export function hasTime(arena: Arena): boolean {
  const doubles = headerDoubles(arena.buffer)
  const times = [doubles[HEADER.CLOCK_OFFSET_MS / 2]!, doubles[HEADER.WALL_AHEAD_MS / 2]!]
  return times.every((ms) => Number.isFinite(ms)) && read(arena.words, HEADER.MAX_KEYS) >= 1
}

function writeBootId(words: Words, id: Int32Array | undefined): void {
  for (let i = 0; i < BOOT_ID_WORDS; i++) write(words, HEADER.BOOT_ID + i, id?.[i] ?? 0)
}
