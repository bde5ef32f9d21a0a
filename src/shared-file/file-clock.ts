/**
 * The time of a shared file is the machine's monotonic clock plus an offset in the header, with several rules
 * in the header of the first arena. All processes that have the file open use the same offset. When the
 * machine restarts, its monotonic clock starts again, but the file's time must continue.
 *
 * While any process has the file open, the offset does not change. A process that has the file alone compares
 * the boots:
 *
 * - The same boot: the monotonic clock has continued, and so has the file's time. Setting the wall clock
 *   changes nothing.
 * - Another boot: at least the machine's uptime has passed since NEWEST, the newest reading that a count was
 *   made with. More time has passed if the machine was off, but only the wall clock knows. The wall clock is
 *   used only if the kernel knows its error (`wallErrorMs`), both now and when it was last recorded with
 *   the file's time, once a second. Both errors are subtracted. Otherwise the time off counts as zero. So no
 *   key gets units back from a wall clock that was wrong, then or now, and no count stays longer than a
 *   window and a granule after the restart.
 * - Unknown (a system that does not name its boots): as if it were the same boot, but not before NEWEST. If
 *   it is another boot, less time counts than has passed.
 */
import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { Reading } from '../core/reading.js'
import { Ticks } from '../core/ticks.js'
import { headerDoubles } from '../memory/arena.js'
import type { Arenas } from '../memory/arenas.js'
import { HEADER } from '../memory/layout.js'
import { type Words, write } from '../memory/words.js'
import { checkAgreement, newestOf, upAheadMs } from './agreement.js'
import type { Machine } from './machine.js'
import { fileError } from './open-file.js'

const RECORD_EVERY_MS = 1_000
const BOOT_ID_WORDS = 4
const DAY_MS = 86_400_000

export class FileClock implements Clock {
  readonly #machine: Machine
  readonly #doubles: Float64Array
  readonly #offsetMs: number
  #recordAtMs: number

  /** The caller has the file open, so the offset does not change. */
  constructor([first]: Arenas, machine: Machine) {
    this.#machine = machine
    this.#doubles = headerDoubles(first.words)
    this.#offsetMs = this.#doubles[HEADER.CLOCK_OFFSET_MS / 2]!
    this.#recordAtMs = Number.NEGATIVE_INFINITY
  }

  now(): number {
    const ms = this.#machine.monotonicMs() + this.#offsetMs
    if (ms >= this.#recordAtMs) this.#record(ms)
    return ms
  }

  /** Records the wall clock, for a restart of the machine. */
  recordWallClock(): void {
    this.#record(this.#machine.monotonicMs() + this.#offsetMs)
  }

  #record(ms: number): void {
    this.#doubles[HEADER.WALL_AHEAD_MS / 2] = wallAheadMs(this.#machine, ms)
    this.#recordAtMs = ms + RECORD_EVERY_MS
  }
}

/** Starts the time of a new file: it is the machine's monotonic clock. */
export function beginTime(header: Words, machine: Machine): void {
  const doubles = headerDoubles(header)
  writeUptime(doubles, machine, 0)
  doubles[HEADER.WALL_AHEAD_MS / 2] = wallAheadMs(machine, machine.monotonicMs())
  writeBootId(header, machine.bootId())
}

/** Whether the header's offset is from this boot of the machine, or undefined if that is unknown. */
export function isOfThisBoot(words: Words, machine: Machine): boolean | undefined {
  const id = machine.bootId()
  const noted = words.subarray(HEADER.BOOT_ID, HEADER.BOOT_ID + BOOT_ID_WORDS)
  if (id === undefined || noted.every((word) => word === 0)) return undefined
  return noted.every((word, i) => word === id[i])
}

/**
 * Continues the file's time. Only a process that has the file alone calls this, before it reads the clock.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`, with nothing changed, if the header's times are invalid
 */
export function resumeTime(path: string, arenas: Arenas, machine: Machine): void {
  const { words } = arenas[0]
  const doubles = headerDoubles(words)
  const upMs = machine.monotonicMs()
  const newestMs = newestOf(arenas)
  const byMonotonicMs = upMs + doubles[HEADER.CLOCK_OFFSET_MS / 2]!
  const byWallMs = machine.wallMs() - machine.wallErrorMs() - doubles[HEADER.WALL_AHEAD_MS / 2]!
  const isOther = isOfThisBoot(words, machine) === false
  const nowMs = isOther ? Math.max(byWallMs, newestMs + upMs) : Math.max(byMonotonicMs, newestMs)
  checkTime(path, arenas, nowMs)
  writeUptime(doubles, machine, nowMs - upMs)
  writeBootId(words, machine.bootId())
}

/**
 * Checks that decisions can use this reading of the file's time, and those of the next day.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE` if they can't: the header is damaged
 */
export function checkTime(path: string, arenas: Arenas, nowMs: number): void {
  for (const { originMs, shape } of arenas) {
    const ticks = new Ticks(shape.windowMs, shape.buckets, shape.modulus, 0, shape.offsetMs)
    try {
      for (const ms of [nowMs, nowMs + DAY_MS]) new Reading({ now: () => ms }, ticks).take()
    } catch (error) {
      if (error instanceof MillraceError) throw damagedTimeError(path, nowMs, originMs, error)
      throw error
    }
    if (!(originMs <= nowMs && originMs >= -Number.MAX_SAFE_INTEGER))
      throw damagedTimeError(path, nowMs, originMs)
  }
}

function damagedTimeError(path: string, nowMs: number, originMs: number, cause?: unknown): MillraceError {
  const found = `its header says that the time is ${nowMs} ms, and began at ${originMs} ms`
  return fileError(path, `an arena of Millrace with a valid header; ${found}`, cause)
}

/** Writes the offset, and the difference by which other processes see whether their clock is this one. */
function writeUptime(doubles: Float64Array, machine: Machine, offsetMs: number): void {
  doubles[HEADER.CLOCK_OFFSET_MS / 2] = offsetMs
  doubles[HEADER.UP_AHEAD_MS / 2] = upAheadMs(machine, offsetMs) ?? 0
}

/**
 * Checks that this process has the clock of the others that have the file open.
 * @throws MillraceError `ERR_MILLRACE_CLOCKS_DIFFER`
 */
export function checkFileClock(arenas: Arenas, machine: Machine): void {
  const doubles = headerDoubles(arenas[0].words)
  const offsetMs = doubles[HEADER.CLOCK_OFFSET_MS / 2]!
  checkAgreement('shared.file', arenas, machine, offsetMs, {
    atLeastMs: Number.NEGATIVE_INFINITY,
    upAheadMs: doubles[HEADER.UP_AHEAD_MS / 2] || undefined,
  })
}

/** The wall clock minus the file's time, at most, in milliseconds. */
function wallAheadMs(machine: Machine, fileMs: number): number {
  return machine.wallMs() + machine.wallErrorMs() - fileMs
}

function writeBootId(words: Words, id: Int32Array | undefined): void {
  for (let i = 0; i < BOOT_ID_WORDS; i++) write(words, HEADER.BOOT_ID + i, id?.[i] ?? 0)
}
