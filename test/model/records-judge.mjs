// Judges a state at rest in a scenario whose rule changes (`conversion.mjs`).
import { cell } from './oracle.mjs'
import { usedBetween } from './records-oracle.mjs'
import { alone, step, threadOf } from './steps.mjs'
import {
  ADM,
  at,
  CLAIMED,
  CLOCK,
  count,
  currentAt,
  granuleOf,
  granulesOf,
  HI,
  isConverting,
  LIVE,
  LO,
  lap,
  lapOf,
  limitOf,
  MAX,
  NAMED,
  recordOf,
  S,
  slot,
  state,
  TICK,
  takeView,
  total,
  UNTIL,
} from './words.mjs'

export function wrongAfterChange(s) {
  const dead = s.t.some((t) => t.phase === 'dead')
  const present = s.m[currentAt()]
  takeView({ record: present }, s.m)
  for (let w = 0; w < S.ways; w++) {
    const v = s.m[at(w, ADM)],
      hi = s.m[at(w, HI)],
      T = s.m[at(w, TICK)],
      key = s.m[at(w, LO)]
    if (!dead && (state(v) === CLAIMED || state(v) === NAMED)) return 'a way stays claimed'
    if (state(v) !== LIVE) continue
    const until = s.o[cell(S.keys, key)]
    const blockedUntil = total(v) === MAX ? s.m[at(w, UNTIL)] : 0
    if (blockedUntil !== until && Math.max(blockedUntil, until) > s.m[CLOCK])
      return `key ${key} is blocked until ${blockedUntil}, not ${until}`
    if (!dead && isConverting(hi)) return 'a way stays converting'
    if (isConverting(hi) || (S.evictLive && !S.inherits)) continue
    const record = recordOf(hi)
    const n = granulesOf(record)
    let sum = 0
    for (let u = T; u >= T - n; u--) {
      const b = s.m[at(w, slot(u))]
      sum += lap(b) === lapOf(u) ? count(b) : 0
      const admitted = usedBetween(s.o, key, u, T, record)
      if (sum < admitted) return `buckets below what was admitted: ${sum} < ${admitted} from ${u} to ${T}`
    }
    const charged = usedBetween(s.o, key, 0, T, record)
    if (S.once && !dead && sum > charged) return `${sum} in the buckets, ${charged} were charged`
    const admitted = usedBetween(s.o, key, T - n, T, record)
    if (total(v) < admitted) return `total ${total(v)} below what was admitted: ${admitted}`
  }
  for (let key = 1; key <= S.restKeys; key++) {
    const wrong = wrongAlone(s, key, present, dead)
    if (wrong) return `${wrong}, key ${key}`
  }
}

/** Decisions on one key after all others have ended. */
function wrongAlone(s, key, present, dead) {
  const limit = limitOf(key)
  const window = (granulesOf(present) + 1) * granuleOf(present)
  let longest = 0
  for (let record = 0; record < S.records; record++) longest = Math.max(longest, granuleOf(record))
  // At no time until a new window has passed are more units admitted than the limit.
  for (let gap = 0; gap <= window; gap++) {
    let q = s
    for (let n = 0; n <= limit; n++) {
      q = ended(later(q, key, n === 0 ? gap : 0))
      if (q.wrong) return `after ${gap}: ${q.wrong}`
    }
  }
  // The first decision may be refused. But it has converted the cell, so a window later one is admitted.
  for (const gap of S.gaps)
    if (alone(later(ended(later(s, key, gap)), key, window)) !== 'admitted')
      return `not admitted a window after a decision, idle for ${gap}`
  const idle = S.idle ?? window + longest
  if (!dead && alone(later(s, key, idle)) !== 'admitted') return `not admitted after ${idle}`
}
/** The same state `gap` later, with one thread. */
const later = (s, key, gap) => {
  const q = { m: s.m.slice(), o: s.o, t: [threadOf([{ kind: 'check', key, cost: 1 }])] }
  q.m[CLOCK] += gap
  return q
}
/** The state after the only thread has ended, or has done something wrong. */
function ended(q) {
  for (let n = 0; n < 3000 && !q.t[0].result && !q.wrong; n++) [q] = step(q, 0)
  return q.t[0].result || q.wrong ? q : { ...q, wrong: 'hang' }
}
