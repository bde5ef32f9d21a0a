// The phases of `protocol.mjs` that block a key, and end its block.
import { sumOf } from './sums.mjs'
import {
  ADM,
  ASOF,
  adm,
  at,
  become,
  broken,
  cas,
  clock,
  done,
  epoch,
  HI,
  isKeyOf,
  isName,
  LIVE,
  LO,
  load,
  MAX,
  NEVER,
  state,
  store,
  TICK,
  to,
  total,
  UNTIL,
} from './words.mjs'

/** What the next key of a way finds in UNTIL, if its former key was blocked until `end`. */
export const leftEnd = (end) => -end

export const blocking = {
  *block({ key, cost, w, now, tries, record, end = now + cost }) {
    // `cost` is the duration. UNTIL is set by CAS, then the admission word: a way with a new owner is left
    // alone.
    const u = yield load(w, UNTIL)
    const v = yield load(w, ADM)
    if (state(v) !== LIVE || (yield load(w, LO)) !== key || !isName(yield load(w, HI), key))
      return to('lookup', { tries })
    // A key that had this way may have left the same end. A thread that still expects it could then change
    // the end of this block.
    const isLeft = u === leftEnd(end) && broken !== 'one UNTIL for two blocks'
    const until = isLeft ? end + 1 : end
    if (!(yield cas(w, UNTIL, u, until))) return to('block', { w, now, tries })
    const shut = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, MAX)), oracle.block(key, until), true)
    // The next try goes on with this end: one that a former key has left must not return then either.
    if (!(yield shut)) return become({ kind: 'block', key, cost, record, end: until }, 'lookup', { tries })
    if (broken !== 'note left standing') yield store(w, ASOF, NEVER)
    return done('blocks')
  },
  *endBlock({ key, w }) {
    // An evicted block ends by a sum: the key keeps its way and its counts.
    const v = yield load(w, ADM)
    if (total(v) !== MAX || !(yield* isKeyOf(w, v, key))) return done('no block')
    const s = yield* sumOf(w, yield load(w, TICK), yield clock)
    const open = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, s)), oracle.block(key, 0), true)
    return (yield open) ? done('ended') : to('endBlock', { w })
  },
}
