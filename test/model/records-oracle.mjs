// Judges what is admitted while a rule changes. It records units by the clock: those that an earlier record
// admitted count in windows of a later one at their own time. The time of a unit is its decision's tick, or
// that of the commit, if that is earlier than the tick's end.
import { Oracle } from './oracle.mjs'
import { beginOf, ENDED, granulesOf, LIMIT, memoryWord, ORDER, recordAt, S, tickOf } from './words.mjs'

/** Where the oracle's array has the order of the newest record that has admitted a key. */
export const newest = (key) => cellOf(S.keys, S.keys) + key
/** Units of a key at a time, by the record that admitted them. The first record's come where others have them all. */
const cellOf = (key, time, record = 0) =>
  (record === 0 ? 0 : S.keys * (S.ticks + 2) + (record - 1) * S.keys * S.ticks) + key * S.ticks + time
/** How many entries the oracle's array has. */
export const oracleWords = () => cellOf(0, 0, S.records)
const limitOfRecord = (record) => memoryWord(recordAt(record, LIMIT))
const orderOf = (record) => memoryWord(recordAt(record, ORDER))
const endOf = (tick, record) => beginOf(tick + 1, record) - 1
/** When the rule went on with another record. NaN: it has not. */
const endedAt = (record) => (memoryWord(recordAt(record, ENDED)) || NaN) - 1
/** Whether units of a time do not count by a record at a reading. */
const isGone = (time, now, record) => tickOf(time, record) < tickOf(now, record) - granulesOf(record)
/** Whether units of a time count neither by a record nor by the one that admitted them. */
const isLost = (time, now, record, by) => isGone(time, now, record) && isGone(time, now, by)

export class RecordsOracle extends Oracle {
  /** The running thread's record. */
  get record() {
    return this.threads[this.me].op.record
  }
  admit(key, e, cost) {
    const { a, record } = this
    const t = this.threads[this.me]
    if (a[cellOf(S.keys, key)] > this.now) this.wrong = 'admitted while blocked'
    const absorbed = Math.min(t.owed, cost)
    t.owed = 0
    const time = Math.min(this.now, endOf(e, record))
    a[cellOf(key, time, record)] += cost - absorbed
    a[newest(key)] = Math.max(a[newest(key)], orderOf(record))
    const judge = this.recordOfOrder(a[newest(key)])
    if (S.evictLive && !S.inherits) return
    const at = tickOf(time, judge)
    const n = granulesOf(judge)
    for (let last = at; last <= at + n; last++) {
      const sum = usedBetween(a, key, last - n, last, judge)
      if (sum > limitOfRecord(judge))
        this.wrong = `over: ${sum} in ${n + 1} ticks of record ${judge}, limit ${limitOfRecord(judge)}`
    }
    // A thread may stall before its commit, for longer than its window, while the rule changes.
    if (this.hasLeft(time, record)) a[cellOf(key, time, record)] -= cost - absorbed
  }
  /** Whether units of a time did not count any more, also by the record that admitted them, when a later one ended. */
  hasLeft(time, record) {
    for (let r = 0; r < S.records; r++)
      if (orderOf(r) >= orderOf(record) && isLost(time, endedAt(r), r, record)) return true
    return false
  }
  recordOfOrder(order) {
    for (let record = 0; record < S.records; record++) if (orderOf(record) === order) return record
  }
  /** The rule has changed: what counts neither by the record before nor by its own does not come back. */
  change(before) {
    for (let key = 1; key < S.keys; key++)
      for (let time = 0; time < S.ticks; time++)
        for (let record = 0; record < S.records; record++)
          if (isLost(time, this.now, before, record)) this.a[cellOf(key, time, record)] = 0
  }
  giveBack(key, e, cost) {
    const { op, robbed } = this.threads[this.me]
    if (robbed) this.wrong = 'given back after a refund by key'
    this.forget(key, cost, (tick) => tick === e, op.chargedBy)
  }
  /** Takes units out, the newest first. Returns the number of those that it has not found. */
  forget(key, cost, isOf, record = this.record) {
    let left = cost
    for (let time = S.ticks - 1; time >= 0; time--) {
      if (!isOf(tickOf(time, record))) continue
      for (let by = S.records - 1; by >= 0; by--) {
        const own = Math.min(left, this.a[cellOf(key, time, by)])
        this.a[cellOf(key, time, by)] -= own
        left -= own
      }
    }
    return left
  }
  /** A bucket may have units that an earlier record admitted: they were carried there. */
  takeUnits(key, u, n) {
    const left = this.forget(key, n, (tick) => tick === u)
    return left > 0 ? this.forget(key, left, (tick) => tick < u) : 0
  }
}

/** The units of a key in the ticks `from` to `to` of a record. */
export function usedBetween(o, key, from, to, record) {
  let sum = 0
  for (let time = 0; time < S.ticks; time++) {
    const tick = tickOf(time, record)
    if (tick < from || tick > to) continue
    for (let by = 0; by < S.records; by++) sum += o[cellOf(key, time, by)]
  }
  return sum
}
