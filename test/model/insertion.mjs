// The phases of `protocol.mjs` that give a key a way, as `src/memory/insertion.ts` does.
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
  hop,
  LIVE,
  LO,
  load,
  MAX,
  N,
  NAMED,
  S,
  state,
  store,
  TICK,
  tickOf,
  to,
  total,
  UNTIL,
} from './words.mjs'

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
    const t = yield load(w, TICK),
      now = yield clock // a new reading: by an old one, fewer counts would have expired
    const expired = t + N < tickOf(now)
    if (!expired && total(v) > 0 && !S.evictLive) return done('no room')
    const mine = adm(
      epoch(v) + (broken === 'claim without epoch' ? 0 : 1),
      broken === 'NAMED before its name' ? NAMED : CLAIMED,
      expired ? 0 : Math.min(total(v), broken === 'inherited block' ? MAX : MAX - 1),
    )
    const take = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = mine), shut && oracle.block(m[at(w, LO)], 0), true)
    return (yield take) ? to('name', { w, mine, tries, early }) : to('lookup', { tries, early })
  },
  *name({ key, w, mine, tries, early }) {
    yield store(w, HI, key)
    yield store(w, LO, key)
    const named = adm(epoch(mine), NAMED, total(mine))
    if (broken !== 'NAMED before its name') yield store(w, ADM, named)
    return to(broken === 'no scan' ? 'settle' : 'scan', { w, mine: named, i: 0, tries, early })
  },
  *scan({ key, w, mine, i, tries, early }) {
    // checks whether another way of both sets has the same name
    if (i === w) i++
    if (i >= S.ways) return to('settle', { w, mine, tries, early })
    const x = yield load(i, ADM)
    if (state(x) >= NAMED && (yield load(i, LO)) === key && (yield load(i, HI)) === key) {
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
    if (t >= tickOf(now)) return to('promote', { w, mine, tries, early })
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
