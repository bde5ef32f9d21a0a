// What the windows before the present one still count of a key (`src/algorithms/past.ts`). PAST has the units and the
// record of the conversion that remembered them, PAST_UNTIL when the last of them leaves its window. CARRIED and
// CARRIED_TICK say how many of them the cell counts, too, and where.
import { longestSince } from './records.mjs'
import {
  ADM,
  adm,
  beginOf,
  broken,
  CARRIED,
  CARRIED_TICK,
  cas,
  count,
  epoch,
  granulesOf,
  HI,
  LIVE,
  load,
  MAX,
  N,
  noted,
  notedRecord,
  PAST,
  PAST_UNTIL,
  state,
  store,
  tickOf,
  to,
  total,
  VIEW,
  versionOf,
} from './words.mjs'

/** The units of the past `p` that any window counted after a moment. */
export function* unitsSince(w, p, from) {
  return count(p) > 0 && (yield load(w, PAST_UNTIL)) > from ? count(p) : 0
}

/** The past `p` of a cell of the record `old`. */
export function* pastIn(w, p, now, old) {
  if (count(p) === 0) return { until: now, atLeast: (own) => own }
  const until = yield load(w, PAST_UNTIL)
  const said = yield load(w, CARRIED)
  const at = yield load(w, CARRIED_TICK)
  const isSaid = notedRecord(said) === old && broken !== 'a past on top of what is carried'
  const carried = (reading) => (isSaid && at >= tickOf(reading, old) - granulesOf(old) ? count(said) : 0)
  return {
    until: Math.max(now, until),
    /** All units that counted after `from`, of which the cell counts `own` at a reading. */
    atLeast: (own, from, reading) => (until > from ? count(p) + Math.max(0, own - carried(reading)) : own),
  }
}

/** The total is not below what is carried: units of the past may not be in it. */
export function* raised(w, units) {
  for (;;) {
    const v = yield load(w, ADM)
    if (state(v) !== LIVE || total(v) >= units) return
    if (yield cas(w, ADM, v, adm(epoch(v) + 1, LIVE, units))) return
  }
}

/** Forgets the past of a way that this thread has CLAIMED for another key. */
export function* emptied(w) {
  const p = yield load(w, PAST)
  if (count(p) > 0) yield store(w, PAST, noted(0, 0, versionOf(p) + 1))
}

export const past = {
  // What this thread's own carry counts until it has left needs no past.
  *remember({ w, hi, tries, early, u, most, whole, p, ru, rt }) {
    const onward = { w, hi, tries, early, u, most }
    rt ??= early + longestSince(0)
    const counted = whole ? beginOf(u + N + 1, VIEW) : early
    const units = rt > counted && broken !== 'remembers nothing' ? Math.min(ru, MAX - 1) : 0
    if ((count(p) === 0 && units === 0) || notedRecord(p) >= VIEW) return to('finish', onward)
    const until = yield load(w, PAST_UNTIL)
    if ((yield load(w, HI)) !== hi) return to('finish', onward)
    const again = to('remember', { ...onward, whole, p, ru, rt })
    if (units > 0 && until < rt && !(yield cas(w, PAST_UNTIL, until, rt))) return again
    if (yield cas(w, PAST, p, noted(VIEW, units, versionOf(p) + 1))) return to('finish', onward)
    return to('remember', { ...onward, whole, p: yield load(w, PAST), ru, rt })
  },
  // Only the carry of the thread that has finished stays.
  *say({ w, tries, early, u, most }) {
    if (count(yield load(w, PAST)) > 0) {
      yield store(w, CARRIED_TICK, u)
      yield store(w, CARRIED, noted(VIEW, most))
    }
    return to('view', { tries, early })
  },
}
