// Explores every interleaving of a scenario (`scenarios.mjs`): depth first, each state once. Judges each
// admission, each state, and each state at rest.

import { cell, Oracle, usedIn } from './oracle.mjs'
import { phases } from './protocol.mjs'
import { pathOf } from './range-sum.mjs'
import { afterRefusal } from './several.mjs'
import { sumOf } from './sums.mjs'
import {
  ADM,
  ASOF,
  adm,
  at,
  bucket,
  CLAIMED,
  CLOCK,
  count,
  FREE,
  HI,
  isUnderWay,
  LIVE,
  LO,
  lap,
  lapOf,
  limitOf,
  MAX,
  N,
  NAMED,
  NEVER,
  S,
  setUp,
  slot,
  state,
  TICK,
  tickOf,
  to,
  total,
  UNTIL,
  WAY,
} from './words.mjs'

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
const threadOf = ([op, ...ops]) => ({ op, ops, phase: 'lookup', carried: {}, log: [], owed: 0, parts: [] })
function alone(q) {
  // one choice of a way that leads to an admission is enough
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

// Does one step of one thread: replays its phase on the results so far, then does the next operation.
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
  const follow = (st, { phase, carried, result, split, become }) => {
    const me = st.t[k]
    if (result && me.op.kind === 'take back') me.parts = me.parts.slice(1)
    const then = become
      ? { become, phase, carried }
      : result && afterRefusal(me.op, result, me.parts, me.carried)
    if (then) {
      const robbed = then.become.kind === 'take back' ? me.parts[0]?.robbed : me.robbed
      return follow(
        { ...st, t: st.t.with(k, { ...me, op: then.become, robbed }) },
        to(then.phase, then.carried),
      )
    }
    if (split)
      return split.flatMap((x) =>
        follow({ m: st.m.slice(), o: st.o.slice(), t: st.t.map((y) => ({ ...y })), wrong: st.wrong }, x),
      )
    if (result) {
      const [op, ...ops] = me.ops
      if (op) Object.assign(me, { ...threadOf([op, ...ops]), robbed: 0 })
      else Object.assign(me, { phase: 'done', carried: {}, log: [], result, owed: 0, parts: [] })
    } else
      Object.assign(me, {
        phase,
        carried,
        log: [],
        owed: isUnderWay(phase) ? me.owed : 0,
        robbed: carried.r === undefined ? 0 : me.robbed,
      })
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
const KINDS = ['take back', 'settle', 'reserve', 'rules', 'penalize'] // no other kind follows another
const PHASES = Object.fromEntries(['done', 'dead', ...Object.keys(phases)].map((p, i) => [p, i + 1]))
function hashOf(s) {
  // the hash has 53 bits
  h1 = 0x1234567
  h2 = 0x7654321
  for (const x of s.m) mix(x)
  for (const x of s.o) mix(x)
  for (const t of s.t) {
    mix(
      PHASES[t.phase] | (t.ops.length << 8) | (t.owed << 12) | ((t.robbed ?? 0) << 15) | (t.log.length << 16),
    )
    mix(KINDS.indexOf(t.op.kind) | (t.op.key << 4))
    for (const { key, w, e, r, owed, robbed } of t.parts) {
      mix(key | (w << 4) | (e << 8) | (owed << 16) | ((robbed ?? 0) << 20))
      mix(r)
    }
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

export function explore(scenario, variant, most = 6e7) {
  setUp(
    {
      ways: 1,
      limit: 1,
      clock: 2,
      sub: 1,
      laps: 16,
      epochs: 64,
      tries: 2,

      restKeys: 1,
      exact: true,
      start: 2,
      deaths: false,
      ...scenario,
    },
    variant,
  )
  S.gaps ??= [N + 2]
  S.keys = 1 + Math.max(1, ...S.threads.flat().map((op) => op.key), ...(S.init ?? []).map(([key]) => key))
  S.ticks = S.start + S.clock + 2 * N + 1
  const m = new Array(1 + S.ways * WAY).fill(0),
    o = new Array(cell(S.keys, S.keys) + (S.penalties ? cell(S.keys, 0) : 0)).fill(0)
  m[CLOCK] = S.start * S.sub
  ;(S.init ?? []).forEach(([key, c, tick, mark = 0], w) => {
    m[at(w, LO)] = m[at(w, HI)] = key
    m[at(w, ADM)] = adm(0, key ? LIVE : FREE, c)
    m[at(w, TICK)] = tick
    m[at(w, ASOF)] = NEVER
    if (c || mark) {
      m[at(w, slot(tick))] = bucket(lapOf(tick), mark, c)
      if (S.sums) for (const { field } of pathOf(tick)) m[at(w, field)] = bucket(lapOf(tick), 0, c)
      o[cell(key, tick)] += c
    }
  })
  const t = S.threads.map(threadOf)
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
