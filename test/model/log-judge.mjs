// The ghost of the model of `log.mjs`: what was admitted, and whose charge each entry is.
//
// g[i] is the operation whose charge entry i is, below 0 once it is admitted; 0: nobody's. Then come the admitted units,
// key and time, and for each pending unit that a refund by key has taken the number of its operation, below 0.

import { ADM, ageOf, CLOCK, counts, ENTRIES, LIVE, NAME, S, stateOf, TICK } from './log-words.mjs'
import { alone } from './meter-explorer.mjs'

const KEY = 100_000
const keyOf = (unit) => Math.floor(unit / KEY)
const timeOf = (unit) => unit % KEY
const dateOf = (unit) => Math.ceil(timeOf(unit) / S.sub)
const unitsOf = (g) => g.slice(S.entries).filter((x) => x > 0)

export const newGhost = () => Array(S.entries).fill(0)

/** An entry has been charged by an operation. */
export const owns = (g, i, op) => {
  g[i] = op.id
}
/** An entry has been taken out by its own operation. */
export const disowns = (g, i) => {
  g[i] = 0
}

/** An operation is admitted at a time, with these entries. */
export function admit(g, s, op, key, at, places) {
  let units = places.length
  for (let i = 0; i < S.entries; i++) if (g[i] === op.id) g[i] = -op.id
  for (let i = g.indexOf(-op.id, S.entries); i >= 0; i = g.indexOf(-op.id, S.entries)) {
    g.splice(i, 1)
    units--
  }
  for (let n = 0; n < units; n++) g.push(key * KEY + at)
  sort(g)
  const times = unitsOf(g)
    .filter((unit) => keyOf(unit) === key)
    .map(timeOf)
  for (const from of times) {
    const sum = times.filter((time) => time >= from && time < from + S.W * S.sub).length
    if (sum > (op.limit ?? S.limit)) s.wrong = `over: ${sum} from ${from}`
  }
}

/** An operation ends without an admission. */
export function forget(g, op) {
  for (let i = g.indexOf(-op.id, S.entries); i >= 0; i = g.indexOf(-op.id, S.entries)) g.splice(i, 1)
}

/** A refund by key, or the operation `giver` that is given back, has taken the unit of an entry. */
export function take(g, s, i, key, date, giver) {
  const owner = g[i]
  g[i] = 0
  if (giver !== undefined && owner !== -giver) {
    // Units of one date are alike, as long as the giver's own still counts.
    const own = g.findIndex((label, n) => n < S.entries && label === -giver)
    if (own < 0) s.wrong = 'given back what a refund by key had taken'
    else g[own] = owner
    if (owner > 0) return drop(g, s, key, date)
  }
  if (owner > 0) {
    g.push(-owner)
    sort(g)
    return
  }
  drop(g, s, key, date)
}

/** One admitted unit of the key is gone. */
function drop(g, s, key, date) {
  const at = g.findIndex(
    (unit, n) => n >= S.entries && unit > 0 && keyOf(unit) === key && dateOf(unit) === date,
  )
  if (at >= 0) g.splice(at, 1)
  else s.wrong = `took a unit of key ${key} that nobody was admitted for, dated ${date}`
}

function sort(g) {
  const rest = g.splice(S.entries).sort((a, b) => a - b)
  g.push(...rest)
}

/** When all threads are done: what a decision alone comes to now, and later. */
export function wrongAtRest(s, phases) {
  const { m, g } = s
  if (stateOf(m[ADM]) !== LIVE) return s.t.some((t) => t.phase === 'dead') ? undefined : 'stays claimed'
  const key = m[NAME]
  // A thread that dies leaves its charge; or, after it has taken that out, a sum that counted it.
  const lost = s.t.some((t) => t.phase === 'dead')
    ? Math.max(...S.threads.flat().map(({ cost = 1 }) => cost))
    : 0
  const now = m[CLOCK]
  const dates = unitsOf(g)
    .filter((unit) => keyOf(unit) === key)
    .map(dateOf)
  for (const date of new Set(dates)) {
    const inGhost = dates.filter((other) => other === date).length
    const inCell = m
      .slice(ENTRIES)
      .filter((b, i) => counts(b) && g[i] < 0 && m[TICK] - ageOf(b, m[TICK]) === date).length
    if (date > m[TICK] - S.W && inCell < inGhost)
      return `${inGhost} units of ${date} admitted, ${inCell} counted`
  }
  for (let gap = 0; gap <= (S.W + 1) * S.sub; gap++) {
    const result = alone(s, { kind: 'check', key, cost: 1, id: 99 }, gap, phases)
    const tick = Math.floor((now + gap) / S.sub)
    const used = dates.filter((date) => tick < date + S.W).length
    if (result === 'admitted' && used >= S.limit) return `admitted at rest, ${gap} later, with ${used}`
    if (result === 'refused' && used + lost < S.limit) return `refused at rest, ${gap} later, with ${used}`
    if (result !== 'admitted' && result !== 'refused') return `${result} at rest`
    if (gap > S.W * S.sub && result === 'refused') return 'locked out'
  }
}
