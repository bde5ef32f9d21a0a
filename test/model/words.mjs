// The model's words, their packing, and the operations on them; also the scenario that is being explored.
import { ringFor, wordsFor } from './range-sum.mjs'

export const FREE = 0,
  CLAIMED = 1,
  NAMED = 2,
  LIVE = 3
export const MAX = 15 // all ones in the total: blocked
export const NEVER = -1
export const LO = 0,
  HI = 1,
  ADM = 2,
  TICK = 3,
  ASOF = 4,
  UNTIL = 5,
  GENERATION = 6,
  GIVING = 7,
  BUCKETS = 8
export const CLOCK = 0

/** The scenario and the mistake being explored, granules in a window, buckets in a ring, words in a way. */
export let S, broken, N, RING, WAY
export const setUp = (scenario, mistake) => {
  S = scenario
  broken = mistake
  N = S.sums ? 3 : 1
  RING = S.sums && broken !== 'ring without a spare span' ? ringFor(S, N) : N + 1
  WAY = BUCKETS + RING + (S.sums ? wordsFor(S, RING) : 0)
}

// Words. adm = epoch | state:2 | total:4, bucket = lap | refunds:2 | count:4, asOf =
// epoch and time of the last sum
export const total = (v) => v & 15,
  state = (v) => (v >> 4) & 3,
  epoch = (v) => v >> 6
export const adm = (e, s, t) => ((e % S.epochs) << 6) | (s << 4) | t
export const count = (b) => b & 15,
  refunds = (b) => (b >> 4) & 3,
  lap = (b) => b >> 6
export const bucket = (l, r, c) => (l << 6) | (r << 4) | c
export const lapOf = (t) => Math.floor(t / RING) % S.laps
export const slot = (t) => BUCKETS + (t % RING)
export const tickOf = (now) => Math.floor(now / S.sub)

/** Whether a thread has charged and not committed. */
export const isUnderWay = (phase) => phase === 'verify' || phase === 'chargedSunk' || phase === 'commit'
// A charge has a stamp: the bucket's generation and refunds:2. A refund by key changes it. It is 0 without
// refunds.
/** The stamp of a charge in a sunk bucket, whose generation is unknown: such a charge is never taken out. */
export const SUNK = 3
/** GIVING counts threads that give back, and, in units of ONE_TURN, threads that turn a mark. */
export const ONE_TURN = 1000
export const stampOf = (generation, refunds) => 4 * (generation + 1) + refunds

// Shared-memory operations
export const at = (w, field) => 1 + w * WAY + field
export const load = (w, field) => (m) => m[at(w, field)]
export const store = (w, field, x) => (m) => {
  m[at(w, field)] = x
}
export const add = (w, field, x) => (m) => {
  m[at(w, field)] += x
}
export const cas = (w, field, from, to) => (m) => m[at(w, field)] === from && ((m[at(w, field)] = to), true)
export const clock = (m) => m[CLOCK]
/** The results of a phase. */
export const to = (phase, carried) => ({ phase, carried })
export const done = (result) => ({ result })
/** The thread goes on with another operation, as a part of the present one. */
export const become = (op, phase, carried) => ({ become: op, phase, carried })

/** The limit of a key. Each of several rules has its own key. */
export const limitOf = (key) => S.limits?.[key] ?? S.limit

// A move over many laps stops first at a tick whose laps no old count has.
export const hop = (t, now) => {
  const all = S.laps * RING,
    reach = all >> 2
  return now - t <= reach ? now : t + reach + all * Math.floor((now - t - reach) / all)
}
/** The sweep visits one slot for every quarter of the laps, or one block for every quarter of its own. */
const swept = (t) => Math.floor(t / ((S.laps >> 2) * (S.sums ? 2 : 1)))
export const lastSwept = (next) => swept(next)
export const firstSwept = (t, next) => Math.max(swept(t) + 1, swept(next) - (S.sums ? RING / 2 : RING) + 1)
