/**
 * Waits while another process has the file alone. An opening is a generator that yields whenever it must
 * wait. `openNow` and `openWithRetries` run it. The first blocks the thread for a moment, the second uses a
 * timer.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../core/errors.js'
import type { Signal } from '../core/on-abort.js'
import { OPTION } from './open-file.js'

/**
 * A generator that opens a file. It yields if another process has the file, so that the caller tries again
 * later.
 */
export type Opening<T> = Generator<void, T, void>

/** A synchronous call tries this often, and blocks its thread for a millisecond between two tries. */
const BLOCKING_TRIES = 100
const TRY_AGAIN_MS = 1
/** The longest wait. A process has the file alone for at most one pass over it. */
const MAX_WAIT_MS = 10_000
const TRY_LATER_MS = 5

/** Runs an opening synchronously. @throws MillraceError `ERR_MILLRACE_SHARED_BUSY` after 100 tries */
export function openNow<T>(path: string, opening: Opening<T>): T {
  const never = new Int32Array(new SharedArrayBuffer(4))
  let step = opening.next()
  // Counts tries, not time: on a busy machine time passes in which this process does not run.
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
 * Runs an opening between turns of the event loop. Rejects with `ERR_MILLRACE_SHARED_BUSY` after ten seconds,
 * or with the reason of `signal`.
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
  const expected = `a file that no other process is opening; one has kept it locked for ${ms} ms${instead}`
  return new MillraceError('ERR_MILLRACE_SHARED_BUSY', OPTION, path, expected)
}
