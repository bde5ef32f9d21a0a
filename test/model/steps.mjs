// The steps of a thread, and those of a thread that is alone.
import { Oracle } from './oracle.mjs'
import { phases } from './protocol.mjs'
import { RecordsOracle } from './records-oracle.mjs'
import { afterRefusal } from './several.mjs'
import { CLOCK, isUnderWay, S, takeView, to } from './words.mjs'

export const threadOf = ([op, ...ops]) => ({
  op,
  ops,
  phase: firstPhase(op),
  carried: {},
  log: [],
  owed: 0,
  parts: [],
})
// A thread whose operation has a record has read it already.
const firstPhase = (op) => (S.records && op.record === undefined ? 'view' : 'lookup')

/** What a thread comes to that is alone: 'hang' if it does not end. */
export function alone(q) {
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

/** Does one step of one thread: replays its phase on the results so far, then does the next operation. */
export function step(s, k) {
  const t = s.t[k],
    args = { ...t.op, ...t.carried }
  takeView(t.op, s.m)
  const gen = phases[t.phase](args)
  let r = gen.next()
  for (const x of t.log) r = gen.next(x)
  const n = { m: s.m.slice(), o: s.o.slice(), t: s.t.slice() }
  const me = (n.t[k] = { ...t })
  if (!r.done) {
    const oracle = new (S.records ? RecordsOracle : Oracle)(n.o, n.t, k)
    oracle.now = n.m[CLOCK]
    if (S.records) takeView(t.op, n.m)
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
