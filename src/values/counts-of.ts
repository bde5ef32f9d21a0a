import type { RemoteRule } from '../remote/remote-rule.js'
import { BucketCount } from './bucket-count.js'
import type { CallTime, Count } from './count.js'
import { CalendarCount, CounterCount, FixedCount, WindowCount } from './entry-counts.js'
import { LogCount } from './log-count.js'
import { decodeCounts, type SavedCount } from './saved-count.js'

type CountClass = new (
  remote: RemoteRule,
  limit: number,
  time: CallTime,
  saved: SavedCount | undefined,
) => Count

const COUNTS: Partial<Record<RemoteRule['rule']['algorithm'], CountClass>> = {
  'sliding-window': WindowCount,
  'sliding-log': LogCount,
  'sliding-counter': CounterCount,
  'fixed-window': FixedCount,
  'token-bucket': BucketCount,
  'leaky-bucket': BucketCount,
}

/**
 * The counts of a value, one for each rule.
 * @param limits of the call, in units
 * @throws ValueFault
 */
export function countsOf(
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] | undefined,
  time: CallTime,
  value: Uint8Array | undefined,
): Count[] {
  const shapes = rules.map(({ shape }) => shape)
  const saved = value === undefined ? [] : decodeCounts(value, shapes)
  return rules.map((remote, i) => {
    const { algorithm, limit } = remote.rule
    const Own = remote.calendar === undefined ? COUNTS[algorithm]! : CalendarCount
    return new Own(remote, limits?.[i] ?? limit, time, saved[i])
  })
}
