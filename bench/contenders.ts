import type { Contender, Effort } from './benchmark.js'
import { type AsyncDecide, type Decide, timeAwaited, timeDecisions, type Workload } from './timing.js'

/** A contender that decides synchronously. */
export function direct<Key>(
  name: string,
  workload: (effort: Effort) => Workload<Key>,
  peer: () => Decide<Key>,
): Contender {
  return { name, measure: (effort) => timeDecisions(workload(effort), peer()) }
}

/** A contender that returns a promise. */
export function awaited<Key, Answer>(
  name: string,
  workload: (effort: Effort) => Workload<Key>,
  peer: () => AsyncDecide<Key, Answer>,
): Contender {
  return { name, measure: (effort) => timeAwaited(workload(effort), peer()) }
}
