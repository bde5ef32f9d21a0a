// Explores every interleaving of a scenario (`scenarios.mjs`): depth first, each state once. Judges each
// admission (`oracle.mjs`), each state, and each state at rest (`judge.mjs`).

import { wrongAtRest, wrongNow } from './judge.mjs'
import { cell } from './oracle.mjs'
import { phases } from './protocol.mjs'
import { pathOf } from './range-sum.mjs'
import { firstRecord } from './records.mjs'
import { oracleWords } from './records-oracle.mjs'
import { step, threadOf } from './steps.mjs'
import {
  ADM,
  ASOF,
  adm,
  at,
  bucket,
  CLOCK,
  FREE,
  HI,
  hiOf,
  LIVE,
  LO,
  lapOf,
  MAX,
  N,
  NEVER,
  recordWords,
  S,
  setUp,
  slot,
  TICK,
  takeView,
  UNTIL,
  WAY,
} from './words.mjs'

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
    mix(
      (KINDS.indexOf(t.op.kind) + 1) |
        ((t.op.key ?? 0) << 4) |
        ((t.op.record ?? 7) << 8) |
        ((t.op.chargedBy ?? 7) << 12) |
        ((t.op.end ?? 0) << 16),
    )
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
  const stack = [{ s: firstState(), next: null, i: 0, how: '' }]
  const end = (S.start + S.clock) * S.sub
  const seen = new Seen()
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
/** The state in which the threads start. */
function firstState() {
  S.gaps ??= S.records ? [0, N + 2] : [N + 2]
  S.keys =
    1 + Math.max(1, ...S.threads.flat().map((op) => op.key ?? 1), ...(S.init ?? []).map(([key]) => key))
  S.ticks = S.start + S.clock + (S.records ? 30 : 2 * N + 1)
  const m = new Array(1 + S.ways * WAY + recordWords()).fill(0),
    o = new Array(
      S.records ? oracleWords() : cell(S.keys, S.keys) + (S.penalties ? cell(S.keys, 0) : 0),
    ).fill(0)
  m[CLOCK] = S.start * S.sub
  if (S.records) firstRecord(m)
  takeView({}, m)
  ;(S.init ?? []).forEach(([key, c, tick, mark = 0, until = 0], w) => {
    m[at(w, LO)] = key
    m[at(w, HI)] = hiOf(key)
    m[at(w, ADM)] = adm(0, key ? LIVE : FREE, until ? MAX : c)
    m[at(w, UNTIL)] = o[cell(S.keys, key)] = until
    m[at(w, TICK)] = tick
    m[at(w, ASOF)] = NEVER
    if (c || mark) {
      m[at(w, slot(tick))] = bucket(lapOf(tick), mark, c)
      if (S.sums) for (const { field } of pathOf(tick)) m[at(w, field)] = bucket(lapOf(tick), 0, c)
      o[cell(key, S.records ? tick * S.granule : tick)] += c
    }
  })
  const t = S.threads.map(threadOf)
  let first = { m, o, t: [] }
  if (S.changed) {
    first.t.push(threadOf([S.changed]))
    while (!first.t[0].result) first = step(first, 0)[0]
  }
  for (const x of t) if (x.op.record !== undefined) setLate(x, m[CLOCK])
  return { ...first, t }
}
/** A thread that has read the clock and CURRENT already, and has come as far as `op.phase`. */
function setLate(t, early) {
  t.phase = t.op.phase ?? t.phase
  t.carried = { early: t.op.early ?? early, tries: t.op.phase ? 1 : 0 }
}
const BEGINNINGS = new Set(['lookup', 'view'])
export function moves(s, end) {
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
    const hasBegun = !BEGINNINGS.has(t.phase) || t.log.length > 0
    if (S.deaths && hasBegun && !s.t.some((x) => x.phase === 'dead')) {
      const n = { m: s.m, o: s.o, t: s.t.map((x) => ({ ...x })) }
      Object.assign(n.t[k], { phase: 'dead', carried: {}, log: [] })
      out.push({ s: n, how: `${k}:dies` })
    }
  }
  return out
}
