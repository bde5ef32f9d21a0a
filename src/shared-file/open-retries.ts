/**
 * How an opening waits while another process has the file to itself: it is a generator that yields wherever it would have to
 * wait, and one of the two here runs it, by blocking the thread for a moment or by a timer.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../core/errors.js'
import type { Signal } from '../core/on-abort.js'
import { OPTION } from './open-file.js'

/** Yields to say: another process has the file, try again a little later. */
export type Opening<T> = Generator<void, T, void>

/** A call that returns at once may block its thread for so many tries, a millisecond apart. */
const BLOCKING_TRIES = 100
const TRY_AGAIN_MS = 1
/** The longest that a living process has the file to itself is a pass over it. */
const MAX_WAIT_MS = 10_000
const TRY_LATER_MS = 5

/** Runs to the end at once. @throws MillraceError `ERR_MILLRACE_SHARED_BUSY` after a tenth of a second of waiting */
export function openNow<T>(path: string, opening: Opening<T>): T {
  const never = new Int32Array(new SharedArrayBuffer(4))
  let step = opening.next()
  // Tries are counted, not the time: a process that the machine leaves no time has not waited for another one.
  for (let tries = 1; !step.done; tries++) {
    if (tries < BLOCKING_TRIES) {
      Atomics.wait(never, 0, 0, TRY_AGAIN_MS)
      step = opening.next()
    } else {
      const instead = '; await openLimiter(…) waits for it without blocking'
      step = opening.throw(busyError(path, BLOCKING_TRIES * TRY_AGAIN_MS, instead))
    }
  }
  return step.value
}

/**
 * Runs to the end, between turns of the event loop. Rejects with `ERR_MILLRACE_SHARED_BUSY` after ten seconds, and with the
 * reason of `signal`.
 */
export async function openWithRetries<T>(
  path: string,
  opening: Opening<T>,
  signal?: Signal,
  maxWaitMs = MAX_WAIT_MS,
): Promise<T> {
  const endMs = performance.now() + maxWaitMs
  let step = opening.next()
  while (!step.done) {
    await sleep(TRY_LATER_MS)
    if (signal?.aborted) step = opening.throw(signal.reason)
    else if (performance.now() < endMs) step = opening.next()
    else step = opening.throw(busyError(path, maxWaitMs, ''))
  }
  return step.value
}

function busyError(path: string, ms: number, instead: string): MillraceError {
  const expected = `a file that no other process is opening; one had it to itself for ${ms} ms${instead}`
  return new MillraceError('ERR_MILLRACE_SHARED_BUSY', OPTION, path, expected)
}
