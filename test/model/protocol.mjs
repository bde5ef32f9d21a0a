// The protocol of `src/algorithms/window/sliding-window.ts` and `src/memory/insertion.ts`, scaled down so that every
// interleaving of a few threads can be explored, one shared-memory operation at a time (`explorer.mjs`).
//
// An operation runs in phases. A phase is a generator: it yields one shared-memory operation at a time, and
// ends with the name of the next phase and the values to carry over. A thread's state is its phase, the
// carried values, and the results read so far in the phase. To do the next operation, the explorer replays
// the phase on those results. So the model needs no real threads and copies no generators.
//
// A window is one granule (n = 1) and a ring has n + 1 buckets. Counts have 4 bits; laps and epochs have few
// values. With nodes above the buckets (`sums`: 'blocks' or 'fenwick', `range-sum.mjs`) the window is three
// granules and the ring is longer. The model is sequentially consistent: weaker memory is not modelled.
//
// `words.mjs` has the words and the operations on them. `insertion.mjs` has the phases that give a key a way.
import { blocking } from './blocking.mjs'
import { conversion, enteredByItsRecord } from './conversion.mjs'
import { absent, insertion } from './insertion.mjs'
import { cleanBlock, lapIn, pathOf, sweepBlock } from './range-sum.mjs'
import { current } from './records.mjs'
import { admitted } from './several.mjs'
import { stamp, sumOf } from './sums.mjs'
import {
  ADM,
  ASOF,
  add,
  adm,
  at,
  BUCKETS,
  become,
  broken,
  bucket,
  cas,
  clock,
  count,
  distance,
  done,
  epoch,
  firstSwept,
  GENERATION,
  GIVING,
  granulesOf,
  HI,
  hiOf,
  hop,
  isKeyOf,
  isName,
  LIVE,
  LO,
  lap,
  lapOf,
  lastSwept,
  limitOf,
  load,
  MAX,
  N,
  NEVER,
  ONE_TURN,
  RING,
  recordOf,
  refunds,
  S,
  SUNK,
  slot,
  stampOf,
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

const still = function* (w, key) {
  // whether the way, found earlier, is still the key's
  return yield* isKeyOf(w, yield load(w, ADM), key)
}
/** The operations that change a key without deciding. */
const changes = new Set(['refund', 'block', 'end block', 'penalize'])

/** Takes out a charge that was not admitted, unless a refund may have taken it already. */
const undone = ({ w, now, e, r, tries }) =>
  r === SUNK ? to('decide', { w, now, tries }) : to(r === 0 ? 'remove' : 'announce', { w, now, e, r, tries })

export const phases = {
  *lookup({ key, kind, from = 0, tries = 0, early }) {
    // the clock is read first, once for the whole decision
    early ??= yield clock
    for (let w = from; w < S.ways; w++)
      if ((yield load(w, LO)) === key && (yield load(w, HI)) === hiOf(key))
        return to(changes.has(kind) || S.sums ? 'enter' : 'attempt', { w, tries, early })
    return S.records ? to('miss', { tries, early }) : absent({ kind, tries, early })
  },
  // The fast path, tried once: charges first, then checks the way's name and tick again.
  *attempt({ key, cost, w, tries, early }) {
    const e = tickOf(early)
    const stands =
      broken === 'attempt checks before adm' &&
      (yield load(w, LO)) === key &&
      isName(yield load(w, HI), key) &&
      (yield load(w, TICK)) === e
    if (broken !== 'attempt before its tick' && (yield load(w, TICK)) !== e)
      return to('enter', { w, tries, early })
    const b = yield load(w, slot(e)),
      v = yield load(w, ADM),
      hasRoom = state(v) === LIVE && total(v) + cost <= limitOf(key)
    const fits = lap(b) === lapOf(e) && refunds(b) === 0 && count(b) + cost <= MAX
    return fits && hasRoom && (yield cas(w, slot(e), b, b + cost))
      ? to(stands ? 'commit' : 'verify', { w, now: early, v, e, r: 0, tries })
      : to('enter', { w, tries, early })
  },
  *verify({ key, w, now, v, e, r, tries }) {
    if (
      (broken !== 'attempt without names' &&
        ((yield load(w, LO)) !== key || !isName(yield load(w, HI), key))) ||
      (broken !== 'attempt without tick' && (yield load(w, TICK)) !== e)
    )
      return undone({ w, now, e, r, tries })
    return to('commit', { w, now, v, e, r, tries })
  },
  *enter({ w, tries, early }) {
    // An old reading is safe: the cell's tick only moves forward, and the decision counts at that tick.
    const t = yield load(w, TICK),
      now = early
    if (yield* stays(w, t, now)) return to('decide', { w, now, tries, early })
    const next = broken === 'one hop' ? tickOf(now) : hop(t, tickOf(now))
    return (yield cas(w, TICK, t, next)) && broken !== 'no sweep'
      ? to('sweep', { w, p: firstSwept(t, next), next, now, tries, early })
      : to('enter', { w, tries, early })
  },
  *sweep({ w, p, next, now, tries, early, mine }) {
    // clears one slot for every quarter of the laps: counts that are older than the window
    const onward =
      mine !== undefined
        ? to('settle', { w, mine, tries, early })
        : to(
            next !== tickOf(now) ? 'enter' : 'decide',
            next !== tickOf(now) ? { w, tries, early } : { w, now, tries, early },
          )
    if (p > lastSwept(next)) return onward
    if (S.sums) {
      yield* sweepBlock(w, (p + RING) % (RING / 2), next)
      return to('sweep', { w, p: p + 1, next, now, tries, early, mine })
    }
    const i = (p + RING) % RING
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
    if (broken !== 'no names' && ((yield load(w, LO)) !== key || !isName(yield load(w, HI), key)))
      return to('lookup', { tries, early })
    if (kind === 'refund') return to('refund', { w, left: cost, u: Math.max(0, (yield load(w, TICK)) - N) })
    if (kind === 'block') return to('block', { w, now, v, tries })
    if (kind === 'end block') return to('endBlock', { w })
    const e = broken === 'tick before adm' ? tickOf(now) : yield load(w, TICK)
    if (kind !== 'penalize' && total(v) + cost > limitOf(key)) return to('full', { w, now, v, e, tries })
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
    // A Fenwick node of this lap holds counts that the same node of the next lap does not. A sum that read
    // such a newer node finds the tick changed.
    if (S.sums === 'fenwick' && broken !== 'fenwick sum unchecked' && (yield load(w, TICK)) !== e)
      return to('decide', { w, now, tries })
    const next = broken === 'no epoch' ? adm(epoch(v), LIVE, s) : adm(epoch(v) + 1, LIVE, s)
    if (yield cas(w, ADM, v, next))
      yield store(w, ASOF, stamp(broken === 'asOf without epoch' ? 0 : next, e, now))
    return to('decide', { w, now, tries })
  },
  // Charges every node above the bucket, the largest first: a sum never misses what was admitted.
  *chargeNode({ cost, w, now, v, e, i, tries }) {
    const path = pathOf(e)
    if (i === path.length && broken === 'bucket before its nodes')
      return to('commit', { w, now, v, e, r: 0, tries })
    if (i === path.length) return to('charge', { w, now, v, e, tries })
    const { field, guards } = path[i]
    const x = yield load(w, field),
      fresh = lap(x) !== lapOf(e)
    if (fresh) {
      // A late thread leaves the node: it may be of a newer lap. Otherwise the counts below go before the
      // node's lap changes.
      const late =
        broken !== 'late node unchecked' && (yield load(w, TICK)) !== e
          ? true
          : guards !== undefined && count(x) > 0 && broken !== 'new lap above old counts'
            ? yield* cleanBlock(w, guards, e)
            : false
      if (late) return to('takeOut', { w, now, e, amount: cost, i: i - 1, tries })
    }
    const next = fresh ? bucket(lapOf(e), 0, cost) : x + cost
    return to('chargeNode', { w, now, v, e, i: (yield cas(w, field, x, next)) ? i + 1 : i, tries })
  },
  // Takes a charge out of the nodes, the smallest first, after it was taken out of the bucket.
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
    if (fresh && broken !== 'no late check' && distance(yield load(w, TICK), e) >= RING)
      return S.sums
        ? to('takeOut', { w, now, e, amount: cost, i: pathOf(e).length - 1, tries })
        : to('decide', { w, now, tries })
    if (!fresh && count(b) + cost > MAX) return done('refused') // a block that was carried fills a bucket
    if (!fresh && refunds(b) === 3) return to('announceTurn', { w, now, v, e, tries })
    const charged = fresh ? bucket(lapOf(e), 0, cost) : b + cost
    const r = !fresh && refunds(b) > 0 ? stampOf(yield load(w, GENERATION), refunds(b)) : 0
    if (!(yield cas(w, slot(e), b, charged))) return to('charge', { w, now, v, e, tries })
    if (broken === 'bucket before its nodes') return to('chargeNode', { w, now, v, e, i: 0, tries })
    return broken === 'adm before bucket' ? done('admitted') : to('commit', { w, now, v, e, r, tries })
  },
  // Sets the mark of a bucket to 1 again if no other thread gives back or turns a mark; otherwise the bucket
  // sinks. The turn is announced before the bucket is read.
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
  *commit({ w, now, v, e, r, again = 0, tries, ...op }) {
    const { key, kind, cost } = op
    // On a second try a sum may have counted the charge already: the new epoch ends its note.
    const isNew = kind === 'penalize' || (again && broken !== 'second commit without epoch')
    const next = isNew ? adm(epoch(v) + 1, LIVE, total(v) + cost) : v + cost
    const admit = (m, oracle) =>
      m[at(w, ADM)] === v && ((m[at(w, ADM)] = next), oracle.commit(key, e, cost, w, r), true)
    if (yield admit)
      return broken === 'adm before bucket'
        ? to('charge', { w, now, v, e, tries })
        : admitted(op, { w, now, e, r })
    const x = yield load(w, ADM)
    if (
      state(x) === LIVE &&
      (yield load(w, LO)) === key &&
      isName(yield load(w, HI), key) &&
      (yield load(w, TICK)) === e &&
      (kind === 'penalize' || total(x) + cost <= limitOf(key))
    )
      return to('commit', { w, now, v: x, e, r, again: 1, tries })
    return undone({ w, now, e, r, tries })
  },
  *giveBack({ kind, key, cost, record, w, e, r, now }) {
    // gives back this thread's own admission, later
    if (S.records && now === undefined) {
      now = yield clock
      const view = recordOf(yield current)
      return become({ kind, key, cost, record: view, chargedBy: record }, 'giveBack', { w, e, r, now })
    }
    const own = S.records ? yield* enteredByItsRecord(w, now) : VIEW
    if (own === undefined) return done('converting')
    if (distance(yield load(w, TICK), e) > (S.records ? granulesOf(own) : N)) return done('expired')
    if (r === SUNK) return done('not given back')
    return to(r === 0 ? 'remove' : 'announce', { w, e, r, own: 1 })
  },
  // In marked buckets: while a thread gives back, no mark is turned, and while a mark is turned, nothing is
  // given back.
  *announce({ w, now, e, r, own, tries }) {
    if (broken !== 'given back unannounced') {
      const x = yield load(w, GIVING)
      if (!(yield cas(w, GIVING, x, x + 1))) return to('announce', { w, now, e, r, own, tries })
      if (x >= ONE_TURN && broken !== 'given back under a turn')
        return to('withdraw', { w, now, e, r, own, tries, turned: 1 })
    }
    const isSame = broken === 'generation unread' || (yield load(w, GENERATION)) === Math.floor(r / 4) - 1
    return to(isSame ? 'remove' : 'withdraw', { w, now, e, r, own, tries })
  },
  // If the mark is the same as at the charge, no refund has taken from the bucket since.
  *remove({ key, cost, w, now, e, r, own, tries }) {
    const b = yield load(w, slot(e)),
      after = { w, now, e, r, own, tries }
    const isMarked = broken !== 'refund without mark' && !(own && broken === 'given back by units alone')
    if (lap(b) !== lapOf(e) || count(b) < cost || (isMarked && refunds(b) !== r % 4))
      return to(r === 0 ? 'removed' : 'withdraw', after)
    const take = (m, oracle) =>
      m[at(w, slot(e))] === b && ((m[at(w, slot(e))] = b - cost), own && oracle.giveBack(key, e, cost), true)
    if (!(yield take)) return to('remove', after)
    return to(r === 0 ? 'removed' : 'withdraw', { ...after, took: 1 })
  },
  *withdraw({ w, now, e, r, own, tries, took, turned }) {
    if (broken !== 'given back unannounced') {
      const x = yield load(w, GIVING)
      if (!(yield cas(w, GIVING, x, x - 1))) return to('withdraw', { w, now, e, r, own, tries, took, turned })
    }
    return to('removed', { w, now, e, r, own, tries, took, turned })
  },
  *removed({ cost, w, now, e, r, own, tries, took, turned }) {
    if (took) return taken({ w, now, e, amount: cost, tries })
    if (!own) return to('decide', { w, now, tries })
    if (!turned) yield (_m, oracle) => oracle.keeps(r) // while a mark is turned, every charge stays
    return done('not given back')
  },
  *bumpEpoch({ w, now, tries }) {
    // A sum made before this may be too high. The new epoch makes concurrent sums fail. The note is cleared
    // as well: otherwise it would hold again once the epoch has come round.
    if (broken !== 'take-out without epoch') {
      const v = yield load(w, ADM)
      if (state(v) === LIVE && !(yield cas(w, ADM, v, adm(epoch(v) + 1, LIVE, total(v)))))
        return to('bumpEpoch', { w, now, tries })
      if (state(v) === LIVE && broken !== 'note left standing') yield store(w, ASOF, NEVER)
    }
    return now === undefined ? done('given back') : to('decide', { w, now, tries })
  },
  *refund({ key, w, left, u, alone }) {
    // Oldest bucket first. The mark counts the refunds of a bucket: charges made before a refund are not
    // taken out again.
    for (const e = yield load(w, TICK); left > 0 && u <= e; u++) {
      const b = yield load(w, slot(u)),
        take = Math.min(left, count(b))
      const isTurning = alone !== undefined
      if (lap(b) !== lapOf(u) || take === 0) {
        if (isTurning) return to('endTurn', { w, left, u: u + 1 })
        continue
      }
      if (broken !== 'refund without names' && !(yield* still(w, key)))
        return isTurning ? to('endTurn', { w, left: 0, u }) : done('refunded')
      let mark = refunds(b) + 1
      if (refunds(b) > 1) {
        if (!isTurning && broken !== 'bucket read before its turn') return to('announceTurn', { w, left, u })
        // After the read of b, before units are taken: a thread that charged earlier has an older generation,
        // or makes this compare-exchange fail.
        mark = alone || broken === 'bucket read before its turn' ? 1 : 3
        if (mark === 1 && broken !== 'generation unraised') yield add(w, GENERATION, 1)
        if (broken === 'bucket read before its turn' && (yield load(w, GIVING)) !== 0) mark = 3
      }
      const rest = bucket(lap(b), broken === 'refund without mark' ? 0 : mark, count(b) - take)
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
  ...blocking,
  ...insertion,
  ...conversion,
}
const taken = ({ w, now, e, amount, tries }) =>
  S.sums
    ? to('takeOut', { w, now, e, amount, i: pathOf(e).length - 1, tries })
    : to('bumpEpoch', { w, now, tries })
