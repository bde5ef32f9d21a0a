#!/usr/bin/env node
// Explores every interleaving of the protocol in DESIGN.md, one shared-memory operation at a time.
//
//   node way-protocol.mjs                 all scenarios with the protocol as designed: each must hold (8 minutes)
//   node way-protocol.mjs --broken        with one order or check left out: each must fail (30 s)
//   node way-protocol.mjs NAME [MISTAKE]  one scenario; a failure prints its schedule
//
// An operation runs in phases. A phase is a generator that yields one shared-memory operation at a time and
// ends by naming the next phase and what is carried over; so a thread's state is its phase, what it carries
// and what it has read so far. Running the phase again on those results gives the next operation (threads are
// neither real nor copied), and equal states are explored once.
//
// Scaled down: a window is one granule (n = 1), a ring n + 1 buckets, counts have 4 bits, laps and epochs few
// values. Not in here: block sums, weaker memory than sequential consistency.

const FREE = 0,
  CLAIMED = 1,
  NAMED = 2,
  LIVE = 3
const N = 1,
  RING = N + 1
const MAX = 15 // a total of all ones: blocked
const NEVER = -1
const LO = 0,
  HI = 1,
  ADM = 2,
  TICK = 3,
  ASOF = 4,
  UNTIL = 5,
  BUCKETS = 6,
  WAY = BUCKETS + RING
const CLOCK = 0

let S, broken // the scenario and the variant under exploration

// Words. adm = epoch | state:2 | total:4, bucket = lap | refunds:2 | count:4, asOf = epoch and time of the last sum
const total = (v) => v & 15,
  state = (v) => (v >> 4) & 3,
  epoch = (v) => v >> 6
const adm = (e, s, t) => ((e % S.epochs) << 6) | (s << 4) | t
const count = (b) => b & 15,
  refunds = (b) => (b >> 4) & 3,
  lap = (b) => b >> 6
const bucket = (l, r, c) => (l << 6) | (r << 4) | c
const lapOf = (t) => Math.floor(t / RING) % S.laps
const slot = (t) => BUCKETS + (t % RING)
const tickOf = (now) => Math.floor(now / S.sub)

// Shared-memory operations
const at = (w, field) => 1 + w * WAY + field
const load = (w, field) => (m) => m[at(w, field)]
const store = (w, field, x) => (m) => {
  m[at(w, field)] = x
}
const cas = (w, field, from, to) => (m) => m[at(w, field)] === from && ((m[at(w, field)] = to), true)
const clock = (m) => m[CLOCK]
const to = (phase, carried) => ({ phase, carried })
const done = (result) => ({ result })

const sumOf = function* (w, e, now) {
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

const still = function* (w, key) {
  // is the way, which was the key's, still the key's?
  return state(yield load(w, ADM)) === LIVE && (yield load(w, LO)) === key && (yield load(w, HI)) === key
}

const phases = {
  *lookup({ key, kind, from = 0, tries = 0, early }) {
    // the clock first, once for all of a decision
    early ??= yield clock
    for (let w = from; w < S.ways; w++)
      if ((yield load(w, LO)) === key && (yield load(w, HI)) === key) return to('enter', { w, tries, early })
    if (kind === 'refund') return done('nothing to refund')
    return tries < S.tries ? to('choose', { tries: tries + 1, early }) : done('no room')
  },
  *enter({ w, tries, early }) {
    // an old reading is as good as a new one: the cell's tick only moves on, and counts
    const t = yield load(w, TICK),
      now = early
    if (t >= tickOf(now)) return to('decide', { w, now, tries, early })
    const next = broken === 'one hop' ? tickOf(now) : hop(t, tickOf(now))
    return (yield cas(w, TICK, t, next)) && broken !== 'no broom'
      ? to('broom', { w, p: firstSlot(t, next), next, now, tries, early })
      : to('enter', { w, tries, early })
  },
  *broom({ w, p, next, now, tries, early, mine }) {
    // one slot for every quarter of the laps: what is older than the window goes
    const onward =
      mine !== undefined
        ? to('settle', { w, mine, tries, early })
        : to(
            next < tickOf(now) ? 'enter' : 'decide',
            next < tickOf(now) ? { w, tries, early } : { w, now, tries, early },
          )
    if (p > Math.floor(next / (S.laps >> 2))) return onward
    const i = p % RING,
      live = next - ((next - i) % RING)
    const b = yield load(w, BUCKETS + i)
    if (count(b) > 0 && lap(b) !== lapOf(live)) {
      if (broken !== 'broom unchecked' && (yield load(w, TICK)) !== next) return onward
      yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
    }
    return to('broom', { w, p: p + 1, next, now, tries, early, mine })
  },
  *decide({ key, cost, kind, w, now, tries, early = now }) {
    const v = yield load(w, ADM)
    if (state(v) !== LIVE) return to('lookup', { from: w + 1, tries, early })
    if (broken !== 'no names' && ((yield load(w, LO)) !== key || (yield load(w, HI)) !== key))
      return to('lookup', { tries, early })
    if (kind === 'refund') return to('refund', { w, left: cost, u: Math.max(0, (yield load(w, TICK)) - N) })
    if (kind === 'block') return to('block', { w, now, v, tries })
    const e = broken === 'tick before adm' ? tickOf(now) : yield load(w, TICK)
    if (total(v) + cost > S.limit) return to('full', { w, now, v, e, tries })
    return broken === 'adm before bucket'
      ? to('commit', { w, now, v, e, tries })
      : to('charge', { w, now, v, e, tries })
  },
  *full({ w, now, v, e, tries }) {
    if (total(v) === MAX && (yield load(w, UNTIL)) > now) return done('blocked')
    if ((yield load(w, ASOF)) === stamp(broken === 'asOf without epoch' ? 0 : v, e, now))
      return done('refused')
    const s = yield* sumOf(w, e, now)
    const next = broken === 'no epoch' ? adm(epoch(v), LIVE, s) : adm(epoch(v) + 1, LIVE, s)
    if (yield cas(w, ADM, v, next))
      yield store(w, ASOF, stamp(broken === 'asOf without epoch' ? 0 : next, e, now))
    return to('decide', { w, now, tries })
  },
  *charge({ cost, w, now, v, e, tries }) {
    const b = yield load(w, slot(e)),
      fresh = lap(b) !== lapOf(e)
    if (fresh && broken !== 'no late check' && (yield load(w, TICK)) - e >= RING)
      return to('decide', { w, now, tries })
    const charged = fresh ? bucket(lapOf(e), 0, cost) : b + cost
    if (!(yield cas(w, slot(e), b, charged))) return to('charge', { w, now, v, e, tries })
    return broken === 'adm before bucket'
      ? done('admitted')
      : to('commit', { w, now, v, e, r: refunds(charged), tries })
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
    return to('undo', { w, now, e, r, tries })
  },
  *undo({ cost, w, now, e, r, tries }) {
    // unless a refund may have taken it already
    const b = yield load(w, slot(e))
    if (lap(b) === lapOf(e) && (broken === 'no mark' || (refunds(b) === r && r < 3))) {
      if (!(yield cas(w, slot(e), b, b - cost))) return to('undo', { w, now, e, r, tries })
      return to('stale', { w, now, tries })
    }
    return to('decide', { w, now, tries })
  },
  *giveBack({ key, cost, w, e, r }) {
    // one's own admission, later
    if ((yield load(w, TICK)) - e > N) return done('expired')
    const b = yield load(w, slot(e))
    if (lap(b) !== lapOf(e) || refunds(b) !== r || r === 3) return done('not given back')
    const give = (m, oracle) =>
      m[at(w, slot(e))] === b && ((m[at(w, slot(e))] = b - cost), oracle.refund(key, e, cost), true)
    return (yield give) ? to('stale', { w }) : to('giveBack', { w, e, r })
  },
  *stale({ w, now, tries }) {
    // a sum made before this may be too high: a new epoch ends its asOf
    if (broken !== 'removed unmarked') {
      const v = yield load(w, ADM)
      if (state(v) === LIVE && !(yield cas(w, ADM, v, adm(epoch(v) + 1, LIVE, total(v)))))
        return to('stale', { w, now, tries })
    }
    return now === undefined ? done('given back') : to('decide', { w, now, tries })
  },
  *refund({ key, w, left, u }) {
    // oldest first; a bucket that was taken from counts it: what was charged before is not undone there
    for (const e = yield load(w, TICK); left > 0 && u <= e; u++) {
      const b = yield load(w, slot(u)),
        take = Math.min(left, count(b))
      if (lap(b) !== lapOf(u) || take === 0) continue
      if (broken !== 'refund unnamed' && !(yield* still(w, key))) return done('refunded')
      const rest = bucket(lap(b), broken === 'no mark' ? 0 : Math.min(3, refunds(b) + 1), count(b) - take)
      const give = (m, oracle) =>
        m[at(w, slot(u))] === b && ((m[at(w, slot(u))] = rest), oracle.refund(key, u, take), true)
      const given = yield give
      return to('refund', { w, left: given ? left - take : left, u: given ? u + 1 : u })
    }
    return to('stale', { w })
  },
  *block({ key, cost, w, now, tries }) {
    // cost = how long; until by CAS, then adm: a way that changed hands is left alone
    const u = yield load(w, UNTIL)
    const v = yield load(w, ADM)
    if (state(v) !== LIVE || (yield load(w, LO)) !== key || (yield load(w, HI)) !== key)
      return to('lookup', { tries })
    if (!(yield cas(w, UNTIL, u, now + cost))) return to('block', { w, now, tries })
    const shut = (m, oracle) =>
      m[at(w, ADM)] === v &&
      ((m[at(w, ADM)] = adm(epoch(v) + 1, LIVE, MAX)), oracle.block(key, now + cost), true)
    return (yield shut) ? done('blocks') : to('block', { w, now, tries })
  },

  *choose({ key, tries, early }) {
    // any way that may be taken; the explorer tries each
    return {
      split: (S.choice?.[key] ?? Array.from({ length: S.ways }, (_, w) => w)).map((w) =>
        to('claim', { w, tries, early }),
      ),
    }
  },
  *claim({ w, tries, early }) {
    const v = yield load(w, ADM)
    if (state(v) === CLAIMED) return done('no room')
    if (total(v) === MAX && (yield load(w, UNTIL)) > (yield clock)) return done('no room')
    const t = yield load(w, TICK),
      now = yield clock // a reading of its own: with an old one less would have expired
    const expired = t + N < tickOf(now)
    if (!expired && total(v) > 0 && !S.evictLive) return done('no room')
    const mine = adm(
      epoch(v) + (broken === 'claim without epoch' ? 0 : 1),
      broken === 'named at once' ? NAMED : CLAIMED,
      expired ? 0 : Math.min(total(v), MAX - 1),
    )
    return (yield cas(w, ADM, v, mine))
      ? to('name', { w, mine, tries, early })
      : to('lookup', { tries, early })
  },
  *name({ key, w, mine, tries, early }) {
    yield store(w, HI, key)
    yield store(w, LO, key)
    const named = adm(epoch(mine), NAMED, total(mine))
    if (broken !== 'named at once') yield store(w, ADM, named)
    return to(broken === 'no scan' ? 'settle' : 'scan', { w, mine: named, i: 0, tries, early })
  },
  *scan({ key, w, mine, i, tries, early }) {
    // is another way of both sets named so?
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
  // The tick comes up to a clock read after the scan: no other cell of the key was alive then, so nothing of the key was
  // admitted later than this, and no decision here, with whatever old reading, can be admitted earlier than this.
  *settle({ w, mine, tries, early }) {
    if (broken === 'unsettled') return to('promote', { w, mine, tries, early })
    const t = yield load(w, TICK),
      now = yield clock
    if (t >= tickOf(now)) return to('promote', { w, mine, tries, early })
    const next = hop(t, tickOf(now))
    return (yield cas(w, TICK, t, next))
      ? to('broom', { w, p: firstSlot(t, next), next, now, tries, early, mine })
      : to('settle', { w, mine, tries, early })
  },
  *promote({ w, mine, tries, early }) {
    // fails when vetoed
    const alive = adm(epoch(mine), LIVE, total(mine))
    if (broken === 'promote by store') yield store(w, ADM, alive)
    else yield cas(w, ADM, mine, alive)
    return to('lookup', { tries, early })
  },
}
// A jump over many laps goes by way of a tick whose laps no leftover bears.
const hop = (t, now) => {
  const all = S.laps * RING,
    reach = all >> 2
  return now - t <= reach ? now : t + reach + all * Math.floor((now - t - reach) / all)
}
const firstSlot = (t, next) =>
  Math.max(Math.floor(t / (S.laps >> 2)) + 1, Math.floor(next / (S.laps >> 2)) - RING + 1)

// What must never be. The oracle sees each admission where it takes effect, and nothing of the protocol.
const cell = (key, tick) => key * S.ticks + tick // of the oracle's array; after them, each key's block
class Oracle {
  // on top of a plain array, so that it is part of the state
  constructor(a, threads, me) {
    this.a = a
    this.threads = threads
    this.me = me
  }
  admit(key, e, cost) {
    const t = this.threads[this.me]
    if (this.a[cell(S.keys, key)] > this.now) this.wrong = 'admitted while blocked'
    const owed = t.owed // of its units, how many a refund took while it was under way
    const absorbed = Math.min(owed, cost)
    t.owed = 0
    this.a[cell(key, e)] += cost - absorbed
    const wide = S.smooth ? N : N + 1
    for (let last = e; last < e + wide; last++) {
      let s = 0
      for (let u = last; u > last - wide; u--) if (u >= 0) s += this.a[cell(key, u)]
      if (s > S.limit && !S.evictLive) this.wrong = `over: ${s} in ${wide} ticks, limit ${S.limit}`
    }
  }
  refund(key, u, n) {
    // what exceeds the admitted was in flight: a decision under way there has nothing left to count
    const c = cell(key, u),
      own = Math.min(n, this.a[c])
    this.a[c] -= own
    let rest = n - own
    this.threads.forEach((t, k) => {
      if (rest === 0 || t.carried.e !== u || t.phase !== 'commit' || k === this.me) return
      const owed = Math.min(rest, t.op.cost)
      rest -= owed
      this.threads[k] = { ...t, owed: t.owed + owed }
    })
  }
  block(key, until) {
    this.a[cell(S.keys, key)] = until
  }
}

function wrongNow(s) {
  for (let key = 1; key < S.keys; key++) {
    let live = 0
    for (let w = 0; w < S.ways; w++)
      if (state(s.m[at(w, ADM)]) === LIVE && s.m[at(w, LO)] === key && s.m[at(w, HI)] === key) live++
    if (live > 1) return 'two live cells for one key'
  }
}
function wrongAtRest(s) {
  const dead = s.t.some((t) => t.phase === 'dead')
  for (let w = 0; w < S.ways; w++) {
    const v = s.m[at(w, ADM)],
      T = s.m[at(w, TICK)],
      key = s.m[at(w, LO)]
    if (!dead && (state(v) === CLAIMED || state(v) === NAMED)) return 'a way stays claimed'
    if (state(v) !== LIVE) continue
    let sum = 0
    for (let u = Math.max(0, T - N); u <= T; u++) {
      const b = s.m[at(w, slot(u))],
        c = lap(b) === lapOf(u) ? count(b) : 0
      if (c < s.o[cell(key, u)] && !S.evictLive)
        return `bucket below what was admitted: ${c} < ${s.o[cell(key, u)]} at ${u}`
      sum += u === T - N && S.smooth ? 0 : c
    }
    if (!dead && total(v) < sum) return `total ${total(v)} below the live sum ${sum}`
  }
  if (S.exact && !dead)
    for (let key = 1; key < S.keys; key++) {
      // a lone decision now is admitted where the oracle has room
      const now = tickOf(s.m[CLOCK])
      let used = 0
      for (let u = Math.max(0, now - N); u <= now; u++) used += s.o[cell(key, u)]
      if (
        used < S.limit &&
        s.o[cell(S.keys, key)] <= s.m[CLOCK] &&
        /refused|blocked|hang/.test(alone(lone(s, key, 0)))
      )
        return `refused with ${used} of ${S.limit} used`
    }
  for (const gap of S.gaps)
    for (let key = 1; key <= S.restKeys; key++) {
      // alone, after an idle time, a decision is admitted
      if (alone(lone(s, key, gap)) !== 'admitted')
        return `alone and idle for ${gap} ticks, key ${key} is not admitted`
    }
}
function lone(s, key, gap) {
  const q = {
    m: s.m.slice(),
    o: s.o.slice().fill(0),
    t: [{ op: { kind: 'check', key, cost: 1 }, ops: [], phase: 'lookup', carried: {}, log: [], owed: 0 }],
  }
  q.m[CLOCK] += gap * S.sub
  return q
}
function alone(q) {
  // any choice of a way may lead there
  for (let n = 0; n < 3000; n++) {
    const t = q.t[0]
    if (t.result) return t.result
    const next = step(q, 0)
    if (next.length > 1) {
      for (const x of next) if (alone(x) === 'admitted') return 'admitted'
      return 'no room'
    }
    q = next[0]
  }
  return 'hang'
}

// One step of one thread: run its phase again on the results it has, then do the next operation.
function step(s, k) {
  const t = s.t[k],
    args = { ...t.op, ...t.carried }
  const gen = phases[t.phase](args)
  let r = gen.next()
  for (const x of t.log) r = gen.next(x)
  const n = { m: s.m.slice(), o: s.o.slice(), t: s.t.slice() }
  const me = (n.t[k] = { ...t })
  if (!r.done) {
    const oracle = new Oracle(n.o, n.t, k)
    oracle.now = n.m[CLOCK]
    const x = r.value(n.m, oracle)
    if (oracle.wrong) n.wrong = oracle.wrong
    me.log = [...t.log, x]
    r = gen.next(x)
  }
  if (!r.done) return [n]
  const follow = (st, { phase, carried, result, split }) => {
    const me = st.t[k]
    if (split)
      return split.flatMap((x) =>
        follow({ m: st.m.slice(), o: st.o.slice(), t: st.t.map((y) => ({ ...y })), wrong: st.wrong }, x),
      )
    if (result) {
      const [op, ...ops] = me.ops
      if (op) Object.assign(me, { op, ops, phase: 'lookup', carried: {}, log: [], owed: 0 })
      else Object.assign(me, { phase: 'done', carried: {}, log: [], result, owed: 0 })
    } else Object.assign(me, { phase, carried, log: [], owed: phase === 'commit' ? me.owed : 0 })
    if (me.phase === 'scan' && (me.carried.i === me.carried.w ? me.carried.i + 1 : me.carried.i) >= S.ways) {
      me.phase = 'settle'
      me.carried = { ...me.carried, i: undefined }
    }
    return [st]
  }
  return follow(n, r.value)
}

const OVER = new Set(['done', 'dead'])
let h1, h2
const mix = (x) => {
  h1 = Math.imul(h1 ^ x, 0x9e3779b1)
  h1 ^= h1 >>> 15
  h2 = Math.imul(h2 + x, 0x85ebca6b) ^ (h2 >>> 13)
}
const PHASES = Object.fromEntries(['done', 'dead', ...Object.keys(phases)].map((p, i) => [p, i + 1]))
function hashOf(s) {
  // 53 bits
  h1 = 0x1234567
  h2 = 0x7654321
  for (const x of s.m) mix(x)
  for (const x of s.o) mix(x)
  for (const t of s.t) {
    mix(PHASES[t.phase] | (t.ops.length << 8) | (t.owed << 12) | (t.log.length << 16))
    for (const name in t.carried) mix(t.carried[name] ?? -7)
    for (const x of t.log) mix(x === undefined ? -9 : +x)
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 0xc2b2ae35) ^ Math.imul(h2 ^ (h2 >>> 15), 0x27d4eb2f)
  h2 = Math.imul(h2 ^ (h2 >>> 14), 0x165667b1) ^ (h1 >>> 7)
  return 4294967296 * (2097151 & h2) + (h1 >>> 0)
}
class Seen {
  constructor() {
    this.sets = Array.from({ length: 256 }, () => new Set())
    this.size = 0
  }
  add(h) {
    const s = this.sets[h % 256]
    if (s.has(h)) return false
    s.add(h)
    this.size++
    return true
  }
}

export function explore(scenario, variant, most = 3e7) {
  S = {
    ways: 1,
    limit: 1,
    clock: 2,
    sub: 1,
    laps: 16,
    epochs: 64,
    tries: 2,
    gaps: [N + 2],
    restKeys: 1,
    exact: true,
    start: 2,
    deaths: false,
    ...scenario,
  }
  broken = variant
  S.keys = 1 + Math.max(1, ...S.threads.flat().map((op) => op.key), ...(S.init ?? []).map(([key]) => key))
  S.ticks = S.start + S.clock + 2 * N + 1
  const m = new Array(1 + S.ways * WAY).fill(0),
    o = new Array(cell(S.keys, S.keys)).fill(0)
  m[CLOCK] = S.start * S.sub
  ;(S.init ?? []).forEach(([key, c, tick], w) => {
    m[at(w, LO)] = m[at(w, HI)] = key
    m[at(w, ADM)] = adm(0, key ? LIVE : FREE, c)
    m[at(w, TICK)] = tick
    m[at(w, ASOF)] = NEVER
    if (c) {
      m[at(w, slot(tick))] = bucket(lapOf(tick), 0, c)
      o[cell(key, tick)] += c
    }
  })
  const t = S.threads.map(([op, ...ops]) => ({ op, ops, phase: 'lookup', carried: {}, log: [], owed: 0 }))
  const end = (S.start + S.clock) * S.sub
  const seen = new Seen(),
    stack = [{ s: { m, o, t }, next: null, i: 0, how: '' }]
  seen.add(hashOf(stack[0].s))
  let ends = 0
  const schedule = (last) => [...stack.map((f) => f.how), last].filter(Boolean).join(' ')
  while (stack.length) {
    const f = stack[stack.length - 1]
    f.next ??= moves(f.s, end)
    if (f.i >= f.next.length) {
      stack.pop()
      continue
    }
    const { s, how } = f.next[f.i++]
    if (s.wrong) return { states: seen.size, wrong: s.wrong, schedule: schedule(how) }
    if (!seen.add(hashOf(s))) continue
    if (seen.size > most) return { states: seen.size, ends, stopped: true }
    let wrong = wrongNow(s)
    const rest = s.t.every((x) => OVER.has(x.phase))
    if (!wrong && rest) {
      ends++
      wrong = wrongAtRest(s)
    }
    if (wrong) return { states: seen.size, wrong, schedule: schedule(how) }
    if (!rest) stack.push({ s, next: null, i: 0, how })
  }
  return { states: seen.size, ends }
}
function moves(s, end) {
  const out = []
  if (s.m[CLOCK] < end) {
    const n = { m: s.m.slice(), o: s.o, t: s.t }
    n.m[CLOCK]++
    out.push({ s: n, how: 'clock' })
  }
  for (let k = 0; k < s.t.length; k++) {
    const t = s.t[k]
    if (OVER.has(t.phase)) continue
    for (const n of step(s, k))
      out.push({ s: n, how: `${k}:${t.phase}${t.log.length ? '+' + t.log.length : ''}` })
    if (S.deaths && (t.phase !== 'lookup' || t.log.length) && !s.t.some((x) => x.phase === 'dead')) {
      const n = { m: s.m, o: s.o, t: s.t.map((x) => ({ ...x })) }
      Object.assign(n.t[k], { phase: 'dead', carried: {}, log: [] })
      out.push({ s: n, how: `${k}:dies` })
    }
  }
  return out
}

const check = (key, cost = 1) => ({ kind: 'check', key, cost })
const refund = (key, cost) => ({ kind: 'refund', key, cost })
const borrow = (key, cost = 1) => ({ kind: 'borrow', key, cost })
const block = (key, cost) => ({ kind: 'block', key, cost })
const live = (c = 0, tick = 0) => [1, c, tick]
export const scenarios = {
  'three decisions, limit 1': { init: [live()], threads: [[check(1)], [check(1)], [check(1)]], clock: 2 },
  'three decisions, limit 2, one already used': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[check(1)], [check(1)], [check(1)]],
    clock: 2,
  },
  'costs 1, 2 and 3, limit 3': {
    init: [live()],
    limit: 3,
    threads: [[check(1)], [check(1, 2)], [check(1, 3)]],
    clock: 1,
  },
  'stalls of most of the laps': {
    init: [live(0, 1)],
    threads: [[check(1)], [check(1), check(1)]],
    clock: 5,
    laps: 4,
  },
  'idle for exactly all laps': {
    init: [live(1, 2)],
    threads: [[check(1)], [check(1)]],
    clock: 1,
    laps: 4,
    gaps: [N + 2, 4 * RING, 4 * RING + 1, 3 * RING, 2 * RING + 1, 8 * RING],
  },
  'smooth, half granules': {
    init: [live(2, 2)],
    limit: 3,
    smooth: true,
    sub: 2,
    threads: [[check(1)], [check(1, 2)]],
    clock: 2,
    gaps: [N + 2],
  },
  'a refund among decisions': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[check(1)], [refund(1, 2)], [check(1)]],
    clock: 1,
    exact: false,
  }, // what overlaps a refund may stay charged
  'a sum among charges': { init: [[1, 1, 1]], limit: 2, threads: [[check(1)], [check(1, 2)]], clock: 3 },
  'an admission given back among decisions': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[borrow(1)], [check(1, 2), check(1)]],
    clock: 2,
  },
  'given back after all laps': {
    init: [live()],
    limit: 2,
    threads: [[borrow(1)], [check(1)]],
    clock: 9,
    laps: 4,
    exact: false,
  }, // a stall of exactly all laps may leave a charge
  'refunds before and after': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[refund(1, 1), check(1)], [check(1, 2)]],
    clock: 0,
    exact: false,
  },
  'a refund while its way is reused': {
    init: [[1, 1, 1]],
    threads: [[refund(1, 1)], [check(2), check(2)]],
    clock: 3,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a block among decisions': {
    init: [live()],
    limit: 1,
    threads: [[check(1)], [block(1, 2), check(1)]],
    clock: 3,
    gaps: [4],
  },
  'two meet a new key': { ways: 2, threads: [[check(1)], [check(1)]], clock: 2, tries: 2 },
  'three meet a new key': { ways: 2, threads: [[check(1)], [check(1)], [check(1)]], clock: 0, tries: 1 },
  'a way reused while its key decides': {
    ways: 1,
    init: [[1, 1, 1]],
    threads: [[check(1)], [check(2), check(2)]],
    clock: 4,
    tries: 1,
    restKeys: 2,
  },
  'a way lost to another key and won back': {
    ways: 1,
    init: [[1, 1, 1]],
    threads: [[check(1)], [check(1)], [check(2)]],
    clock: 1,
    tries: 1,
    restKeys: 0,
    gaps: [],
    exact: false,
  },
  'two keys swap ways': {
    ways: 2,
    init: [[1, 1, 2]],
    threads: [[check(1)], [check(2), check(2)]],
    clock: 3,
    tries: 1,
    choice: { 1: [1], 2: [0] },
    restKeys: 0,
  },
  'three keys, one stale name': {
    ways: 3,
    init: [[1, 0, 0]],
    start: 4,
    threads: [[check(2)], [check(1)], [check(3), check(3)]],
    clock: 0,
    tries: 1,
    choice: { 1: [1], 2: [0], 3: [0, 2] },
    restKeys: 0,
  },
  'live eviction': {
    ways: 2,
    init: [
      [1, 1, 2],
      [2, 1, 2],
    ],
    evictLive: true,
    exact: false,
    threads: [[check(1)], [check(3), check(3)]],
    clock: 1,
    tries: 1,
    gaps: [],
  },
  'a death while deciding': { init: [live()], threads: [[check(1)], [check(1)]], clock: 2, deaths: true },
  'a death while inserting': { ways: 3, threads: [[check(1)], [check(1)]], clock: 1, tries: 2, deaths: true },
}
export const mistakes = {
  'adm before bucket': 'three decisions, limit 1',
  'tick before adm': 'three decisions, limit 1',
  'no epoch': 'three decisions, limit 1',
  'no late check': 'stalls of most of the laps',
  'no broom': 'idle for exactly all laps',
  'one hop': 'idle for exactly all laps',
  'broom unchecked': 'stalls of most of the laps',
  'no mark': 'a refund among decisions',
  'asOf without epoch': 'costs 1, 2 and 3, limit 3',
  'second try unmarked': 'a sum among charges',
  'removed unmarked': 'costs 1, 2 and 3, limit 3',
  'refund unnamed': 'a refund while its way is reused',
  'no names': 'a way reused while its key decides',
  unsettled: 'a way lost to another key and won back',
  'claim without epoch': 'a way reused while its key decides',
  'named at once': 'three keys, one stale name',
  'no scan': 'two meet a new key',
  'no veto': 'two meet a new key',
  'promote by store': 'two meet a new key',
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [name, variant] = process.argv.slice(2)
  const run = (n, v) => {
    const t = performance.now(),
      r = explore(scenarios[n], v)
    const told = r.wrong ? `FAILS: ${r.wrong}` : r.stopped ? 'stopped, nothing found' : 'holds'
    console.log(
      `${n}${v ? ` [${v}]` : ''}: ${told}, ${r.states} states, ${r.ends ?? 0} ends, ${((performance.now() - t) / 1000).toFixed(1)} s`,
    )
    if (r.wrong && name && name !== '--broken') console.log(r.schedule)
    return !r.wrong && !r.stopped
  }
  let ok = true
  if (name === '--broken')
    for (const [v, n] of Object.entries(mistakes)) {
      if (n) ok = !run(n, v) && ok
    }
  else if (name) ok = run(name, variant)
  else for (const n of Object.keys(scenarios)) ok = run(n) && ok
  process.exit(ok ? 0 : 1)
}
