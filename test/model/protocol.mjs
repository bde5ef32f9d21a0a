// The protocol of `src/algorithms/sliding-window.ts` and `src/memory/insertion.ts`, scaled down, so that every interleaving
// of a few threads can be explored, one shared-memory operation at a time (`explorer.mjs`).
//
// An operation runs in phases. A phase is a generator that yields one shared-memory operation at a time and ends by
// naming the next phase and what is carried over; so a thread's state is its phase, what it carries and what it has read
// so far. Running the phase again on those results gives the next operation: threads are neither real nor copied.
//
// A window is one granule (n = 1), a ring n + 1 buckets, counts have 4 bits, laps and epochs few values. With sums kept above
// the buckets (`sums`: 'blocks' or 'fenwick', `range-sum.mjs`) it is three granules, on a longer ring. Not modelled: memory
// weaker than sequential consistency.
//
// `words.mjs` has the words and the operations on them, `insertion.mjs` the phases in which a key takes a way.
import { insertion } from './insertion.mjs'
import { cleanBlock, lapIn, pathOf, sumOfNodes, sweepBlock } from './range-sum.mjs'
import {
  ADM,
  ASOF,
  add,
  adm,
  at,
  BUCKETS,
  broken,
  bucket,
  cas,
  clock,
  count,
  done,
  epoch,
  firstSwept,
  GENERATION,
  GIVING,
  HI,
  hop,
  LIVE,
  LO,
  lap,
  lapOf,
  lastSwept,
  load,
  MAX,
  N,
  NEVER,
  ONE_TURN,
  RING,
  refunds,
  S,
  SUNK,
  slot,
  stampOf,
  state,
  store,
  TICK,
  tickOf,
  to,
  total,
  UNTIL,
} from './words.mjs'

export const sumOf = function* (w, e, now) {
  if (S.sums) return Math.min(yield* sumOfNodes(w, e), MAX - 1)
  // the buckets e-n..e that bear their own lap; smooth weights the oldest
  let s = 0
  for (let u = e; u >= e - N && u >= 0; u--) {
    const b = yield load(w, slot(u))
    if (lap(b) !== lapOf(u)) continue
    s += S.smooth && u === e - N ? Math.ceil((count(b) * (S.sub - subOf(e, now))) / S.sub) : count(b)
  }
  return Math.min(s, MAX - 1)
}
const subOf = (e, now) => (tickOf(now) === e ? now % S.sub : 0)
const stamp = (v, e, now) => epoch(v) * 1000 + (S.smooth ? e * S.sub + subOf(e, now) : e)

const isKeyOf = function* (w, v, key) {
  return state(v) === LIVE && (yield load(w, LO)) === key && (yield load(w, HI)) === key
}
const still = function* (w, key) {
  // is the way, which was the key's, still the key's?
  return yield* isKeyOf(w, yield load(w, ADM), key)
}
/** What changes a key otherwise than by deciding. */
const changes = new Set(['refund', 'block', 'end block'])

/** A charge that is not admitted goes, unless a refund may have taken it already. */
const undone = ({ w, now, e, r, tries }) =>
  r === SUNK ? to('decide', { w, now, tries }) : to(r === 0 ? 'remove' : 'announce', { w, now, e, r, tries })

export const phases = {
  *lookup({ key, kind, from = 0, tries = 0, early }) {
    // the clock first, once for all of a decision
    early ??= yield clock
    for (let w = from; w < S.ways; w++)
      if ((yield load(w, LO)) === key && (yield load(w, HI)) === key)
        return to(changes.has(kind) || S.sums ? 'enter' : 'attempt', { w, tries, early })
    if (kind === 'refund' || kind === 'end block') return done('nothing to do')
    return tries < S.tries ? to('choose', { tries: tries + 1, early }) : done('no room')
  },
  // The usual case, tried once: charges, and only then looks whose way this is and whether its tick has stayed.
  *attempt({ key, cost, w, tries, early }) {
    const e = tickOf(early)
    const stands =
      broken === 'attempt looks before adm' &&
      (yield load(w, LO)) === key &&
      (yield load(w, HI)) === key &&
      (yield load(w, TICK)) === e
    if (broken !== 'attempt before its tick' && (yield load(w, TICK)) !== e)
      return to('enter', { w, tries, early })
    const b = yield load(w, slot(e)),
      v = yield load(w, ADM),
      hasRoom = state(v) === LIVE && total(v) + cost <= S.limit
    return lap(b) === lapOf(e) && refunds(b) === 0 && hasRoom && (yield cas(w, slot(e), b, b + cost))
      ? to(stands ? 'commit' : 'look', { w, now: early, v, e, r: 0, tries })
      : to('enter', { w, tries, early })
  },
  *look({ key, w, now, v, e, r, tries }) {
    if (
      (broken !== 'attempt without names' && ((yield load(w, LO)) !== key || (yield load(w, HI)) !== key)) ||
      (broken !== 'attempt without tick' && (yield load(w, TICK)) !== e)
    )
      return undone({ w, now, e, r, tries })
    return to('commit', { w, now, v, e, r, tries })
  },
  *enter({ w, tries, early }) {
    // an old reading is as good as a new one: the cell's tick only moves on, and counts
    const t = yield load(w, TICK),
      now = early
    if (t >= tickOf(now)) return to('decide', { w, now, tries, early })
    const next = broken === 'one hop' ? tickOf(now) : hop(t, tickOf(now))
    return (yield cas(w, TICK, t, next)) && broken !== 'no sweep'
      ? to('sweep', { w, p: firstSwept(t, next), next, now, tries, early })
      : to('enter', { w, tries, early })
  },
  *sweep({ w, p, next, now, tries, early, mine }) {
    // one slot for every quarter of the laps: what is older than the window goes
    const onward =
      mine !== undefined
        ? to('settle', { w, mine, tries, early })
        : to(
            next < tickOf(now) ? 'enter' : 'decide',
            next < tickOf(now) ? { w, tries, early } : { w, now, tries, early },
          )
    if (p > lastSwept(next)) return onward
    if (S.sums) {
      yield* sweepBlock(w, p % (RING / 2), next)
      return to('sweep', { w, p: p + 1, next, now, tries, early, mine })
    }
    const i = p % RING
    const b = yield load(w, BUCKETS + i)
    if (count(b) > 0 && lap(b) !== lapIn(i, next)) {
      const tick = broken === 'sweep unchecked' ? next : yield load(w, TICK)
      if (lap(b) !== lapIn(i, tick)) yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
    }
    return to('sweep', { w, p: p + 1, next, now, tries, early, mine })
  },
  *decide({ key, cost, kind, w, now, tries, early = now }) {
    const v = yield load(w, ADM)
    if (state(v) !== LIVE) return to('lookup', { from: w + 1, tries, early })
    if (broken !== 'no names' && ((yield load(w, LO)) !== key || (yield load(w, HI)) !== key))
      return to('lookup', { tries, early })
    if (kind === 'refund') return to('refund', { w, left: cost, u: Math.max(0, (yield load(w, TICK)) - N) })
    if (kind === 'block') return to('block', { w, now, v, tries })
    if (kind === 'end block') return to('endBlock', { w })
    const e = broken === 'tick before adm' ? tickOf(now) : yield load(w, TICK)
    if (total(v) + cost > S.limit) return to('full', { w, now, v, e, tries })
    return broken === 'adm before bucket'
      ? to('commit', { w, now, v, e, tries })
      : to(S.sums && broken !== 'bucket before its nodes' ? 'chargeNode' : 'charge', {
          w,
          now,
          v,
          e,
          tries,
          i: S.sums && 0,
        })
  },
  *full({ w, now, v, e, tries }) {
    if (total(v) === MAX && (yield load(w, UNTIL)) > now) return done('blocked')
    if ((yield load(w, ASOF)) === stamp(broken === 'asOf without epoch' ? 0 : v, e, now))
      return done('refused')
    const s = yield* sumOf(w, e, now)
    // A Fenwick node of this lap holds counts that its own of the next one will not: who saw that one has seen the tick move.
    if (S.sums === 'fenwick' && broken !== 'fenwick sum unchecked' && (yield load(w, TICK)) !== e)
      return to('decide', { w, now, tries })
    const next = broken === 'no epoch' ? adm(epoch(v), LIVE, s) : adm(epoch(v) + 1, LIVE, s)
    if (yield cas(w, ADM, v, next))
      yield store(w, ASOF, stamp(broken === 'asOf without epoch' ? 0 : next, e, now))
    return to('decide', { w, now, tries })
  },
  // Every node above the bucket, the largest first: a sum never misses what was admitted.
  *chargeNode({ cost, w, now, v, e, i, tries }) {
    const path = pathOf(e)
    if (i === path.length && broken === 'bucket before its nodes')
      return to('commit', { w, now, v, e, r: 0, tries })
    if (i === path.length) return to('charge', { w, now, v, e, tries })
    const { field, guards } = path[i]
    const x = yield load(w, field),
      fresh = lap(x) !== lapOf(e)
    if (fresh) {
      // Late: the node may be of a newer lap. Else what is below it goes before its lap does.
      const late =
        broken !== 'late node unchecked' && (yield load(w, TICK)) !== e
          ? true
          : guards !== undefined && count(x) > 0 && broken !== 'relapped unclean'
            ? yield* cleanBlock(w, guards, e)
            : false
      if (late) return to('takeOut', { w, now, e, amount: cost, i: i - 1, tries })
    }
    const next = fresh ? bucket(lapOf(e), 0, cost) : x + cost
    return to('chargeNode', { w, now, v, e, i: (yield cas(w, field, x, next)) ? i + 1 : i, tries })
  },
  // The same in the other direction: the bucket has been taken from.
  *takeOut({ w, now, e, amount, i, left, u, tries }) {
    if (i < 0) return u === undefined ? to('bumpEpoch', { w, now, tries }) : to('refund', { w, left, u })
    const { field } = pathOf(e)[i]
    const x = yield load(w, field)
    const gone = lap(x) !== lapOf(e) || (yield cas(w, field, x, x - amount))
    return to('takeOut', { w, now, e, amount, i: gone ? i - 1 : i, left, u, tries })
  },
  *charge({ cost, w, now, v, e, tries }) {
    const b = yield load(w, slot(e)),
      fresh = lap(b) !== lapOf(e)
    if (fresh && broken !== 'no late check' && (yield load(w, TICK)) - e >= RING)
      return S.sums
        ? to('takeOut', { w, now, e, amount: cost, i: pathOf(e).length - 1, tries })
        : to('decide', { w, now, tries })
    if (!fresh && refunds(b) === 3) return to('announceTurn', { w, now, v, e, tries })
    const charged = fresh ? bucket(lapOf(e), 0, cost) : b + cost
    const r = !fresh && refunds(b) > 0 ? stampOf(yield load(w, GENERATION), refunds(b)) : 0
    if (!(yield cas(w, slot(e), b, charged))) return to('charge', { w, now, v, e, tries })
    if (broken === 'bucket before its nodes') return to('chargeNode', { w, now, v, e, i: 0, tries })
    return broken === 'adm before bucket' ? done('admitted') : to('commit', { w, now, v, e, r, tries })
  },
  // To give a bucket mark 1 again: alone, or the bucket sinks. Announced before the bucket is read.
  *announceTurn({ w, now, v, e, left, u, tries }) {
    const x = yield load(w, GIVING)
    if (!(yield cas(w, GIVING, x, x + ONE_TURN))) return to('announceTurn', { w, now, v, e, left, u, tries })
    const alone = x === 0 || broken === 'turned beside others' ? 1 : 0
    return to(u === undefined ? 'chargeSunk' : 'refund', { w, now, v, e, left, u, alone, tries })
  },
  *chargeSunk({ cost, w, now, v, e, alone, tries }) {
    const b = yield load(w, slot(e)),
      after = { w, now, v, e, tries }
    if (lap(b) !== lapOf(e) || refunds(b) !== 3) return to('endTurn', after)
    let charged = b + cost,
      r = SUNK
    if (alone) {
      yield add(w, GENERATION, 1)
      charged = bucket(lap(b), 1, count(b) + cost)
      r = stampOf(yield load(w, GENERATION), 1)
    }
    if (!(yield cas(w, slot(e), b, charged))) return to('chargeSunk', { ...after, alone })
    return to('chargedSunk', { ...after, r })
  },
  *chargedSunk({ w, now, v, e, r, tries }) {
    const x = yield load(w, GIVING)
    if (!(yield cas(w, GIVING, x, x - ONE_TURN))) return to('chargedSunk', { w, now, v, e, r, tries })
    return to('commit', { w, now, v, e, r, tries })
  },
  *endTurn({ w, now, v, e, left, u, tries }) {
    const x = yield load(w, GIVING)
    if (!(yield cas(w, GIVING, x, x - ONE_TURN))) return to('endTurn', { w, now, v, e, left, u, tries })
    return u === undefined ? to('charge', { w, now, v, e, tries }) : to('refund', { w, left, u })
  },
  *commit({ key, kind, cost, w, now, v, e, r, again = 0, tries }) {
    // a second try: a sum may have counted the charge already
    const next =
      again && broken !== 'second try unmarked' ? adm(epoch(v) + 1, LIVE, total(v) + cost) : v + cost
    const admit = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = next), oracle.admit(key, e, cost), true)
    if (yield admit)
      return broken === 'adm before bucket'
        ? to('charge', { w, now, v, e, tries })
        : kind === 'borrow'
          ? to('giveBack', { w, e, r })
          : done('admitted')
    const x = yield load(w, ADM)
    if (
      state(x) === LIVE &&
      (yield load(w, LO)) === key &&
      (yield load(w, HI)) === key &&
      (yield load(w, TICK)) === e &&
      total(x) + cost <= S.limit
    )
      return to('commit', { w, now, v: x, e, r, again: 1, tries })
    return undone({ w, now, e, r, tries })
  },
  *giveBack({ w, e, r }) {
    // one's own admission, later
    if ((yield load(w, TICK)) - e > N) return done('expired')
    if (r === SUNK) return done('not given back')
    return to(r === 0 ? 'remove' : 'announce', { w, e, r, own: 1 })
  },
  // Where refunds have been: while one is giving back, no mark is turned; while one is being turned, nothing is given back.
  *announce({ w, now, e, r, own, tries }) {
    if (broken !== 'given back unannounced') {
      const x = yield load(w, GIVING)
      if (!(yield cas(w, GIVING, x, x + 1))) return to('announce', { w, now, e, r, own, tries })
      if (x >= ONE_TURN && broken !== 'given back under a turn')
        return to('withdraw', { w, now, e, r, own, tries })
    }
    const isSame = broken === 'generation unread' || (yield load(w, GENERATION)) === Math.floor(r / 4) - 1
    return to(isSame ? 'remove' : 'withdraw', { w, now, e, r, own, tries })
  },
  // With the same mark as at the charge no refund has been there since.
  *remove({ key, cost, w, now, e, r, own, tries }) {
    const b = yield load(w, slot(e)),
      after = { w, now, e, r, own, tries }
    if (lap(b) !== lapOf(e) || (broken !== 'no mark' && refunds(b) !== r % 4))
      return to(r === 0 ? 'removed' : 'withdraw', after)
    const take = (m, oracle) =>
      m[at(w, slot(e))] === b && ((m[at(w, slot(e))] = b - cost), own && oracle.giveBack(key, e, cost), true)
    if (!(yield take)) return to('remove', after)
    return to(r === 0 ? 'removed' : 'withdraw', { ...after, took: 1 })
  },
  *withdraw({ w, now, e, r, own, tries, took }) {
    if (broken !== 'given back unannounced') {
      const x = yield load(w, GIVING)
      if (!(yield cas(w, GIVING, x, x - 1))) return to('withdraw', { w, now, e, r, own, tries, took })
    }
    return to('removed', { w, now, e, r, own, tries, took })
  },
  *removed({ cost, w, now, e, r, own, tries, took }) {
    if (took) return taken({ w, now, e, amount: cost, tries })
    if (!own) return to('decide', { w, now, tries })
    yield (_m, oracle) => oracle.keeps(r)
    return done('not given back')
  },
  *bumpEpoch({ w, now, tries }) {
    // A sum made before this may be too high. A new epoch fails the sums under way; the note ends by itself, or as many new
    // epochs as there are would bring it back.
    if (broken !== 'removed unmarked') {
      const v = yield load(w, ADM)
      if (state(v) === LIVE && !(yield cas(w, ADM, v, adm(epoch(v) + 1, LIVE, total(v)))))
        return to('bumpEpoch', { w, now, tries })
      if (state(v) === LIVE && broken !== 'note left standing') yield store(w, ASOF, NEVER)
    }
    return now === undefined ? done('given back') : to('decide', { w, now, tries })
  },
  *refund({ key, w, left, u, alone }) {
    // oldest first; a bucket that was taken from counts it: what was charged before is not undone there
    for (const e = yield load(w, TICK); left > 0 && u <= e; u++) {
      const b = yield load(w, slot(u)),
        take = Math.min(left, count(b))
      const isTurning = alone !== undefined
      if (lap(b) !== lapOf(u) || take === 0) {
        if (isTurning) return to('endTurn', { w, left, u: u + 1 })
        continue
      }
      if (broken !== 'refund unnamed' && !(yield* still(w, key)))
        return isTurning ? to('endTurn', { w, left: 0, u }) : done('refunded')
      let mark = refunds(b) + 1
      if (refunds(b) > 1) {
        if (!isTurning && broken !== 'bucket read before its turn') return to('announceTurn', { w, left, u })
        // After b, before it is taken from: who was charged before has an older generation, or fails this compare-exchange.
        mark = alone || broken === 'bucket read before its turn' ? 1 : 3
        if (mark === 1 && broken !== 'generation unraised') yield add(w, GENERATION, 1)
        if (broken === 'bucket read before its turn' && (yield load(w, GIVING)) !== 0) mark = 3
      }
      const rest = bucket(lap(b), broken === 'no mark' ? 0 : mark, count(b) - take)
      const give = (m, oracle) =>
        m[at(w, slot(u))] === b && ((m[at(w, slot(u))] = rest), oracle.refund(key, u, take), true)
      const given = yield give
      if (given && S.sums)
        return to('takeOut', { w, e: u, amount: take, i: pathOf(u).length - 1, left: left - take, u: u + 1 })
      if (!given) return to('refund', { w, left, u, alone })
      return to(isTurning ? 'endTurn' : 'refund', { w, left: left - take, u: u + 1 })
    }
    return to('bumpEpoch', { w })
  },
  *block({ key, cost, w, now, tries }) {
    // cost = how long; until by CAS, then adm: a way that changed hands is left alone
    const u = yield load(w, UNTIL)
    const v = yield load(w, ADM)
    if (state(v) !== LIVE || (yield load(w, LO)) !== key || (yield load(w, HI)) !== key)
      return to('lookup', { tries })
    // Left by a block that is over, the same word would let a thread that lost this way change the end of this block.
    const isLeft = u === now + cost && total(v) !== MAX && broken !== 'an end of two blocks'
    const until = isLeft ? u + 1 : now + cost
    if (!(yield cas(w, UNTIL, u, until))) return to('block', { w, now, tries })
    const shut = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, MAX)), oracle.block(key, until), true)
    if (!(yield shut)) return to('block', { w, now, tries })
    if (broken !== 'note left standing') yield store(w, ASOF, NEVER)
    return done('blocks')
  },
  *endBlock({ key, w }) {
    // a block that gives way to another ends by a sum: the key keeps its way and its counts
    const v = yield load(w, ADM)
    if (total(v) !== MAX || !(yield* isKeyOf(w, v, key))) return done('no block')
    const s = yield* sumOf(w, yield load(w, TICK), yield clock)
    const open = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, s)), oracle.block(key, 0), true)
    return (yield open) ? done('ended') : to('endBlock', { w })
  },
  ...insertion,
}
const taken = ({ w, now, e, amount, tries }) =>
  S.sums
    ? to('takeOut', { w, now, e, amount, i: pathOf(e).length - 1, tries })
    : to('bumpEpoch', { w, now, tries })
