// A node in the model of leases: it takes units in chunks and spends them by its own clock.
//
// What it does, it does at once: the caller passes the time of its clock, and hands on the messages.
import { S } from './settings.mjs'

/** How long the units of a chunk are meant to last, and how much of the wanted is least, as shares of the window. */
const [CHUNK, LEAST] = [1 / 5, 1 / 20]

/**
 * One incarnation of a node. `send(message)` hands a message to the network. `decided(request, allowed, at)`
 * tells a decision; `at` is undefined for one that the server has made, at the time that it says.
 */
export class Node {
  #send
  #decided
  #restore
  /** Requests that wait for the server. */
  #waiting = []
  #flight
  /** Of the mistake that takes its reply. */
  #lateFlight
  #endMs = Number.NEGATIVE_INFINITY
  /** Refused until then: requests of so many units, or more. */
  #refused = { untilMs: Number.NEGATIVE_INFINITY, units: 0 }
  #rate = { units: 0, sinceMs: undefined, perMs: 0 }
  #seq = 0

  constructor(id, { send, decided, restore }) {
    this.id = id
    this.#send = send
    this.#decided = decided
    this.#restore = restore
    this.rules = S.rules.map(() => ({ held: 0, spent: 0, acked: 0, ages: [], own: [], birth: undefined }))
  }

  get held() {
    return Math.min(...this.rules.map(({ held }) => held))
  }

  /** A request, which is decided now or waits. */
  ask(now, request) {
    this.#count(now, request.cost)
    this.#dropExpired(now)
    if (this.#spend(now, request)) {
      const isLow = this.held <= this.#rate.perMs * S.deadlineMs || now > this.#endMs - S.leaseMs * 0.3
      if (isLow && !this.#flight) this.#fetch(now)
    } else if (now < this.#refused.untilMs && request.cost >= this.#refused.units) {
      this.#decided(request, false)
    } else {
      this.#waiting.push(request)
      if (!this.#flight) this.#fetch(now)
    }
  }

  /** What lies idle goes back, and what was spent is settled. */
  rest(now) {
    if (this.#flight) return
    this.#dropExpired(now)
    const hasNews = this.rules.some(({ spent, acked, held }) => spent > acked || held > 0)
    const keeps = S.keeps ?? Math.ceil(this.#rate.perMs * S.leaseMs)
    for (const rule of this.rules) rule.held = Math.min(rule.held, keeps)
    if (hasNews) this.#message(now, 0)
  }

  /** The reply to the message with this number. One that comes after the deadline is void: see `late`. */
  receive(now, reply) {
    const flight = this.#flight
    if (flight?.seq !== reply.seq && S.mistake !== 'late replies count') return
    if (flight?.seq === reply.seq) this.#flight = undefined
    const sent = flight?.seq === reply.seq ? flight : this.#lateFlight
    if (sent === undefined) return
    if (reply.extends && (reply.leased > 0 || this.held > 0)) this.#endMs = endOf(sent.at, now)
    for (const [r, rule] of this.rules.entries()) {
      this.#noteValue(now, r, reply, sent)
      rule.held += reply.leased
    }
    if (S.mistake !== 'those that wait spend an ended lease') this.#dropExpired(now)
    this.#answer(now, reply, sent)
  }

  /** No reply has come in time: what was granted is void, and those that wait are refused. */
  late(seq) {
    if (this.#flight?.seq !== seq) return
    if (S.mistake === 'late replies count') this.#lateFlight = this.#flight
    this.#flight = undefined
    for (const request of this.#waiting.splice(0)) this.#decided(request, false)
  }

  #answer(now, { admitted, waitMs, now: at }, { requests }) {
    for (const [i, request] of requests.entries()) {
      const index = this.#waiting.indexOf(request)
      if (index < 0) continue // refused by the deadline
      this.#waiting.splice(index, 1)
      this.#decided(request, admitted[i], at)
    }
    if (waitMs > 0) {
      const refused = requests.filter((_, i) => !admitted[i]).map(({ cost }) => cost)
      this.#refused = { untilMs: now + waitMs, units: Math.min(...refused) }
    }
    const later = this.#waiting.splice(0)
    for (const request of later) if (!this.#spend(now, request)) this.#waiting.push(request)
    if (this.#waiting.length > 0) this.#fetch(now)
  }

  /** Notes that the message is settled, and in which life of the value: another one has lost what was charged before. */
  #noteValue(now, r, { births, admitted }, { spent, requests }) {
    const rule = this.rules[r]
    const settled = Math.max(0, spent[r] - rule.acked)
    rule.acked = Math.max(rule.acked, spent[r])
    const lost = rule.birth !== undefined && rule.birth !== births[r] ? rule.own : []
    if (lost.length > 0) rule.own = []
    rule.birth = births[r]
    let left = settled
    while (left > 0) {
      const [oldest] = rule.ages
      const units = Math.min(left, oldest.units)
      rule.own.push({ at: oldest.at, units })
      oldest.units -= units
      left -= units
      if (oldest.units === 0) rule.ages.shift()
    }
    const direct = requests.reduce((sum, { cost }, i) => sum + (admitted[i] ? cost : 0), 0)
    if (direct > 0) rule.own.push({ at: now, units: direct })
    const { windowMs, parts } = S.rules[r]
    const kept = ({ at }) => now - at < windowMs + windowMs / parts
    rule.own = rule.own.filter(kept)
    const again = lost.filter(kept)
    if (again.length > 0 && S.mistake !== 'nothing is restored') {
      rule.own.push(...again)
      const aged = again.map(({ at, units }) => ({ units, ageMs: (now - at) * (1 - S.margin) }))
      this.#restore(r, aged)
    }
  }

  /** Takes the units from each rule, or from none. */
  #spend(now, request) {
    const { cost } = request
    if (this.held < cost && !(S.mistake === 'the rest of a lease is enough' && this.held > 0)) return false
    for (const [r, rule] of this.rules.entries()) {
      rule.held = Math.max(0, rule.held - cost)
      rule.spent += cost
      const { windowMs, parts } = S.rules[r]
      const last = rule.ages.at(-1)
      if (last !== undefined && now - last.first < windowMs / parts / 4) {
        last.units += cost
        if (S.mistake !== 'the age of the first') last.at = now
      } else rule.ages.push({ at: now, first: now, units: cost })
    }
    this.#decided(request, true)
    return true
  }

  #dropExpired(now) {
    if (S.mistake === 'leases never end' || now <= this.#endMs) return
    for (const rule of this.rules) {
      if (S.mistake === 'expired units are sent') rule.expired = Math.max(rule.expired ?? 0, rule.held)
      rule.held = 0
    }
  }

  #fetch(now) {
    this.#message(now, S.wants ?? Math.ceil(this.#rate.perMs * S.rules[0].windowMs * CHUNK))
  }

  #message(now, wants) {
    this.#dropExpired(now)
    const requests = [...this.#waiting]
    // The server decides these by all that is free, so by what this node holds, too.
    const returns = requests.length > 0
    for (const rule of this.rules) {
      if (rule.expired) {
        rule.held += rule.expired
        rule.expired = 0
      } else if (returns) rule.held = 0
    }
    const seq = ++this.#seq
    this.#flight = { seq, at: now, requests, spent: this.rules.map(({ spent }) => spent) }
    this.#send({
      ...{ id: this.id, seq, wants },
      direct: requests.map(({ cost }) => cost),
      rules: this.rules.map(({ held, spent, acked, ages }) => ({
        ...{
          held,
          spent,
          acked,
          least: S.wants ?? Math.ceil(this.#rate.perMs * S.rules[0].windowMs * LEAST),
        },
        ages: ages.map(({ at, units }) => ({ units, ageMs: Math.max(0, (now - at) * (1 - S.margin)) })),
      })),
    })
  }

  #count(now, cost) {
    const rate = this.#rate
    rate.sinceMs ??= now
    rate.units += cost
    const past = now - rate.sinceMs
    if (past < S.rules[0].windowMs * CHUNK * 0.5) return
    const own = rate.units / past
    this.#rate = { units: 0, sinceMs: now, perMs: rate.perMs === 0 ? own : (own + rate.perMs) / 2 }
  }
}

/** From sending, not from the reply: the server's time of the lease begins in between. */
function endOf(sentMs, receivedMs) {
  if (S.mistake === 'from the reply') return receivedMs + S.leaseMs
  if (S.mistake === 'no margin for drift') return sentMs + S.leaseMs
  return sentMs + S.leaseMs * (1 - S.margin)
}
