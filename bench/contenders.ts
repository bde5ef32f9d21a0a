import type { Contender, Effort } from './benchmark.js'
import { type AsyncDecide, type Course, type Decide, timeAwaited, timeDecisions } from './timing.js'

/** A contender that answers at once. */
export function direct<Key>(
  name: string,
  course: (effort: Effort) => Course<Key>,
  peer: () => Decide<Key>,
): Contender {
  return { name, measure: (effort) => timeDecisions(course(effort), peer()) }
}

/** A contender that answers with a promise. */
export function awaited<Key, Answer>(
  name: string,
  course: (effort: Effort) => Course<Key>,
  peer: () => AsyncDecide<Key, Answer>,
): Contender {
  return { name, measure: (effort) => timeAwaited(course(effort), peer()) }
}
