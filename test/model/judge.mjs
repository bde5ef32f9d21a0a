// Judges each state, and each state at rest.
import { cell, usedIn } from './oracle.mjs'
import { wrongAfterChange } from './records-judge.mjs'
import { alone, threadOf } from './steps.mjs'
import { sumOf } from './sums.mjs'
import {
  ADM,
  at,
  CLAIMED,
  CLOCK,
  count,
  HI,
  keyOf,
  LIVE,
  LO,
  lap,
  lapOf,
  limitOf,
  MAX,
  N,
  NAMED,
  S,
  slot,
  state,
  TICK,
  tickOf,
  total,
  UNTIL,
} from './words.mjs'

export function wrongNow(s) {
  for (let key = 1; key < S.keys; key++) {
    let live = 0
    for (let w = 0; w < S.ways; w++)
      if (state(s.m[at(w, ADM)]) === LIVE && s.m[at(w, LO)] === key && keyOf(s.m[at(w, HI)]) === key) live++
    if (live > 1) return 'two live cells for one key'
  }
}
export function wrongAtRest(s) {
  if (S.records) return wrongAfterChange(s)
  const dead = s.t.some((t) => t.phase === 'dead')
  for (let w = 0; w < S.ways; w++) {
    const v = s.m[at(w, ADM)],
      T = s.m[at(w, TICK)],
      key = s.m[at(w, LO)]
    if (!dead && (state(v) === CLAIMED || state(v) === NAMED)) return 'a way stays claimed'
    if (state(v) !== LIVE) continue
    const until = s.o[cell(S.keys, key)]
    const blockedUntil = total(v) === MAX ? s.m[at(w, UNTIL)] : 0
    if (blockedUntil !== until && Math.max(blockedUntil, until) > s.m[CLOCK])
      return `key ${key} is blocked until ${blockedUntil}, not ${until}`
    if (S.sums && !S.evictLive) {
      let admitted = 0
      for (let u = Math.max(0, T - N); u <= T; u++) admitted += s.o[cell(key, u)]
      const summed = ran(sumOf(w, T, 0), s.m)
      if (summed < admitted) return `a sum below what was admitted: ${summed} < ${admitted} at ${T}`
    }
    let sum = 0,
      admitted = 0
    for (let u = Math.max(0, T - N); u <= T; u++) {
      const b = s.m[at(w, slot(u))],
        c = lap(b) === lapOf(u) ? count(b) : 0
      if (c < s.o[cell(key, u)] && !S.evictLive)
        return `bucket below what was admitted: ${c} < ${s.o[cell(key, u)]} at ${u}`
      sum += u === T - N && S.smooth ? 0 : c
      admitted += u === T - N && S.smooth ? 0 : dead ? s.o[cell(key, u)] : usedIn(s.o, key, u)
    }
    if (total(v) < admitted && !S.evictLive) return `total ${total(v)} below what was admitted: ${admitted}`
    // After overlapping refunds by key, a charge may stay although it was not admitted.
    if (!dead && S.exact && total(v) < sum) return `total ${total(v)} below the live sum ${sum}`
  }
  if (S.exact && !dead)
    for (let key = 1; key < S.keys; key++) {
      // a decision alone must be admitted if the oracle has room
      const now = tickOf(s.m[CLOCK])
      let used = 0
      for (let u = Math.max(0, now - N); u <= now; u++) used += usedIn(s.o, key, u)
      if (
        used < limitOf(key) &&
        s.o[cell(S.keys, key)] <= s.m[CLOCK] &&
        /refused|blocked|hang/.test(alone(lone(s, key, 0)))
      )
        return `refused with ${used} of ${limitOf(key)} used, key ${key}`
    }
  for (const gap of S.gaps)
    for (let key = 1; key <= S.restKeys; key++) {
      // alone after an idle time, a decision must be admitted
      if (alone(lone(s, key, gap)) !== 'admitted')
        return `alone and idle for ${gap} ticks, key ${key} is not admitted`
    }
}
/** Runs a generator of operations without interruption and returns its result. */
function ran(gen, m) {
  let r = gen.next()
  while (!r.done) r = gen.next(r.value(m))
  return r.value
}
function lone(s, key, gap) {
  const q = {
    m: s.m.slice(),
    o: s.o.slice().fill(0),
    t: [threadOf([{ kind: 'check', key, cost: 1 }])],
  }
  q.m[CLOCK] += gap * S.sub
  return q
}
