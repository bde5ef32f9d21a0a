// The phases of `protocol.mjs` that give a key a way, as `src/memory/insertion.ts` does.
import { leftEnd } from './blocking.mjs'
import { emptied, unitsSince } from './past.mjs'
import { current, isExpired } from './records.mjs'
import {
  ADM,
  adm,
  at,
  broken,
  CLAIMED,
  cas,
  clock,
  done,
  epoch,
  FREE,
  firstSwept,
  HI,
  hiOf,
  hop,
  isConverting,
  keyOf,
  LIVE,
  LO,
  load,
  MAX,
  NAMED,
  PAST,
  recordOf,
  S,
  state,
  stays,
  store,
  TICK,
  tickOf,
  to,
  total,
  UNTIL,
  VIEW,
} from './words.mjs'

/** What follows a lookup that found no way of the key. */
export const absent = ({ kind, tries, early }) => {
  if (kind === 'refund' || kind === 'end block') return done('nothing to do')
  return tries < S.tries ? to('choose', { tries: tries + 1, early }) : done('no room')
}

/** The check after a claim alone is enough, and so is the name at the fence with the check before the claim. */
const ALSO_UNCHECKED = new Set(['claimed by an old record', 'fence without the name'])

export const insertion = {
  *choose({ key, tries, early }) {
    // the explorer tries every way that may be taken
    return {
      split: (S.choice?.[key] ?? Array.from({ length: S.ways }, (_, w) => w)).map((w) =>
        to('claim', { w, tries, early }),
      ),
    }
  },
  *claim({ w, tries, early }) {
    const v = yield load(w, ADM)
    if (state(v) === CLAIMED) return done('no room')
    const shut = total(v) === MAX && (yield load(w, UNTIL)) > (yield clock)
    if (shut && !S.givesWay) return done('no room')
    const hi = S.records && (yield load(w, HI))
    const t = yield load(w, TICK),
      now = yield clock // a new reading: by an old one, fewer counts would have expired
    const isKept = S.records > 0 && (yield* unitsSince(w, yield load(w, PAST), now)) > 0
    const expired = isExpired(t, now, hi) && !isKept
    if (S.records) {
      if (broken !== 'claimed by an old record' && recordOf(yield current) !== VIEW)
        return to('view', { tries: tries - 1, early })
      const isOther = state(v) === LIVE && (hi & 15) !== VIEW
      if (isOther && isConverting(hi) && recordOf(hi) === VIEW)
        return to('fence', { w, hi, tries: tries - 1, early })
      if (isOther && !expired) return to('count', { w, hi, tries: tries - 1, early: now })
    }
    if (!expired && (total(v) > 0 || isKept) && !S.evictLive) return done('no room')
    const mine = adm(
      epoch(v) + (broken === 'claim without epoch' ? 0 : 1),
      broken === 'NAMED before its name' ? NAMED : CLAIMED,
      expired ? 0 : Math.min(total(v), broken === 'inherited block' ? MAX : MAX - 1),
    )
    const take = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = mine), shut && oracle.block(m[at(w, LO)], 0), true)
    if (!(yield take)) return to('lookup', { tries, early })
    const until = yield load(w, UNTIL)
    if (until > 0 && broken !== 'ends left as they are') yield cas(w, UNTIL, until, leftEnd(until))
    if (S.records && !ALSO_UNCHECKED.has(broken) && recordOf(yield current) !== VIEW) {
      yield store(w, ADM, adm(epoch(mine), FREE, total(mine)))
      return to('view', { tries: tries - 1, early })
    }
    const isOther = S.records && (hi & 15) !== VIEW
    const isEarly = isOther && broken === 'taken over before the name'
    return to(isEarly ? 'takeOver' : 'name', { w, mine, tries, early, now: isOther ? now : undefined })
  },
  *name({ key, w, mine, tries, early, now }) {
    yield store(w, HI, hiOf(key))
    yield store(w, LO, key)
    if (S.records) yield* emptied(w)
    if (now !== undefined && broken !== 'taken over before the name')
      return to('takeOver', { w, mine, tries, early, now })
    const named = adm(epoch(mine), NAMED, total(mine))
    if (broken !== 'NAMED before its name') yield store(w, ADM, named)
    return to(broken === 'no scan' ? 'settle' : 'scan', { w, mine: named, i: 0, tries, early })
  },
  *scan({ key, w, mine, i, tries, early }) {
    // checks whether another way of both sets has the same name
    if (i === w) i++
    if (i >= S.ways) return to('settle', { w, mine, tries, early })
    const x = yield load(i, ADM)
    const isSame = (hi) => (broken === 'scan compares records' ? hi === hiOf(key) : keyOf(hi) === key)
    if (state(x) >= NAMED && (yield load(i, LO)) === key && isSame(yield load(i, HI))) {
      if (state(x) === LIVE) {
        yield cas(w, ADM, mine, adm(epoch(mine), FREE, total(mine)))
        return to('lookup', { tries, early })
      }
      if (broken !== 'no veto' && !(yield cas(i, ADM, x, adm(epoch(x), FREE, total(x)))))
        return to('scan', { w, mine, i, tries, early })
    }
    return to('scan', { w, mine, i: i + 1, tries, early })
  },
  // Advances the tick to a clock reading taken after the scan. No other cell of the key was live then, so
  // nothing was admitted for the key after that reading, and no decision here is admitted before it, even
  // with an older reading.
  *settle({ w, mine, tries, early }) {
    if (broken === 'unsettled') return to('promote', { w, mine, tries, early })
    const t = yield load(w, TICK),
      now = yield clock
    if (yield* stays(w, t, now)) return to('promote', { w, mine, tries, early })
    const next = hop(t, tickOf(now))
    return (yield cas(w, TICK, t, next))
      ? to('sweep', { w, p: firstSwept(t, next), next, now, tries, early, mine })
      : to('settle', { w, mine, tries, early })
  },
  *promote({ w, mine, tries, early }) {
    // fails if another thread has vetoed this way
    const alive = adm(epoch(mine), LIVE, total(mine))
    if (broken === 'promote by store') yield store(w, ADM, alive)
    else yield cas(w, ADM, mine, alive)
    return to('lookup', { tries, early })
  },
}
