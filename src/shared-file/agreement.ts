/**
 * Compares the clock of this thread with that of the threads and processes that have used the same memory. No
 * two of them can read their clocks at the same moment, so the comparison is between two bounds, which hold for one
 * clock without exception:
 *
 * - It is not before a reading that another thread has taken and written down.
 * - It has not advanced further since than the machine's uptime. (It may have advanced less: the uptime goes
 *   on while the machine sleeps.)
 */
import { MOST_APART_MS } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import type { Arenas } from '../memory/arenas.js'
import { HEADER, PER_SECOND } from '../memory/layout.js'
import { load } from '../memory/words.js'
import { type Machine, UPTIME_STEP_MS } from './machine.js'

/** What one thread writes down about its clock, for others to compare with theirs. */
export interface ClockSample {
  /** A reading of the clock, in milliseconds. */
  readonly atLeastMs: number
  /** The machine's uptime minus the clock, at least, in milliseconds. */
  readonly upAheadMs?: number | undefined
}

/** The machine's uptime minus its clock with this offset, at least. The uptime is read first. */
export function upAheadMs(machine: Machine, offsetMs: number): number | undefined {
  const upMs = machine.uptimeMs()
  return upMs === undefined ? undefined : upMs - (machine.monotonicMs() + offsetMs)
}

/** The newest reading that moved a tick of these arenas, in milliseconds. */
export function newestOf(arenas: Arenas): number {
  const newest = arenas.map(({ words }) => load(words, HEADER.NEWEST) >>> 0)
  return arenas[0].originMs + Math.max(...newest) * (1000 / PER_SECOND)
}

/**
 * Checks that the machine's clock with this offset is that of `sample` and of the arenas.
 * @throws MillraceError `ERR_MILLRACE_CLOCKS_DIFFER` if it is further away than a granule and `MOST_APART_MS`
 */
export function checkAgreement(
  option: string,
  arenas: Arenas,
  machine: Machine,
  offsetMs: number,
  sample: ClockSample,
): void {
  const leastMs = Math.max(sample.atLeastMs, newestOf(arenas))
  const nowMs = machine.monotonicMs() + offsetMs
  const upMs = sample.upAheadMs === undefined ? undefined : machine.uptimeMs()
  const mostMs = upMs === undefined ? nowMs : upMs + UPTIME_STEP_MS - sample.upAheadMs!
  const apartMs = Math.max(leastMs - nowMs, nowMs - mostMs)
  const granuleMs = Math.min(...arenas.map(({ shape }) => shape.windowMs / shape.buckets))
  const within = Math.max(MOST_APART_MS, granuleMs)
  if (apartMs <= within) return
  const expected = `a thread or process whose clock is within ${within} ms of the others'`
  throw new MillraceError('ERR_MILLRACE_CLOCKS_DIFFER', option, `a clock ${apartMs} ms apart`, expected)
}
