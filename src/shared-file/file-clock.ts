/**
 * The time of a shared file: the machine's monotonic clock and an offset that stands in the header, the same for all who have
 * the file open. It has to go on where it was when the machine starts anew, and its monotonic clock with it.
 *
 * While any process has the file open nothing changes the offset. A process that has it alone compares the boots:
 *
 * - The same boot: the monotonic clock has gone on, so has the file's time; setting the wall clock changes nothing.
 * - Another one: at least the time that the machine has been up since has passed after the newest reading that a count was made
 *   by. More has passed, as long as the machine was off, and only the wall clock could tell. It is believed where the kernel
 *   vouches for it (`wallErrorMs`), both when it was last noted beside the file's time, once a second, and now; and so much less as
 *   it may be wrong. Where it does not, the time off counts as none: nobody gets quota back by a wall clock that was wrong, then
 *   or now, and no count stays longer than a window and a granule after the start.
 * - Not known (a system that does not name its boots): as if it were the same boot, not before the newest reading that counted.
 *   On another boot that is less than has passed.
 */
import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { Reading } from '../core/reading.js'
import { Ticks } from '../core/ticks.js'
import { type Arena, headerDoubles } from '../memory/arena.js'
import { HEADER, PER_SECOND } from '../memory/layout.js'
import { load, type Words, write } from '../memory/words.js'
import type { Machine } from './machine.js'
import { fileError } from './open-file.js'

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
    this.#doubles[HEADER.WALL_AHEAD_MS / 2] = wallAheadMs(this.#machine, ms)
    this.#noteAtMs = ms + NOTE_EVERY_MS
  }
}

/** The clock of a file that is being made: its time is the machine's. */
export function beginTime(header: Words, machine: Machine): void {
  const doubles = headerDoubles(header.buffer)
  doubles[HEADER.CLOCK_OFFSET_MS / 2] = 0
  doubles[HEADER.WALL_AHEAD_MS / 2] = wallAheadMs(machine, machine.monotonicMs())
  writeBootId(header, machine.bootId())
}

/** Whether the header's offset is of this boot of the machine; undefined where that can't be known. */
export function isOfThisBoot(words: Words, machine: Machine): boolean | undefined {
  const id = machine.bootId()
  const noted = words.subarray(HEADER.BOOT_ID, HEADER.BOOT_ID + BOOT_ID_WORDS)
  if (id === undefined || noted.every((word) => word === 0)) return undefined
  return noted.every((word, i) => word === id[i])
}

/**
 * Lets the file's time go on from where it was. Only for a process that has the file alone, and before it reads the clock.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`, with nothing changed, where the header's times are none
 */
export function resumeTime(path: string, arena: Arena, machine: Machine): void {
  const { words, originMs } = arena
  const doubles = headerDoubles(arena.buffer)
  const upMs = machine.monotonicMs()
  const newestMs = originMs + (load(words, HEADER.NEWEST) >>> 0) * (1000 / PER_SECOND)
  const byMonotonicMs = upMs + doubles[HEADER.CLOCK_OFFSET_MS / 2]!
  const byWallMs = machine.wallMs() - machine.wallErrorMs() - doubles[HEADER.WALL_AHEAD_MS / 2]!
  const isOther = isOfThisBoot(words, machine) === false
  const nowMs = isOther ? Math.max(byWallMs, newestMs + upMs) : Math.max(byMonotonicMs, newestMs)
  checkTime(path, arena, nowMs)
  doubles[HEADER.CLOCK_OFFSET_MS / 2] = nowMs - upMs
  writeBootId(words, machine.bootId())
}

/**
 * Whether a decision can go by such a reading of the file's time.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`: the header is damaged
 */
export function checkTime(path: string, { originMs, shape }: Arena, nowMs: number): void {
  try {
    new Reading({ now: () => nowMs }, new Ticks(shape.windowMs, shape.buckets, shape.modulus)).take()
  } catch (error) {
    if (error instanceof MillraceError) throw damagedTimeError(path, nowMs, originMs, error)
    throw error
  }
  if (!(originMs <= nowMs)) throw damagedTimeError(path, nowMs, originMs)
}

function damagedTimeError(path: string, nowMs: number, originMs: number, cause?: unknown): MillraceError {
  const expected = `an arena of Millrace with a sound header; by this one its time is ${nowMs} ms, and began at ${originMs} ms`
  return fileError(path, expected, cause)
}

/** How far the wall clock is ahead of the file's time, at most. */
function wallAheadMs(machine: Machine, fileMs: number): number {
  return machine.wallMs() + machine.wallErrorMs() - fileMs
}

function writeBootId(words: Words, id: Int32Array | undefined): void {
  for (let i = 0; i < BOOT_ID_WORDS; i++) write(words, HEADER.BOOT_ID + i, id?.[i] ?? 0)
}
