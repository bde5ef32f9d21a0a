// The protocol of `src/algorithms/log/sliding-log.ts`, scaled down so that every interleaving of a few threads on one cell
// can be explored (`meter-explorer.mjs`). The judge is `log-judge.mjs`.
//
// What it shares with the sliding window (commits, sums, claims) is in `protocol.mjs`, too. A way's next key comes
// only when all has expired. Penalties, blocks and conversions are not here. The model is sequentially consistent.
import { admit, disowns, forget, newGhost, owns, take, wrongAtRest } from './log-judge.mjs'
import {
  ADM,
  AS_OF,
  adm,
  ageOf,
  bad,
  CLAIMED,
  CLOCK,
  cas,
  charged,
  cleared,
  counts,
  dateOf,
  ENTRIES,
  epochOf,
  HINT,
  holds,
  isIn,
  LIVE,
  load,
  NAME,
  noteOf,
  REFUNDS,
  renewed,
  S,
  setUp,
  stateOf,
  store,
  TICK,
  tickOf,
  totalOf,
} from './log-words.mjs'
import { exploreThreads } from './meter-explorer.mjs'

const at = (i) => ENTRIES + i
const others = (op, x) => ({ ...x, op })
/** What the end of these phases returns. */
const ENDS = { given: 'given back', refunded: 'refunded' }
const onTo = (next, op, x) => (next in ENDS ? ['done', ENDS[next]] : [next, others(op, x)])
const after = { check: 'decide', refund: 'find', back: 'collect' }

/** The cell is the key's, by its admission word and then its name. */
function* isOf(v, key) {
  return stateOf(v) === LIVE && (yield load(NAME)) === key
}

const phases = {
  *begin(op) {
    const now = yield (m) => m[CLOCK]
    if ((yield load(NAME)) !== op.key)
      return op.kind === 'check' ? ['claim', others(op, { now })] : ['done', 'no key']
    return ['enter', others(op, { now, next: after[op.kind] })]
  },
  *enter({ op, now, next, ...x }) {
    const tick = yield load(TICK)
    const goal = tickOf(now)
    if (tick >= goal) return [next, others(op, { ...x, now })]
    const long = goal - tick > S.sweep && bad !== 'one hop'
    const hopped = long
      ? tick + S.sweep + S.wrap * Math.max(0, Math.floor((goal - tick - S.sweep - S.wrap / 2) / S.wrap))
      : goal
    if (!(yield cas(TICK, tick, hopped))) return ['enter', others(op, { ...x, now, next })]
    const passed = long || Math.floor(tick / S.sweep) !== Math.floor(hopped / S.sweep)
    return [
      passed && bad !== 'no sweep' ? 'sweep' : 'enter',
      others(op, { ...x, now, next, to: hopped, i: 0 }),
    ]
  },
  *sweep({ op, now, next, to, i, ...x }) {
    if (i === S.entries) return ['enter', others(op, { ...x, now, next })]
    const b = yield load(at(i))
    if (counts(b) && !isIn(b, to)) {
      const isLate = bad !== 'swept without a look at the tick' && (yield load(TICK)) - to >= S.ahead
      if (isLate) return ['enter', others(op, { ...x, now, next })]
      const word = cleared(b)
      yield (m, g) => {
        if (m[at(i)] !== b) return
        m[at(i)] = word
        disowns(g, i)
      }
    }
    return ['sweep', others(op, { ...x, now, next, to, i: i + 1 })]
  },
  *decide({ op: before, now, overflown }) {
    // After some tries the thread is let go: an endless loop of two threads adds nothing.
    const { tries = S.tries, key, cost, limit = S.limit } = before
    if (tries === 0) return ['done', 'let go']
    const op = { ...before, tries: tries - 1 }
    const v = yield load(ADM)
    if (!(yield* isOf(v, key))) return ['claim', others(op, { now })]
    const e = yield load(TICK)
    if (totalOf(v) + cost <= limit) return ['charge', others(op, { now, v, e, overflown })]
    if (holds(yield load(AS_OF), v, e)) return ['done', 'refused']
    return ['sum', others(op, { now, v, e, overflown })]
  },
  *sum({ op, now, v, e, overflown }) {
    let sum = 0
    let oldest = bad === 'a note beyond a window' ? -S.W : 0
    for (let i = 0; i < S.entries; i++) {
      const b = yield load(at(i))
      if (!isIn(b, e)) continue
      sum++
      oldest = Math.max(oldest, ageOf(b, e))
    }
    const next = renewed(v, sum)
    if (yield cas(ADM, v, next)) yield store(AS_OF, noteOf(next, e + S.W - oldest))
    return ['decide', others(op, { now, overflown })]
  },
  *charge({ op, now, v, e, overflown }) {
    const date = dateOf(e, now)
    const refunds = bad === 'refunds read after the charge' || !S.hasRefunds ? undefined : yield load(REFUNDS)
    const places = []
    const from = S.hint ? yield load(HINT) : 0
    for (let looked = 0; looked < S.entries && places.length < op.cost; looked++) {
      const i = (from + looked) % S.entries
      for (;;) {
        const b = yield load(at(i))
        if (isIn(b, e)) break
        if (
          bad !== 'charged without a look at the tick' &&
          (yield load(TICK)) - e >= S.ahead + (bad === 'a look at the tick that forgets the date' ? 1 : 0)
        )
          return ['undo', others(op, { now, places, overflown })]
        const next = charged(b, date)
        const put = (m, g) => {
          if (m[at(i)] !== b) return false
          m[at(i)] = next
          owns(g, i, op)
          return true
        }
        if (!(yield put)) continue
        places.push([i, next])
        break
      }
    }
    if (places.length > 0 && S.hint) yield store(HINT, (places.at(-1)[0] + 1) % S.entries)
    const receipt = S.hasRefunds ? (refunds ?? (yield load(REFUNDS))) : 0
    if (places.length === op.cost) return ['commit', others(op, { now, v, e, places, receipt, date })]
    return ['undo', others(op, { now, places, overflown: overflown ? 'again' : 'once' })]
  },
  *commit({ op, now, v, e, places, receipt, date }) {
    const effect = Math.max(now, e * S.sub)
    const done = op.lend
      ? ['begin back', others(op, { from: places[0][0], receipt, date })]
      : ['done', 'admitted']
    const tryOn = (x, next) => (m, g, s) => {
      if (m[ADM] !== x) return m[ADM]
      m[ADM] = next
      admit(g, s, op, op.key, effect, places)
      return x
    }
    if (bad === 'not committed by the word') {
      yield (_m, g, s) => admit(g, s, op, op.key, effect, places)
      return done
    }
    let x = yield tryOn(v, v + op.cost)
    if (x === v) return done
    const { limit = S.limit } = op
    while ((yield* isOf(x, op.key)) && (yield load(TICK)) === e && totalOf(x) + op.cost <= limit) {
      const next = bad === 'committed again in its epoch' ? x + op.cost : renewed(x, totalOf(x) + op.cost)
      const found = yield tryOn(x, next)
      if (found === x) return done
      x = found
    }
    return ['undo', others(op, { now, places })]
  },
  *undo({ op, now, places, overflown, taken = 0 }) {
    if (places.length === 0) {
      if (taken > 0 && bad !== 'no new epoch after a take-out')
        return ['renew', others(op, { now, overflown, next: 'undone' })]
      return ['undone', others(op, { now, overflown })]
    }
    const [[i, word], ...rest] = places
    const took = yield (m, g) => {
      if (m[at(i)] !== word) return false
      m[at(i)] = cleared(word)
      disowns(g, i)
      return true
    }
    return ['undo', others(op, { now, places: rest, overflown, taken: taken + took })]
  },
  *undone({ op, now, overflown }) {
    yield (_m, g) => forget(g, op)
    if (overflown === 'again') return ['done', 'refused']
    if (overflown !== 'once') return ['decide', others(op, { now })]
    const v = yield load(ADM)
    if (!(yield* isOf(v, op.key))) return ['decide', others(op, { now, overflown })]
    return ['sum', others(op, { now, v, e: yield load(TICK), overflown })]
  },
  /** A new epoch, and the end of the note. */
  *renew({ op, next, ...x }) {
    for (;;) {
      const v = yield load(ADM)
      if (stateOf(v) !== LIVE) return onTo(next, op, x)
      if (yield cas(ADM, v, renewed(v))) break
    }
    yield store(AS_OF, 0)
    return onTo(next, op, x)
  },

  *'begin back'({ op, from, receipt, date }) {
    const now = yield (m) => m[CLOCK]
    return ['enter', others(op, { now, next: 'collect', from, receipt, date })]
  },
  *collect({ op, from, receipt, date }) {
    const e = yield load(TICK)
    if (e - date >= S.W) return ['done', 'expired']
    if (bad === 'refunds compared before the entries' && (yield load(REFUNDS)) !== receipt)
      return ['done', 'kept']
    const words = []
    for (let looked = 0; looked < S.entries && words.length < op.cost; looked++) {
      const i = (from + looked) % S.entries
      const b = yield load(at(i))
      if (isIn(b, e) && ageOf(b, e) === e - date) words.push([i, b])
    }
    const skips = bad === 'given back after a refund by key' || bad === 'refunds compared before the entries'
    if (!skips && (yield load(REFUNDS)) !== receipt) return ['done', 'kept']
    return words.length < op.cost ? ['done', 'kept'] : ['take', others(op, { words, date, next: 'given' })]
  },
  /** Takes exactly these words out. */
  *take({ op, words, date, next, taken = 0, ...x }) {
    if (words.length === 0) {
      if (taken > 0) return ['renew', others(op, { ...x, next })]
      return onTo(next, op, x)
    }
    const [[i, word, own], ...rest] = words
    const took = yield (m, g, s) => {
      if (m[at(i)] !== word) return false
      m[at(i)] = cleared(word)
      take(g, s, i, op.key, own ?? date, next === 'given' ? op.id : undefined)
      return true
    }
    return ['take', others(op, { ...x, words: rest, date, next, taken: taken + took })]
  },
  *find({ op, now }) {
    const v = yield load(ADM)
    if (!(yield* isOf(v, op.key))) return ['done', 'no key']
    const e = yield load(TICK)
    if (bad === 'refunds counted before the entries') yield (m) => void m[REFUNDS]++
    const found = []
    for (let i = 0; i < S.entries; i++) {
      const b = yield load(at(i))
      if (isIn(b, e)) found.push([i, b, e - ageOf(b, e)])
    }
    found.sort((a, b) => a[2] - b[2])
    const words = found.slice(0, op.cost)
    if (words.length === 0) return ['done', 'nothing']
    if (bad !== 'refund without another look at the name') {
      if (!(yield* isOf(yield load(ADM), op.key))) return ['done', 'no key']
    }
    if (bad !== 'refunds counted before the entries') yield (m) => void m[REFUNDS]++
    return ['take', others(op, { now, words, next: 'refunded' })]
  },
  *claim({ op, now }) {
    const v = yield load(ADM)
    if (stateOf(v) === CLAIMED) return ['done', 'no room']
    if ((yield load(NAME)) === op.key) return ['enter', others(op, { now, next: 'decide' })]
    const tick = yield load(TICK)
    if (tickOf(now) - tick <= S.W + 1) return ['done', 'no room']
    if (!(yield cas(ADM, v, adm(epochOf(v) + 1, CLAIMED, 0)))) return ['claim', others(op, { now })]
    yield store(NAME, op.key)
    const fresh = yield (m) => m[CLOCK]
    return ['enter', others(op, { now: fresh, next: 'live', early: now })]
  },
  *live({ op, early }) {
    yield (m) => {
      m[ADM] = adm(epochOf(m[ADM]), LIVE, 0)
    }
    return ['enter', others(op, { now: early, next: 'decide' })]
  },
}

/** The state that a scenario begins with: a live cell of key 1. */
const firstWords = () => {
  const words = [0, 1, adm(0, LIVE, 0), 0, 0, 0, 0, ...Array(S.entries).fill(0)]
  words[CLOCK] = S.start * S.sub
  words[TICK] = S.start
  return words
}

const BASE = {
  limit: 2,
  W: 2,
  wrap: 16,
  ahead: 2,
  sweep: 4,
  versions: 4,
  epochs: 16,
  tries: 3,
  sub: 1,
  start: 4,
  end: 6,
  jumps: [1],
}

/** Explores a scenario, with a mistake or without. @returns what `exploreThreads` does */
export function explore(scenario, mistake, most = Number.POSITIVE_INFINITY) {
  const all = { ...BASE, ...scenario }
  const hasRefunds = all.threads.flat().some(({ kind, lend }) => kind === 'refund' || lend)
  setUp({ entries: all.limit, hasRefunds, ...all }, mistake?.replace('sliding log: ', ''))
  let id = 0
  const threads = S.threads.map((ops) =>
    ops.map((op) => ({ cost: 1, key: 1, kind: 'check', ...op, id: ++id })),
  )
  const atRest = (s) => wrongAtRest(s, phases)
  return exploreThreads({
    ...S,
    end: S.end * S.sub,
    threads,
    words: firstWords(),
    ghost: newGhost(),
    phases,
    atRest,
    most,
  })
}
