// How a thread of one record reads the clock for cells of another (`conversion.mjs`).
import {
  beginOf,
  broken,
  currentAt,
  distance,
  GRANULE,
  GRANULES,
  granuleOf,
  granulesOf,
  isBehind,
  isConverting,
  LIMIT,
  N,
  ORDER,
  recordAt,
  recordOf,
  S,
  tickOf,
  usedAt,
  VIEW,
} from './words.mjs'

/** Writes the record with which the rule began. */
export function firstRecord(m) {
  m[usedAt()] = 1
  m[recordAt(0, GRANULE)] = S.granule
  m[recordAt(0, GRANULES)] = S.granules ?? 1
  m[recordAt(0, LIMIT)] = S.limit
  m[recordAt(0, ORDER)] = 1
}

/** The word CURRENT. */
export const current = (m) => m[currentAt()]

/** How long ago a unit can have been charged that a window covers: the thread's own, or a record's. */
export const covered = () => coveredBy(VIEW)
export const coveredBy = (record) => (record === VIEW ? N + 1 : granulesOf(record) + 1) * granuleOf(record)
/** The same of the longest window from a record on to the one before the thread's own. */
export function longestSince(record) {
  let longest = 0
  for (; record < VIEW; record++) longest = Math.max(longest, coveredBy(record))
  return longest
}

/**
 * The reading for a cell of the record `old`, whose tick is e. If the window has grown, it is earlier: what the
 * new window covers must not leave the old one.
 */
export function ownReading(now, old, e, last = covered()) {
  const grown = old === VIEW ? 0 : last - granulesOf(old) * granuleOf(old)
  return Math.max(now - Math.max(0, grown), tickOf(now, old) === e ? now : beginOf(e, old))
}

/** Whether nothing of a cell with tick e counts any more, by the record in its name. Not while it is converted. */
export function isExpired(e, now, hi) {
  if (!S.records) return e + N < tickOf(now)
  if (isConverting(hi)) return false
  const old = recordOf(hi)
  const reading = broken === 'expired at the new reading' ? now : ownReading(now, old, e)
  const goal = tickOf(reading, old)
  return isBehind(e, goal) && distance(goal, e) > granulesOf(old)
}
