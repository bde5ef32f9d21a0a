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
  PAST = 8,
  PAST_UNTIL = 9,
  CARRIED = 10,
  CARRIED_TICK = 11,
  BUCKETS = 12
export const CLOCK = 0

/** The scenario and the mistake being explored, granules in a window, buckets in a ring, words in a way. */
export let S, broken, N, RING, WAY
/** The record by which the running thread decides, and the memory that has the records (`records.mjs`). */
export let VIEW = 0
let memory
export const takeView = (op, m) => {
  VIEW = op.record ?? 0
  memory = m
  if (S.records) N = granulesOf(VIEW)
}
export const setUp = (scenario, mistake) => {
  S = scenario
  broken = mistake
  N = S.sums ? 3 : 1
  RING = S.sums && broken !== 'ring without a spare span' ? ringFor(S, N) : (S.longest ?? N) + 1
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
export const tickOf = (now, record = VIEW) =>
  S.records
    ? Math.floor(now / memory[recordAt(record, GRANULE)]) + memory[recordAt(record, SHIFT)]
    : Math.floor(now / S.sub)

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
export const limitOf = (key) => (S.records ? memory[recordAt(VIEW, LIMIT)] : (S.limits?.[key] ?? S.limit))

// Records (`conversion.mjs`). They follow the ways: CURRENT, RECORDS_USED, then a few words for each record.
// HI = key | converting:1 | record:3.
export const GRANULE = 0,
  SHIFT = 1,
  LIMIT = 2,
  ORDER = 3,
  GRANULES = 4,
  ENDED = 5
export const CONVERTING = 8
const RECORD_WORDS = 6
export const currentAt = () => 1 + S.ways * WAY
export const usedAt = () => currentAt() + 1
export const recordAt = (record, word) => currentAt() + 2 + record * RECORD_WORDS + word
export const recordWords = () => (S.records ? 2 + S.records * RECORD_WORDS : 0)
/** The high half of a key's name in the running thread's record. */
export const hiOf = (key, record = VIEW) => (S.records ? key * 16 + record : key)
export const keyOf = (hi) => (S.records ? hi >> 4 : hi)
export const recordOf = (hi) => hi & 7
export const isConverting = (hi) => (hi & CONVERTING) !== 0
/** PAST and CARRIED: units, and the record of the conversion; PAST also how often it was replaced. */
export const noted = (record, units, version = 0) => ((version % S.epochs) << 7) | (record << 4) | units
export const notedRecord = (word) => (word >> 4) & 7
export const versionOf = (word) => word >> 7
export const memoryWord = (at) => memory[at]
/** The granules in a record's window. */
export const granulesOf = (record) => memory[recordAt(record, GRANULES)]
/** The length of its granules. */
export const granuleOf = (record) => memory[recordAt(record, GRANULE)]
/** When a tick of a record begins. */
export const beginOf = (tick, record) => (tick - memory[recordAt(record, SHIFT)]) * granuleOf(record)
/** Ticks of records wrap. In other scenarios they only rise. */
const modulus = () => S.laps * RING * 64
export const wrapped = (tick) => (S.records ? tick % modulus() : tick)
export const distance = (tick, earlier) =>
  S.records ? (tick - earlier + modulus()) % modulus() : tick - earlier
/** Whether `tick` is before `goal`: a distance of more than half the modulus is one that goes back. */
export const isBehind = (tick, goal) => {
  const behind = distance(goal, tick)
  return behind > 0 && (!S.records || behind <= modulus() / 2)
}
/**
 * Whether a cell's tick stays where it is at this reading (`Ring.sideOf`). A tick that no reading has reached
 * is one from before the ticks wrapped, unless it is of another record.
 */
export const stays = function* (w, t, now, record = VIEW) {
  const goal = tickOf(now, record)
  if (isBehind(t, goal)) return false
  if (!S.records || t === goal) return true
  if (broken !== 'side without record' && recordOf(yield load(w, HI)) !== record) return true
  return !isBehind(tickOf(yield clock, record), t)
}

// A move over many laps stops first at a tick whose laps no old count has.
export const hop = (t, goal) => {
  const all = S.laps * RING,
    reach = all >> 2,
    behind = distance(goal, t)
  return behind <= reach ? goal : wrapped(t + reach + all * Math.floor((behind - reach) / all))
}
/** The sweep visits one slot for every quarter of the laps, or one block for every quarter of its own. */
const swept = (t) => Math.floor(t / ((S.laps >> 2) * (S.sums ? 2 : 1)))
export const lastSwept = (next) => swept(next)
export const firstSwept = (t, next) => {
  const all = swept(next) - (S.sums ? RING / 2 : RING) + 1
  return next < t ? all : Math.max(swept(t) + 1, all)
}

/** Whether a way's HI is the key's, in the record that the thread decides by. */
export const isName = (hi, key) => (broken === 'record uncompared' ? keyOf(hi) === key : hi === hiOf(key))
export const isKeyOf = function* (w, v, key) {
  return state(v) === LIVE && (yield load(w, LO)) === key && isName(yield load(w, HI), key)
}
