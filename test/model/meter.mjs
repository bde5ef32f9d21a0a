// The protocol of `src/algorithms/word/word-cells.ts`, with the token bucket and the fixed window, scaled down so that
// every interleaving of a few threads on one cell can be explored (`meter-explorer.mjs`). The judge is
// `meter-judge.mjs`.
//
// A token bucket has B units; its TAT is kept modulo M = 8 B, and penalties go up to D = 3 B. By another limit, a decision
// may find up to `full` units, less than 2 B. A fixed window has `size` ticks. Ticks do not wrap, and all threads share one clock. The name is one word: `insertion.mjs` has the
// naming, the scan and the vetoes. Blocks are in `blocking.mjs`. The model is sequentially consistent.

import { alone, exploreThreads } from './meter-explorer.mjs'
import { admitted, ghostsOf, judge, newGhost, refundsOf, wrongAtRest } from './meter-judge.mjs'
import {
  ADM,
  AS_OF,
  adm,
  bad,
  CLAIMED,
  CLOCK,
  cas,
  clock,
  epochOf,
  isSettled,
  isUncounted,
  LIVE,
  load,
  marked,
  meterOf,
  mod,
  NAME,
  NAMED,
  S,
  settled,
  setUp,
  start,
  stateOf,
  store,
  TICK,
  tickIn,
  tickOf,
  withMeter,
} from './meter-words.mjs'

// What an algorithm does with the meter. `at` is the time of a decision; TATs are in the clock's units.

/** The latest TAT while `tick` is the cell's. */
const latest = (tick) => start(tick + 1) - 1 + S.D
const tatOf = (v, tick) => latest(tick) - mod(latest(tick) - meterOf(v), S.M)
/** `v` with its TAT moved; past a multiple of M it gets a new epoch. */
function moved(v, from, to, epochs = 0) {
  const laps = bad === 'no carry' ? 0 : Math.floor(to / S.M) - Math.floor(from / S.M)
  return withMeter(v, to, laps + epochs)
}
const refundEpochs = () => (bad === 'refund in the same epoch' ? 0 : 1)

const bucket = {
  emptyAt: start,
  isOver: (behind) => {
    if (bad === 'a long way in one hop') return false
    return behind * S.G >= S.G - 1 + S.D - (bad === 'emptied a burst early' ? S.B : 0)
  },
  ticksToEmpty: (v, tick) => Math.max(0, Math.ceil((tatOf(v, tick) - start(tick)) / S.G)),
  charged(v, tick, cost, at, full = S.B) {
    const tat = tatOf(v, tick)
    const next = Math.max(tat, at) + cost
    return next - at > (bad === 'full as by the rule' ? S.B : full) ? v : moved(v, tat, next)
  },
  penalized(v, tick, cost, at) {
    const tat = tatOf(v, tick)
    const most = bad === 'a penalty beyond D' ? Number.POSITIVE_INFINITY : at + S.D
    const next = Math.min(Math.max(tat, at) + cost, most)
    return next > tat ? moved(v, tat, next) : v
  },
  refunded(v, tick, most, at) {
    const tat = tatOf(v, tick)
    const units = Math.min(most, tat - at)
    return units > 0 && { units, tat, next: moved(v, tat, tat - units, refundEpochs()) }
  },
  *givenBack({ v, tick, charge, cost, hasEpoch, hasByKey, early }) {
    if (start(tick) - start(charge.tick) >= S.G - 1 + S.D) return undefined
    const fresh = bad === 'given back by an old clock' ? early : yield clock
    const at = Math.max(fresh, start(tick))
    const tat = tatOf(v, tick)
    const left = tatOf(charge.receipt, tick)
    const laps = Math.floor(tat / S.M) - Math.floor(left / S.M)
    const isAlone = hasEpoch && epochOf(v) === mod(epochOf(charge.receipt) + laps, S.epochs)
    if (!isAlone && hasByKey) return undefined
    const isAsLeft = isAlone || bad === 'given back by the TAT it left'
    const until = isAsLeft ? left : Math.max(charge.now, start(charge.tick)) + cost
    const units = bad === 'given back although drained' ? cost : Math.min(cost, until - at, tat - at)
    return units > 0 ? { units, tat, next: moved(v, tat, tat - units, refundEpochs()) } : undefined
  },
}

const fixedWindow = {
  emptyAt: () => 0,
  isOver: (behind) => behind >= S.size - (bad === 'emptied a tick early' ? 1 : 0),
  ticksToEmpty: (v) => (meterOf(v) === 0 ? 0 : S.size),
  charged: (v, _tick, cost) => (meterOf(v) + cost > S.limit ? v : withMeter(v, meterOf(v) + cost)),
  penalized(v, _tick, cost) {
    const next = meterOf(v) + cost
    return withMeter(v, bad === 'a penalty beyond the meter' ? next : Math.min(next, S.M - 1))
  },
  refunded(v, tick, most, at) {
    const units = tickOf(at) - tick >= S.size ? 0 : Math.min(most, meterOf(v))
    return units > 0 && { units, next: withMeter(v, meterOf(v) - units, refundEpochs()) }
  },
  // biome-ignore lint/correctness/useYield: the token bucket reads the clock here
  *givenBack({ v, tick, charge, cost, hasEpoch, hasByKey }) {
    const isSameEpoch = hasEpoch && epochOf(v) === epochOf(charge.receipt)
    const isIn = isSameEpoch || !hasByKey || bad === 'given back in another epoch'
    // Another thread may have moved the window of this charge since its tick was read, by less than its size.
    const behind = tick - charge.tick
    const isItsWindow = bad === 'given back by its tick' ? behind === 0 : behind >= 0 && behind < S.size
    const counts = isItsWindow && isIn && meterOf(v) >= cost
    return counts ? { units: cost, next: withMeter(v, meterOf(v) - cost) } : undefined
  },
}
const meter = () => (S.size ? fixedWindow : bucket)

// The protocol. A word of TICK is `w` and its tick is tickIn(w).

/** `v`, empty at the start of a tick. */
const emptied = (v, tick) => withMeter(v, meter().emptyAt(tick), bad === 'emptied in the same epoch' ? 0 : 1)

function* settle(v, w) {
  const empties = cas(ADM, v, emptied(v, tickIn(w)))
  if (bad === 'settled before emptied') {
    if (yield cas(TICK, w, w | 1)) yield empties
  } else if (bad === 'settled unemptied' || (yield empties) || bad === 'settled by a loser')
    yield cas(TICK, w, w | 1)
}
/** Has the window of an empty meter begin with the reading. What was charged since `v` was read moves with it. */
const moveWindow = (w, to) => (m, _g, s) => {
  if (m[TICK] !== w) return false
  m[TICK] = settled(to)
  judge().moved(s, { from: tickIn(w), to })
  return true
}
/** The window that a commit enters: while the meter was empty, it may have moved on. */
const tickAtCommit = (m, tick) => (S.size && isSettled(m[TICK]) ? tickIn(m[TICK]) : tick)

/** Brings the tick up to the reading's. True: `v` and `w` may be used; false: start again. */
function* isEntered(v, w, now) {
  if (!isSettled(w)) {
    yield* settle(v, w)
    return false
  }
  const tick = tickIn(w)
  const to = tickOf(now)
  if (tick >= to) return true
  if (meter().isOver(to - tick)) {
    if (bad === 'emptied before the tick') {
      if (yield cas(ADM, v, emptied(v, to))) yield cas(TICK, w, settled(to))
    } else if (bad === 'tick moved unmarked') {
      if (yield cas(TICK, w, settled(to))) yield cas(ADM, v, emptied(v, to))
    } else yield cas(TICK, w, marked(to))
    return false
  }
  if (S.size) {
    if (meterOf(v) !== 0 || bad === 'an empty window stays') return true
    if (bad === 'an empty window moved by a mark') yield cas(TICK, w, marked(to))
    else yield moveWindow(w, to)
    return false
  }
  const isBehind = tatOf(v, tick) < start(tick) && bad !== 'a TAT left behind'
  if (isBehind && !(yield cas(ADM, v, emptied(v, tick)))) return false
  yield cas(TICK, w, settled(to))
  return false
}

/** AS_OF: the refunds in the two periods up to the cell's tick, and whether one of them was by key. */
function refundsIn(word, w) {
  const since = periodOf(w) - Math.floor(word / 400)
  const [keyBefore, keyNow] = [Math.floor(word / 200) & 1, Math.floor(word / 100) & 1]
  const [before, now] = [Math.floor(word / 10) % 10, word % 10]
  if (since === 0) return { before, now, keyBefore, keyNow }
  return { before: since === 1 ? now : 0, now: 0, keyBefore: since === 1 ? keyNow : 0, keyNow: 0 }
}
const periodOf = (w) => Math.floor(tickIn(w) / (S.size ?? Math.ceil((S.G - 1 + S.D) / S.G)))
function* countRefund(w, isByKey) {
  if (bad === 'refunds not counted') return
  for (;;) {
    const found = yield load(AS_OF)
    const present = bad === 'counted in an old period' ? w : yield load(TICK) // after AS_OF: no older than that
    const { before, now, keyBefore, keyNow } = refundsIn(found, present)
    const byKey = 2 * keyBefore + (keyNow | isByKey)
    const next = 400 * periodOf(present) + 100 * byKey + 10 * before + Math.min(now + 1, 9)
    if (yield cas(AS_OF, found, next)) return
  }
}

const FIRST = {
  check: 'lookup',
  lend: 'lookup',
  hop: 'hop',
  refund: 'refund',
  penalize: 'penalize',
  block: 'block',
}
const again = (phase, { now, tries }) => [phase, { now, tries }]

export const phases = {
  /** Waits for the time `after`; then the clock goes on to `from`. */
  *begin({ kind, from = 0, after = 0 }) {
    const now = yield (m) => (m[CLOCK] < after ? -1 : (m[CLOCK] = Math.max(m[CLOCK], from)))
    return now < 0 ? ['begin', {}] : [FIRST[kind], { now, tries: 0 }]
  },
  /** Enters the cell and goes no further, as a thread that dies there. */
  *hop({ now, tries }) {
    const v = yield load(ADM)
    const w = yield load(TICK)
    return (yield* isEntered(v, w, now)) ? ['done', 'entered'] : again('hop', { now, tries })
  },
  *lookup({ key, now, tries }) {
    if ((yield load(NAME)) === key) return again('decide', { now, tries })
    return tries < S.tries ? ['claim', { now, tries: tries + 1 }] : ['done', 'no room']
  },
  *decide({ kind, key, cost, full, now, tries }) {
    const early = bad === 'tick before adm' ? yield load(TICK) : undefined
    const named = bad === 'name before adm' ? yield load(NAME) : undefined
    const v = yield load(ADM)
    if (stateOf(v) !== LIVE)
      return tries < S.tries ? ['claim', { now, tries: tries + 1 }] : ['done', 'no room']
    if ((named ?? (yield load(NAME))) !== key) return again('lookup', { now, tries })
    const w = early ?? (yield load(TICK))
    if (!(yield* isEntered(v, w, now))) return again('decide', { now, tries })
    const tick = tickIn(w)
    const at = Math.max(now, start(tick))
    const next = meter().charged(v, tick, cost, at, full)
    if (next === v) {
      const hasChanged = (m, _g, s) => {
        if (m[ADM] !== v && bad !== 'refused on one look') return true
        if (judge().hasRoom(s, { key, cost, at, full }) && !S.evicts) s.wrong = `refused with room at ${at}`
        return false
      }
      return (yield hasChanged) ? again('decide', { now, tries }) : ['done', 'refused']
    }
    const commit = (m, g, s) => {
      if (m[ADM] !== v) return -1
      m[ADM] = next
      const newest = tickAtCommit(m, tick)
      admitted(s, { key, cost, at: Math.max(at, start(newest)), tick: newest, reading: now })
      return refundsOf(g, key)
    }
    const refunds = yield commit
    if (refunds < 0) return again('decide', { now, tries })
    if (kind !== 'lend') return ['done', 'admitted']
    return ['keep', { charge: { tick, receipt: next, now }, at, refunds }]
  },
  /** The clock goes on to `sets`, and the decision is kept until `until`. */
  *keep({ sets = 0, until = 0, charge, at, refunds }) {
    return [
      (yield (m) => (m[CLOCK] = Math.max(m[CLOCK], sets))) < until ? 'keep' : 'giveBack',
      { charge, at, refunds },
    ]
  },
  *giveBack({ key, cost, charge, at, refunds }) {
    const early = bad === 'given back by an old clock' ? yield clock : undefined
    const v = yield load(ADM)
    if (stateOf(v) !== LIVE) return ['done', 'gone']
    const noted = yield load(AS_OF)
    const w = yield load(TICK) // after AS_OF
    if (!isSettled(w)) return ['done', 'over']
    const recent = refundsIn(noted, w)
    const hasEpoch = recent.before + recent.now < S.epochs - 1 || bad === 'refunds not counted'
    const hasByKey = recent.keyBefore + recent.keyNow > 0 && bad !== 'given back after a refund by key'
    const given = yield* meter().givenBack({ v, tick: tickIn(w), charge, cost, hasEpoch, hasByKey, early })
    if (given === undefined) {
      if (!hasByKey) yield (_m, _g, s) => judge().keeps(s, { key, charge })
      return ['done', 'over']
    }
    yield* countRefund(w, 0)
    const commit = (m, _g, s) => {
      if (m[ADM] !== v) return false
      m[ADM] = given.next
      judge().givenBack(s, {
        key,
        at,
        tick: tickAtCommit(m, tickIn(w)),
        tat: given.tat,
        units: given.units,
        refunds,
      })
      return true
    }
    return (yield commit) ? ['done', 'given back'] : ['giveBack', { charge, at, refunds }]
  },
  *refund({ key, cost, now, tries }) {
    const v = yield load(ADM)
    if (stateOf(v) !== LIVE || (yield load(NAME)) !== key) return ['done', 'gone']
    const w = yield load(TICK)
    if (!isSettled(w)) return ['done', 'over']
    const tick = tickIn(w)
    const taken = meter().refunded(v, tick, cost, Math.max(now, start(tick)))
    if (!taken) return ['done', 'over']
    yield* countRefund(w, 1)
    const commit = (m, _g, s) => {
      if (m[ADM] !== v) return false
      m[ADM] = taken.next
      judge().refunded(s, { key, tick: tickAtCommit(m, tick), tat: taken.tat, units: taken.units })
      return true
    }
    return (yield commit) ? ['done', 'refunded'] : again('refund', { now, tries })
  },
  /** A block begins or ends: the word gets another epoch. `blocking.mjs` has the rest. */
  *block({ key }) {
    const v = yield load(ADM)
    if (stateOf(v) !== LIVE || (yield load(NAME)) !== key) return ['done', 'gone']
    return (yield cas(ADM, v, withMeter(v, meterOf(v), 1))) ? ['done', 'blocked'] : ['block', {}]
  },
  *penalize({ key, cost, now, tries }) {
    const v = yield load(ADM)
    if (stateOf(v) !== LIVE || (yield load(NAME)) !== key) return ['done', 'gone']
    const w = yield load(TICK)
    if (!(yield* isEntered(v, w, now))) return again('penalize', { now, tries })
    const tick = tickIn(w)
    const at = Math.max(now, start(tick))
    const next = meter().penalized(v, tick, cost, at)
    const commit = (m, _g, s) => {
      if (m[ADM] !== v) return false
      m[ADM] = next
      const newest = tickAtCommit(m, tick)
      judge().penalized(s, { key, cost, at, tick: newest, reading: now })
      return true
    }
    return next === v || (yield commit) ? ['done', 'penalized'] : again('penalize', { now, tries })
  },
  // A key takes the way. With `elsewhere`, key 1 finds another way, which knows nothing of it: the cell becomes
  // that one.
  *claim({ key, now, tries }) {
    const v = yield load(ADM)
    if (stateOf(v) === CLAIMED) return ['done', 'no room']
    const wasLive = stateOf(v) === LIVE
    if (wasLive && (yield load(ADM)) !== v) return again('lookup', { now, tries })
    if (wasLive && (yield load(NAME)) === key) return again('lookup', { now, tries })
    const w = yield load(TICK)
    const fresh = yield clock
    const tick = tickIn(w)
    const behind = tickOf(fresh) - tick
    const isOver = (word) => behind - S.margin >= meter().ticksToEmpty(word, tick)
    const isExpired = isSettled(w) ? isOver(yield load(ADM)) : behind > S.margin
    const isEmpty = behind > 0 && (!isSettled(w) || meter().ticksToEmpty(v, tick) === 0)
    const isElsewhere = S.elsewhere && key === 1
    const mayTake = isExpired || isEmpty || isElsewhere || S.evicts || bad === 'taken unexpired'
    if (wasLive && !mayTake) return ['done', 'no room']
    const inherits = !isExpired && !isElsewhere && (wasLive || !isUncounted(v)) && bad !== 'taken unexpired'
    const marks = !inherits && S.elsewhere !== 'counted'
    const epoch = epochOf(v) + (bad === 'claimed in the same epoch' ? 0 : 1)
    const mine = adm(epoch, CLAIMED, marks || isElsewhere ? 0 : meterOf(v), marks)
    const take = (m) => {
      if (m[ADM] !== v) return false
      m[ADM] = mine
      if (isElsewhere) m[TICK] = settled(0)
      return true
    }
    if (!(yield take)) return again('lookup', { now, tries })
    yield store(NAME, key)
    const named = adm(epoch, NAMED, meterOf(mine), marks)
    yield store(ADM, named)
    return ['promote', { now, tries, named, fresh: bad === 'not settled' ? now : yield clock }]
  },
  *promote({ now, tries, named, fresh }) {
    const w = yield load(TICK)
    if (bad !== 'promoted by a stranger' && (yield load(ADM)) !== named)
      return again('lookup', { now, tries })
    const to = tickOf(fresh)
    const goLive = (meterNow) => cas(ADM, named, adm(epochOf(named), LIVE, meterNow))
    const isToSettle = !isSettled(w) && bad === 'promoted unemptied'
    if ((isUncounted(named) && bad !== 'UNCOUNTED ignored') || isToSettle) {
      if (w !== settled(to) && !(yield cas(TICK, w, settled(to))))
        return ['promote', { now, tries, named, fresh }]
      yield goLive(meter().emptyAt(to))
      return again('lookup', { now, tries })
    }
    if (yield* isEntered(named, w, fresh)) {
      yield goLive(meterOf(named))
      return again('lookup', { now, tries })
    }
    const v = yield load(ADM)
    if (v !== named && v !== emptied(named, tickIn(yield load(TICK)))) return again('lookup', { now, tries })
    return ['promote', { now, tries, named: v, fresh }]
  },
}

const USUAL = { G: 1, B: 2, epochs: 64, tries: 2, margin: 1, evicts: false, elsewhere: false }

/** Explores a scenario, with one rule left out if `mistake` names it: 'token bucket: ...' or 'fixed window: ...'. */
export function explore(scenario, mistake, most = 6e7) {
  const s = { ...USUAL, ...scenario }
  s.D ??= 3 * s.B
  s.fullest = Math.max(s.B, ...s.threads.flat().map(({ full = 0 }) => full))
  s.M ??= s.size ? 8 : 8 * s.B
  setUp(s, mistake?.slice(mistake.indexOf(': ') + 2))
  const rested = new Map()
  const atRest = (state) => {
    const at = [...state.m, ...ghostsOf(state.g), state.t.some((t) => t.phase === 'dead')].join()
    if (!rested.has(at))
      rested.set(
        at,
        wrongAtRest(state, (q, op, gap) => alone(q, op, gap, phases)),
      )
    return rested.get(at)
  }
  const words = [s.from ?? 0, 1, adm(0, LIVE, 0), settled(0), 0]
  return exploreThreads({ ...s, words, ghost: newGhost(), phases, atRest, most })
}
