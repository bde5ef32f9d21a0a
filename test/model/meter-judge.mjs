// Judges the model of `meter.mjs` by a ghost: it sees each change where it takes effect, and nothing of the
// protocol.
//
// The ghost of key k begins at 5 (k - 1). For a token bucket:
//   EARLIEST, LATEST  the bounds of the time at which sequential GCRA would have a full bucket
//   LEFT              what the last refund by key left: when the units from before it are full again
//   REFUNDS           the number of refunds by key
// For a fixed window EARLIEST is its start, LATEST the units that count there, LEFT those from before the last
// refund by key, and BEGUN the moment of its first charge. Behind the ghosts are triples (key, time, units): what was admitted at each time, or in
// the window that begins then, without what was refunded.
import { ADM, CLAIMED, CLOCK, NAME, S, stateOf, tickOf } from './meter-words.mjs'

const [EARLIEST, LATEST, LEFT, REFUNDS, BEGUN] = [0, 1, 2, 3, 4]
const TRIPLES = 10
const of = (key) => 5 * (key - 1)
export const newGhost = () => new Array(TRIPLES).fill(0)
/** Without the triples. */
export const ghostsOf = (g) => g.slice(0, TRIPLES)
export const refundsOf = (g, key) => g[of(key) + REFUNDS]

/** Adds to a triple. Returns its sum. */
function add(g, key, at, units) {
  let a = TRIPLES
  while (a < g.length && (g[a + 1] < at || (g[a + 1] === at && g[a] < key))) a += 3
  if (a < g.length && g[a + 1] === at && g[a] === key) g[a + 2] += units
  else g.splice(a, 0, key, at, units)
  return g[a + 2]
}

/** Takes units out of the triples of a key, the latest first. */
function takeLatest(g, key, units) {
  for (let a = g.length - 3; a >= TRIPLES && units > 0; a -= 3) {
    if (g[a] !== key || g[a + 2] <= 0) continue
    const taken = Math.min(units, g[a + 2])
    g[a + 2] -= taken
    units -= taken
  }
}

const bucketJudge = {
  admitted(s, { key, cost, at }) {
    const { g } = s
    const i = of(key)
    g[i + EARLIEST] = Math.max(g[i + EARLIEST], at) + cost
    g[i + LATEST] = Math.max(g[i + LATEST], s.m[CLOCK]) + cost
    add(g, key, at, cost)
    for (let a = TRIPLES; a < g.length; a += 3)
      for (let b = a, sum = 0; b < g.length; b += 3) {
        if (g[a] !== key || g[b] !== key) continue
        sum += g[b + 2]
        if (sum > S.fullest + g[b + 1] - g[a + 1]) s.wrong = `over: ${sum} from ${g[a + 1]} to ${g[b + 1]}`
      }
  },
  hasRoom({ g }, { key, cost, at, full = S.B }) {
    return Math.max(g[of(key) + LATEST], at) + cost <= at + full
  },
  penalized(s, { key, cost, at }) {
    const i = of(key)
    for (const [x, now] of [
      [i + EARLIEST, at],
      [i + LATEST, s.m[CLOCK]],
    ])
      s.g[x] = Math.max(s.g[x], Math.min(Math.max(s.g[x], now) + cost, now + S.D))
  },
  /** `units` less of a key whose bucket would have been full at `tat`. */
  refunded(s, { key, tat, units }) {
    const { g } = s
    const i = of(key)
    takeLatest(g, key, units)
    g[i + EARLIEST] -= units
    g[i + LATEST] -= units
    g[i + LEFT] = tat - units
    g[i + REFUNDS]++
  },
  /** A bucket may have drained. */
  keeps() {},
  givenBack(s, { key, at, tat, units, refunds }) {
    const { g, m } = s
    const i = of(key)
    const counted = Math.max(0, Math.min(units, tat - m[CLOCK]))
    if (m[NAME] !== key && counted > 0 && !S.evicts) s.wrong = 'takes the units of another key'
    if (refunds < g[i + REFUNDS]) {
      if (counted > Math.max(0, g[i + LEFT] - m[CLOCK])) s.wrong = 'takes the units of another charge'
      g[i + LEFT] -= units
    }
    add(g, key, at, -units)
    g[i + EARLIEST] -= units
    g[i + LATEST] -= units
  },
  /** Whether a lone decision at rest must be admitted, and whether it may be. */
  bounds({ g }, key, now, cost) {
    const room = (tat) => Math.max(tat, now) + cost <= now + S.B
    return [room(g[of(key) + LATEST]), room(g[of(key) + EARLIEST])]
  },
  gaps: () => {
    const { B, M } = S
    return [0, 1, B - 1, B, 3 * B + 1, M - B, M - 1, M, M + 1, 2 * M - 1, 7 * M + 3]
  },
  costs: () => [1, S.B],
}

const windowJudge = {
  admitted(s, { key, cost, at, tick, reading }) {
    const { g } = s
    const i = of(key)
    if (tickOf(at) < tick || tickOf(at) >= tick + S.size)
      s.wrong = `counted at ${at} in the window of ${tick}`
    const sum = add(g, key, tick, cost)
    if (sum > S.limit) s.wrong = `over: ${sum} in the window of ${tick}`
    for (let a = TRIPLES; a < g.length; a += 3) {
      const apart = Math.abs(g[a + 1] - tick)
      if (g[a] === key && g[a + 2] > 0 && apart > 0 && apart < S.size && !S.evicts)
        s.wrong = `windows of ${g[a + 1]} and ${tick} overlap`
    }
    this.enter(s, key, tick, reading)
    g[i + LATEST] += cost
  },
  /** Enters a window for a charge at a reading. One without units begins then. */
  enter(s, key, tick, reading) {
    const { g, m } = s
    const i = of(key)
    if (tick === g[i + EARLIEST] && g[i + LATEST] > 0) return
    if (tick < tickOf(reading) && !S.evicts) s.wrong = `the window of ${tick} begins before its first request`
    g[i + EARLIEST] = tick
    g[i + LATEST] = g[i + LEFT] = 0
    g[i + BEGUN] = m[CLOCK]
  },
  /** A window moves whose first charge came after the decision that moves it had begun. */
  moved(s, { from, to }) {
    const { g, m } = s
    const key = m[NAME]
    const i = of(key)
    if (g[i + EARLIEST] !== from || g[i + LATEST] === 0) return
    if (to > tickOf(g[i + BEGUN])) s.wrong = `a window that had begun at ${g[i + BEGUN]} moves to ${to}`
    add(g, key, to, add(g, key, from, 0))
    add(g, key, from, -add(g, key, from, 0))
    g[i + EARLIEST] = to
  },
  used({ g }, key, now) {
    const i = of(key)
    return tickOf(now) < g[i + EARLIEST] + S.size ? g[i + LATEST] : 0
  },
  hasRoom(s, { key, cost, at }) {
    return this.used(s, key, at) + cost <= S.limit
  },
  penalized(s, { key, cost, tick, reading }) {
    const { g } = s
    const i = of(key)
    this.enter(s, key, tick, reading)
    g[i + LATEST] = Math.min(g[i + LATEST] + cost, S.M - 1)
  },
  refunded({ g }, { key, tick, units }) {
    const i = of(key)
    add(g, key, tick, -units)
    g[i + LEFT] = g[i + LATEST] -= units
    g[i + REFUNDS]++
  },
  givenBack(s, { key, tick, units, refunds }) {
    const { g, m } = s
    const i = of(key)
    if (m[NAME] !== key && !S.evicts) s.wrong = 'takes the units of another key'
    if (refunds < g[i + REFUNDS] && (g[i + LEFT] -= units) < 0) s.wrong = 'takes the units of another charge'
    add(g, key, tick, -units)
    g[i + LATEST] -= units
  },
  /** A decision is not given back: its window is over, or another key has the way. */
  keeps(s, { key, charge }) {
    const { g, m } = s
    const behind = g[of(key) + EARLIEST] - charge.tick
    if (S.evicts || behind < 0 || behind >= S.size) return
    if (tickOf(m[CLOCK]) < charge.tick + S.size) s.wrong = 'a charge that counts is not given back'
  },
  bounds(s, key, now, cost) {
    const room = this.used(s, key, now) + cost <= S.limit
    return [room, room]
  },
  gaps: () => {
    const length = S.size * S.G
    return [0, 1, length - 1, length, length + 1, 2 * length, 3 * length + 1, 9 * length]
  },
  costs: () => [1, S.limit],
}

export const judge = () => (S.size ? windowJudge : bucketJudge)

export function admitted(s, how) {
  const { at, reading } = how
  if (at < reading || at > s.m[CLOCK]) s.wrong = `placed at ${at}: read ${reading}, is ${s.m[CLOCK]}`
  judge().admitted(s, how)
}

/** A lone decision at rest is admitted just where a sequential one would be, after any gap. */
export function wrongAtRest(s, decide) {
  const isClaimed = stateOf(s.m[ADM]) === CLAIMED
  if (isClaimed && s.t.some((t) => t.phase === 'dead')) return
  if (isClaimed) return 'stays claimed'
  const key = s.m[NAME]
  const now = s.m[CLOCK]
  for (const gap of judge().gaps())
    for (const cost of judge().costs()) {
      const result = decide(s, { kind: 'check', key, cost }, gap)
      const [must, may] = judge().bounds(s, key, now + gap, cost)
      if (result === 'admitted' ? !may : must && !S.evicts)
        return `at rest at ${now} + ${gap}, cost ${cost}: ${result}`
    }
}
