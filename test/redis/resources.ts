// What keeps this process alive: timers, sockets, look-ups of names.
import * as assert from 'uvu/assert'
import { poll } from './poll.js'

/** Counts of active resources, by type. */
function active(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const type of process.getActiveResourcesInfo()) counts[type] = (counts[type] ?? 0) + 1
  return counts
}

/** The timers that are to fire. */
export const timers = (): number => active().Timeout ?? 0

/** Runs `act`, after which no more than before keeps the process alive. */
export async function leavingNothing(act: () => Promise<void>): Promise<void> {
  const before = active()
  await act()
  const isMore = () => Object.entries(active()).some(([type, count]) => count > (before[type] ?? 0))
  await poll(() => !isMore(), 'the end of what was begun').catch((error) => {
    assert.equal(active(), before, String(error))
  })
}
