import { attachLimiter, type SharedLimiter } from 'millrace'
import { attachArena } from '#millrace/memory/arena.js'
import { ADM, CLAIMED, NAMED, STATE } from '#millrace/memory/layout.js'
import type { Log } from '../log.js'
import { keyName, timelineOf } from './decider.js'
import { BUCKETS, KEYS, LIMIT, WINDOW_MS } from './job.js'

/** The state after a wave of deaths, with all threads at rest. */
export interface Remains {
  /** Units that the limiter counts without a log entry: charges of the dead. */
  unitsLeft: number
  /** Violations: missing units, more than the dead can have charged, or quota that did not return. */
  complaints: string[]
}

/**
 * Compares the limiter's count of each key with the log and the intents of the dead. All threads of the
 * limiter must have paused or died, and the clock must stand still.
 */
export function compareCounts(
  shared: SharedLimiter,
  log: Log,
  intents: readonly ({ key: number; cost: number } | undefined)[],
): Remains {
  const timeline = timelineOf(shared)
  const limiter = attachLimiter(shared, { clock: timeline })
  const remains: Remains = { unitsLeft: 0, complaints: [] }
  for (let key = 0; key < KEYS; key++) {
    const counted = limiter.usage(keyName(key))
    const logged = log.sum(key, timeline.tick - BUCKETS, timeline.tick)
    const open = intents.reduce((sum, intent) => sum + (intent?.key === key ? intent.cost : 0), 0)
    remains.unitsLeft += counted - logged
    if (counted >= logged && counted <= logged + open) continue
    remains.complaints.push(
      `${keyName(key)}: ${counted} units counted, ${logged} admitted, ${open} unfinished at death`,
    )
  }
  return remains
}

/** Checks by a clock a window and a granule ahead that each key has exactly its whole limit again. */
export function quotaComplaints(shared: SharedLimiter): string[] {
  const timeline = timelineOf(shared)
  const aheadMs = WINDOW_MS + WINDOW_MS / BUCKETS
  const later = attachLimiter(shared, { clock: { now: () => timeline.now() + aheadMs } })
  const complaints: string[] = []
  for (let key = 0; key < KEYS; key++) {
    const remaining = later.peek(keyName(key)).remaining
    const isWhole = remaining === LIMIT && later.check(keyName(key), LIMIT).allowed
    if (!isWhole) complaints.push(`${keyName(key)}: ${remaining} of ${LIMIT} a window and a granule later`)
    if (later.check(keyName(key)).allowed) complaints.push(`${keyName(key)}: more than ${LIMIT}`)
  }
  return complaints
}

/** Ways that no thread works on: CLAIMED ones are lost, NAMED ones can be taken by the next insertion. */
export function orphans(shared: SharedLimiter): { claimed: number; named: number } {
  const { words, shape } = attachArena(shared.buffer)
  let claimed = 0
  let named = 0
  for (let way = 0; way < shape.ways; way++) {
    const state = Atomics.load(words, shape.waysAt + way * shape.wayWords + ADM) & STATE
    if (state === CLAIMED) claimed++
    if (state === NAMED) named++
  }
  return { claimed, named }
}
