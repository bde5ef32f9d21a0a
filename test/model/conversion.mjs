// A rule's window changes while it runs, as in `src/algorithms/conversion.ts`. A *record* is what the rule is or
// was: its granules and its limit. The word CURRENT has the present record. HI has, beside the key, the record
// that the cell's tick and buckets are of. A thread that finds its key in a cell of an earlier record converts it:
//
//     count    loads adm and tick, and sums what the new window covers
//     flip     CAS(HI: key | old -> key | CONVERTING | new). A thread of the old record finds its key no more
//     fence    CAS(adm -> epoch + 1). A commit of the old record now fails, as it expects an older word
//     place    moves the tick: to the end of the old tick, if adm and tick are those of the count; otherwise to a
//              new reading of the clock, as anything may have been admitted until now
//     carry    charges the sum, or the whole total, to the bucket of the tick
//     enter    after a count, moves the tick to the decision's reading, for which the sum was made
//     remember  keeps what earlier windows still count and the carry does not (`past.mjs`)
//     finish   CAS(HI: key | CONVERTING | new -> key | new). If it fails, takes out of the bucket what it charged
//     say      notes what has been carried, and in which tick
//
// Moves of the tick sweep nothing here: no scenario has as many laps as would come round.
//
// A thread that finds CONVERTING does all from the fence on: the one that began may be dead. If the name has an
// earlier record than the present one, the thread flips it to the present one first.
import { absent } from './insertion.mjs'
import { past, pastIn, raised, unitsSince } from './past.mjs'
import { covered, coveredBy, current, longestSince, ownReading } from './records.mjs'
import { sumOf } from './sums.mjs'
import {
  ADM,
  ASOF,
  adm,
  at,
  become,
  beginOf,
  broken,
  bucket,
  CLOCK,
  CONVERTING,
  cas,
  clock,
  count,
  currentAt,
  distance,
  done,
  ENDED,
  epoch,
  GRANULE,
  GRANULES,
  granuleOf,
  granulesOf,
  HI,
  hiOf,
  hop,
  isConverting,
  keyOf,
  LIMIT,
  LIVE,
  LO,
  lap,
  lapOf,
  load,
  MAX,
  NAMED,
  NEVER,
  ORDER,
  PAST,
  RING,
  recordAt,
  recordOf,
  refunds,
  S,
  SHIFT,
  slot,
  state,
  stays,
  store,
  TICK,
  tickOf,
  to,
  total,
  usedAt,
  VIEW,
} from './words.mjs'

/** Goes on by the record that `word` of CURRENT says. */
const viewed = ({ kind, key, cost }, word, carried) =>
  become({ kind, key, cost, record: recordOf(word) }, 'lookup', carried)

/** What follows a conversion, whatever became of it: the thread loads CURRENT and looks again. */
const again = ({ kind, tries, early }) => to('view', kind === 'end any' ? {} : { tries, early })

/** What follows a carry. */
const onward = (isCounted) => (!isCounted || broken === 'left at the old tick' ? 'remember' : 'enterNew')

/** Charges `units` to the bucket of the cell's tick, or as many as fit. Returns what and where, or nothing: not yet. */
function* charged(w, units) {
  const e = yield load(w, TICK)
  const b = yield load(w, slot(e))
  const isFresh = lap(b) !== lapOf(e)
  if (isFresh && distance(yield load(w, TICK), e) >= RING) return
  const most = Math.min(units, MAX - (isFresh ? 0 : count(b)))
  const next = isFresh ? bucket(lapOf(e), 0, most) : bucket(lap(b), refunds(b), count(b) + most)
  // A charge of a marked bucket stays: its stamp would say whether a refund by key has taken it.
  const isMarked = !isFresh && refunds(b) > 0
  if (!(yield cas(w, slot(e), b, next))) return
  return { u: e, most: isMarked ? 0 : most, isCut: most < units ? 1 : undefined }
}

/** Brings the tick to a reading, as a record numbers it. False: not yet. */
function* entered(w, now, record) {
  const e = yield load(w, TICK)
  if (yield* stays(w, e, now, record)) return true
  yield cas(w, TICK, e, hop(e, tickOf(now, record)))
  return false
}

/** Brings the tick to the reading, by the cell's own record. Returns that, or nothing while it is converted. */
export function* enteredByItsRecord(w, now) {
  const hi = yield load(w, HI)
  if (isConverting(hi) && broken !== 'given back while converting') return
  const e = yield load(w, TICK)
  if ((yield load(w, HI)) !== hi) return
  const record = recordOf(hi)
  const reading = broken === 'given back at the new reading' ? now : ownReading(now, record, e)
  while (!(yield* entered(w, reading, record)));
  return record
}

export const conversion = {
  ...past,
  // The clock comes before CURRENT. So no thread counts by a record at a reading from after its end.
  *view({ kind, key, cost, tries, early }) {
    if (kind === 'change') return to('change', { now: yield clock })
    if (kind === 'end any') return become({ kind, record: recordOf(yield current) }, 'endAny', { w: 0 })
    const isLate = broken === 'clock after CURRENT'
    if (!isLate) early ??= yield clock
    const word = yield current
    if (isLate) early ??= yield clock
    return viewed({ kind, key, cost }, word, { tries, early })
  },
  // The key has no cell of the thread's record. CURRENT comes after the name: if it is the thread's record still,
  // the cell's is an earlier one.
  *miss({ kind, key, cost, record, tries, early }) {
    let found
    for (let w = 0; w < S.ways && !found; w++) {
      if ((yield load(w, LO)) !== key) continue
      const hi = yield load(w, HI)
      if (keyOf(hi) === key && state(yield load(w, ADM)) === LIVE) found = { w, hi, tries, early }
    }
    if (found?.hi === (hiOf(key) | CONVERTING)) return to('fence', found)
    if (found?.hi === hiOf(key)) return to('view', { tries, early }) // converted meanwhile
    const word = yield current
    if (recordOf(word) !== record) return viewed({ kind, key, cost }, word, { tries, early })
    return found ? to('count', found) : absent({ kind, tries, early })
  },
  *count({ kind, w, hi, tries, early }) {
    const v = yield load(w, ADM)
    const e = yield load(w, TICK)
    if (state(v) !== LIVE || (yield load(w, HI)) !== hi) return again({ kind, tries, early })
    if (isConverting(hi)) return to('flip', { w, hi, tries, early }) // to an earlier record
    const old = recordOf(hi)
    const now = early
    const reading = broken === 'old window at the new reading' ? now : ownReading(now, old, e)
    const from = Math.max(
      tickOf(reading - covered(), old),
      Math.max(e, tickOf(reading, old)) - granulesOf(old),
    )
    const p = yield load(w, PAST)
    const before = yield* pastIn(w, p, now, old)
    const longest = longestSince(old)
    const ownNow = ownReading(now, old, e, longest)
    const ownFrom = Math.max(
      tickOf(ownNow - longest, old),
      Math.max(e, tickOf(ownNow, old)) - granulesOf(old),
    )
    let units = 0
    let own = 0
    for (let u = e; u >= Math.min(from, ownFrom) && u >= 0; u--) {
      const b = yield load(w, slot(u))
      if (lap(b) !== lapOf(u)) continue
      if (u >= from) units += count(b)
      if (u >= ownFrom) own += count(b)
    }
    if (covered() > granulesOf(old) * granuleOf(old)) units = before.atLeast(units, now - covered(), reading)
    const counted = before.atLeast(own, now - longest, ownNow)
    const ru = counted > 0 ? Math.max(counted, broken === 'carries more than it remembers' ? 0 : units) : 0
    const ownEnd = own > 0 ? beginOf(e + 1 + granulesOf(old), old) : now
    const rt = Math.max(before.until, coveredBy(old) < longest ? beginOf(e + 1, old) + longest : ownEnd)
    const end = broken === 'placed at its beginning' ? beginOf(e, old) : beginOf(e + 1, old)
    return to('flip', { w, hi, tries, early, v, e, units, end: end <= now ? end : undefined, p, ru, rt })
  },
  *flip({ kind, w, hi, tries, early, v, e, units, end, p, ru, rt }) {
    const flipped = hiOf(keyOf(hi)) | CONVERTING
    if (!(yield cas(w, HI, hi, flipped))) return again({ kind, tries, early })
    return to('fence', { w, hi: flipped, tries, early, v, e, units, end, p, ru, rt })
  },
  *fence({ kind, w, hi, tries, early, v, e, units, end, p, ru, rt }) {
    const q = yield load(w, PAST)
    p ??= q
    const from = early === undefined ? 0 : early - covered()
    let earlier = yield* unitsSince(w, q, from)
    if (broken === 'placed before the fence') yield* entered(w, yield clock, recordOf(hi))
    const x = yield load(w, ADM)
    if (state(x) !== LIVE) return again({ kind, tries, early })
    if (broken !== 'fence without the name' && (yield load(w, HI)) !== hi)
      return again({ kind, tries, early })
    const fenced = adm(epoch(x) + 1, LIVE, total(x))
    if (broken !== 'no fence' && !(yield cas(w, ADM, x, fenced))) return again({ kind, tries, early })
    if (broken === 'the past read after the fence') earlier = yield* unitsSince(w, yield load(w, PAST), from)
    const isSame = x === v || (v !== undefined && broken === 'counted though changed')
    const isCounted = isSame && (yield load(w, TICK)) === e
    if (isCounted && broken !== 'the total carried')
      return to('place', { w, hi, tries, early, units, now: end, isCounted: 1, p, ru, rt })
    const now = broken === 'an old reading' ? early : undefined
    const all = Math.min(total(x) + earlier, MAX - 1)
    return to('place', { w, hi, tries, early, units: all, now, p, ru: all })
  },
  *place({ kind, w, hi, tries, early, units, now, isCounted, p, ru, rt }) {
    // A new reading is the thread's from here on. CURRENT comes after it: the record may have ended.
    if (now === undefined) {
      now = early = yield clock
      const isUnchecked = broken === 'placed by an ended record'
      if (!isUnchecked && recordOf(yield current) !== VIEW) return again({ kind, tries, early })
    }
    const isPlaced = yield* entered(w, now, recordOf(hi))
    return to(isPlaced ? 'carry' : 'place', { w, hi, tries, early, units, now, isCounted, p, ru, rt })
  },
  // Another thread may have finished. After that, a carry would only take room from the key.
  *carry({ kind, w, hi, tries, early, units, isCounted, p, ru, rt }) {
    if (broken === 'finish before carry') yield cas(w, HI, hi, hi & ~CONVERTING)
    else if ((yield load(w, HI)) !== hi) return again({ kind, tries, early })
    const isToCarry =
      units > 0 &&
      broken !== 'no carry' &&
      (broken !== 'carried unless it counts' || (yield* sumOf(w, yield load(w, TICK), 0)) < units)
    const carried = isToCarry ? yield* charged(w, units) : { most: 0 }
    if (!carried) return to('carry', { w, hi, tries, early, units, isCounted, p, ru, rt })
    const { u, most, isCut } = carried
    if (isToCarry && broken !== 'not in the total') yield* raised(w, units)
    if (isCut && broken !== 'unsunk') return to('sink', { w, hi, tries, early, isCounted, u, p, ru, rt })
    const whole = most === units && units > 0 ? 1 : undefined
    return to(onward(isCounted), { w, hi, tries, early, u, most, whole, p, ru, rt })
  },
  // Not all units fit: another thread, which has carried them, too, must leave its carry there.
  *sink({ w, hi, tries, early, isCounted, u, p, ru, rt }) {
    const b = yield load(w, slot(u))
    const isSunk = lap(b) !== lapOf(u) || (yield cas(w, slot(u), b, bucket(lap(b), 3, count(b))))
    if (!isSunk) return to('sink', { w, hi, tries, early, isCounted, u, p, ru, rt })
    return to(onward(isCounted), { w, hi, tries, early, u, most: 0, p, ru, rt })
  },
  // A thread with an older reading must not be admitted at a moment at which more counted than the sum.
  *enterNew({ w, hi, tries, early, u, most, whole, p, ru, rt }) {
    const isEntered = yield* entered(w, early, recordOf(hi))
    return to(isEntered ? 'remember' : 'enterNew', { w, hi, tries, early, u, most, whole, p, ru, rt })
  },
  *finish({ kind, w, hi, tries, early, u, most }) {
    const isFinished = yield cas(w, HI, hi, hi & ~CONVERTING)
    const isKept =
      isFinished !== (broken === 'taken out by the one that finishes') || broken === 'carried twice'
    if (isFinished && most > 0) return to('say', { w, tries, early, u, most })
    if (isKept || most === 0) return again({ kind, tries, early })
    return to('takeCarryOut', { w, tries, early, u, most })
  },
  // The other thread's carry is complete. This one was a charge that is not admitted (`protocol.mjs`).
  *takeCarryOut({ kind, w, tries, early, u, most }) {
    const b = yield load(w, slot(u))
    if (lap(b) === lapOf(u) && refunds(b) === 0 && count(b) >= most) {
      if (!(yield cas(w, slot(u), b, b - most))) return to('takeCarryOut', { w, tries, early, u, most })
      return to('endNote', { w, tries, early })
    }
    return again({ kind, tries, early })
  },
  *endNote({ kind, w, tries, early }) {
    const v = yield load(w, ADM)
    if (state(v) === LIVE && !(yield cas(w, ADM, v, adm(epoch(v) + 1, LIVE, total(v)))))
      return to('endNote', { w, tries, early })
    if (state(v) === LIVE) yield store(w, ASOF, NEVER)
    return again({ kind, tries, early })
  },
  // A claimed way of another record: its tick, and the counts that the next key inherits, come along. The name
  // comes first: otherwise a thread of the old record takes the new tick for one of its own.
  *takeOver({ w, mine, tries, early, now }) {
    const isLate = broken === 'taken over before the name'
    const units = broken === 'taken over without counts' ? 0 : total(mine)
    if (!(yield* entered(w, now, VIEW)) || (units > 0 && !(yield* charged(w, units))))
      return to('takeOver', { w, mine, tries, early, now })
    if (isLate) return to('name', { w, mine, tries, early })
    const named = adm(epoch(mine), NAMED, total(mine))
    yield store(w, ADM, named)
    return to('scan', { w, mine: named, i: 0, tries, early })
  },
  // Ends the block of any key, to make room for another (`src/algorithms/block-bound.ts`).
  *endAny({ w }) {
    const v = yield load(w, ADM)
    if (state(v) !== LIVE || total(v) !== MAX) return done('no block')
    const hi = yield load(w, HI)
    const unchecked = isConverting(hi) ? 'a block ended while converting' : 'a block ended by another record'
    if ((hi & 15) !== VIEW && broken !== unchecked) {
      if (recordOf(hi) === VIEW) return to('fence', { w, hi })
      const early = yield clock
      if (recordOf(yield current) !== VIEW) return to('view', {})
      return to('count', { w, hi, early })
    }
    const sum = yield* sumOf(w, yield load(w, TICK), 0)
    const open = (m, oracle) =>
      m[at(w, ADM)] === v &&
      ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, sum)), oracle.block(keyOf(hi), 0), true)
    return (yield open) ? done('ended') : to('endAny', { w })
  },
  // Changes the rule. The record's number is taken after CURRENT: so the numbers in CURRENT only rise.
  *change({ granule, granules, limit, now }) {
    const word = yield current
    const record = yield (m) => m[usedAt()]++
    const publish = (m, oracle) => {
      if (m[currentAt()] !== word) return false
      const before = recordOf(word)
      m[recordAt(record, GRANULE)] = granule
      m[recordAt(record, GRANULES)] = granules
      m[recordAt(record, LIMIT)] = limit
      m[recordAt(record, ORDER)] = m[recordAt(before, ORDER)] + 1
      m[recordAt(before, ENDED)] = m[CLOCK] + 1 // for the oracle
      m[recordAt(record, SHIFT)] = tickOf(now, before) + jumpTo(granule, before) - Math.floor(now / granule)
      m[currentAt()] = record
      oracle.change(before)
      return true
    }
    return (yield publish) ? done('changed') : to('change', { now })
  },
}

/** Ticks between those of a record and those of the next, at the reading with which that was made. */
function jumpTo(granule, before) {
  if (broken === 'no jump') return 0
  if (broken === 'a short jump') return 1
  // The margin is for threads that have not noticed the change, up to the end of the scenario.
  const margin = Math.ceil((S.start + S.clock) / Math.min(granule, granuleOf(before)))
  return 4 * RING + margin
}
