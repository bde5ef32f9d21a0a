import { isUnderWay, limitOf, N, S } from './words.mjs'

// The oracle records each admission when it takes effect. It knows nothing of the protocol.
// An index into the oracle's array. The array ends with an entry for each key's block.
export const cell = (key, tick) => key * S.ticks + tick
// The units charged without a decision come next, in scenarios with a reservation that may cost more.
const penalty = (key, tick) => cell(S.keys, S.keys) + cell(key, tick)
export const usedIn = (o, key, tick) => o[cell(key, tick)] + (o[penalty(key, tick)] ?? 0)
export class Oracle {
  // backed by a plain array, so that it is part of the state
  constructor(a, threads, me) {
    this.a = a
    this.threads = threads
    this.me = me
  }
  /**
   * The running thread has committed a charge in way w, with stamp r. With several rules, all of them admit
   * when the last one commits.
   */
  commit(key, e, cost, w, r) {
    const t = this.threads[this.me]
    if (t.op.kind === 'penalize') this.a[penalty(key, e)] += cost
    else if (t.op.kind !== 'rules') this.admit(key, e, cost)
    else {
      t.parts = [...t.parts, { key, w, e, r, owed: t.owed, robbed: t.robbed }]
      if (t.op.rest.length > 0) return
      if (t.parts.length !== t.op.of) this.wrong = `admitted by ${t.parts.length} of ${t.op.of} rules`
      for (const part of t.parts) {
        t.owed = part.owed
        this.admit(part.key, part.e, cost)
      }
      t.parts = []
    }
  }
  admit(key, e, cost) {
    const t = this.threads[this.me]
    if (this.a[cell(S.keys, key)] > this.now) this.wrong = 'admitted while blocked'
    const owed = t.owed // the units that a refund took while the charge was pending
    const absorbed = Math.min(owed, cost)
    t.owed = 0
    this.a[cell(key, e)] += cost - absorbed
    const wide = S.smooth ? N : N + 1
    for (let last = e; last < e + wide; last++) {
      let s = 0
      for (let u = last; u > last - wide; u--) if (u >= 0) s += this.a[cell(key, u)]
      if (s > limitOf(key) && !S.evictLive) this.wrong = `over: ${s} in ${wide} ticks, limit ${limitOf(key)}`
    }
  }
  giveBack(key, e, cost) {
    const { robbed, op } = this.threads[this.me]
    if (robbed) this.wrong = 'given back after a refund by key'
    if (cost > op.most) this.wrong = `${cost} given back of ${op.most}`
    if (op.kind === 'take back') return // it was not admitted
    this.a[cell(key, e)] -= Math.min(cost, this.a[cell(key, e)])
  }
  /** Records that nothing was given back. */
  keeps(r) {
    if (S.gives && !this.threads[this.me].robbed && r !== 3)
      this.wrong = 'not given back, though no refund by key came'
  }
  refund(key, u, n) {
    // The refund may take the units of any charge in this bucket, admitted or not.
    this.threads.forEach((t, k) => {
      if (t.carried.e === u && t.carried.r !== undefined && t.op.key === key && k !== this.me)
        this.threads[k] = { ...t, robbed: 1 }
      else if (t.parts.some((part) => part.key === key && part.e === u)) {
        const parts = t.parts.map((part) =>
          part.key === key && part.e === u ? { ...part, robbed: 1 } : part,
        )
        this.threads[k] = { ...t, parts }
      }
    })
    // Units beyond those admitted came from pending charges: an admission of such a charge counts that much
    // less.
    let rest = this.takeUnits(key, u, n)
    this.threads.forEach((t, k) => {
      const parts = t.parts.map((part) => {
        if (part.key !== key || part.e !== u) return part
        const owed = Math.min(rest, t.op.cost - part.owed)
        rest -= owed
        return { ...part, owed: part.owed + owed }
      })
      if (parts.length > 0) t = this.threads[k] = { ...this.threads[k], parts }
      if (t.op.kind === 'rules' && t.op.key !== key) return
      if (rest === 0 || t.carried.e !== u || !isUnderWay(t.phase) || k === this.me) return
      const owed = Math.min(rest, t.op.cost - t.owed) // earlier refunds took `t.owed`
      rest -= owed
      this.threads[k] = { ...t, owed: t.owed + owed }
    })
  }
  /** Takes admitted units out of a bucket. Returns the number of those that it has not found. */
  takeUnits(key, u, n) {
    const c = cell(key, u)
    const own = Math.min(n, this.a[c])
    this.a[c] -= own
    return n - own
  }
  block(key, until) {
    this.a[cell(S.keys, key)] = until
  }
}
