// The store in the model of leases: what the script on Redis does with one message of a node, or of a strict caller.
//
// The value of a rule: units by granule, and a record of each node: the number of its last message, the units that it
// holds, those that it has spent since it was created, and when its lease ends. A unit counts while its granule is no
// more than a window older than this one; held units count until a window after the end of the lease, because the node
// may have spent them at its last moment.
import { S } from './settings.mjs'

/** The rules of one key on one server. `lose` and `remember` are what a loss of data does. */
export class Server {
  #values

  constructor() {
    this.#values = S.rules.map(() => undefined)
    this.trips = 0
  }

  /** All values are lost. */
  lose() {
    this.#values = S.rules.map(() => undefined)
  }

  /** What a replica has that has received no more. */
  copy() {
    return structuredClone(this.#values)
  }

  /** That replica takes over. */
  remember(values) {
    this.#values = structuredClone(values)
  }

  /**
   * One message of a node: settles what it has spent, decides the requests that wait, and leases.
   * @returns undefined for a message that a later one has overtaken
   */
  message(now, { id, seq, rules, direct, wants }) {
    this.trips++
    const values = this.valuesAt(now)
    if (S.mistake !== 'old messages count' && values.some(({ nodes }) => seq <= (nodes.get(id)?.seq ?? 0)))
      return undefined
    this.#values = values
    for (const [r, value] of values.entries()) {
      const { held, spent, acked, ages } = rules[r]
      const known = value.nodes.get(id)
      const settled = S.mistake === 'spent since the last reply' ? acked : (known?.spent ?? acked)
      const told = S.mistake === 'held units of before a loss are lost' && !known ? 0 : held
      value.nodes.set(id, { seq, held: told, spent, endMs: known?.endMs ?? now })
      const fresh = Math.max(0, spent - settled)
      settle(value, S.rules[r], now, fresh, ages)
    }
    const isBlocked = values.some(({ untilMs }) => untilMs > now)
    const admitted = direct.map((cost) => charge(values, now, cost))
    const leased = wants > 0 && !isBlocked ? this.#lease(values, now, id, wants, rules[0].least) : 0
    const refused = direct.filter((_, i) => !admitted[i])
    return {
      ...{ seq, leased, admitted, now },
      births: values.map(({ birth }) => birth),
      extends: (wants > 0 && !isBlocked) || S.mistake === 'a return extends the lease',
      active: activeAt(values[0], now, id),
      waitMs: refused.length > 0 ? waitAt(values, now, Math.min(...refused)) : 0,
    }
  }

  /** A decision of a caller that holds no leases. */
  strict(now, cost) {
    this.trips++
    const values = this.valuesAt(now)
    const isSeen = S.mistake !== 'a strict caller sees no leases'
    const seen = isSeen ? values : values.map((value) => ({ ...value, nodes: new Map() }))
    const isAdmitted = charge(seen, now, cost)
    if (isAdmitted) this.#values = values
    return isAdmitted
  }

  /** Charges that were made some time ago: of a value that was lost, or a penalty. */
  restore(now, r, aged) {
    const values = this.valuesAt(now)
    for (const { units, ageMs } of aged) {
      const isKept = put(values[r], S.rules[r], now, now - ageMs, units)
      if (isKept) this.#values[r] = values[r]
    }
    return values[r].birth
  }

  block(now, ms) {
    this.#values = this.valuesAt(now)
    for (const value of this.#values) value.untilMs = now + ms
  }

  unblock() {
    for (const value of this.#values) if (value !== undefined) value.untilMs = 0
  }

  /** Nodes may still spend what they hold, so that counts on. */
  clear() {
    this.unblock()
    for (const value of this.#values) value?.sums.clear()
  }

  /** Of each rule, of the oldest units. What nodes hold is not charged. */
  refund(now, units) {
    for (const { sums } of this.valuesAt(now)) {
      let left = units
      for (const granule of [...sums.keys()].sort((a, b) => a - b)) {
        const given = Math.min(left, sums.get(granule))
        left -= given
        if (given === sums.get(granule)) sums.delete(granule)
        else sums.set(granule, sums.get(granule) - given)
      }
    }
  }

  /** The value of each rule, without what does not count any more. A value is born by what is written to it first. */
  valuesAt(now) {
    return S.rules.map((rule, r) => {
      const value = this.#values[r] ?? { birth: now, untilMs: 0, sums: new Map(), nodes: new Map() }
      const oldest = oldestOf(rule, now)
      for (const granule of value.sums.keys()) if (granule < oldest) value.sums.delete(granule)
      for (const [id, { endMs }] of value.nodes) {
        const isGone =
          S.mistake === 'a record ends with its lease' ? endMs < now : granuleOf(rule, endMs) < oldest
        if (isGone) value.nodes.delete(id)
      }
      return value
    })
  }

  #lease(values, now, id, wants, least) {
    const shares = values.map((value, r) => {
      const free = freeOf(value, S.rules[r])
      return Math.min(wants, free, Math.max(least, Math.floor(free / (2 * activeAt(value, now, id)))))
    })
    const units = Math.max(0, S.mistake === 'leases by the first rule' ? shares[0] : Math.min(...shares))
    for (const { nodes } of values) {
      const own = nodes.get(id)
      own.held += units
      own.endMs = Math.max(own.endMs, now + S.leaseMs)
    }
    return units
  }
}

const granuleOf = ({ windowMs, parts }, ms) => Math.floor((ms * parts) / windowMs)

/** The oldest granule that counts. */
const oldestOf = (rule, now) => granuleOf(rule, now) - rule.parts

/** When the units of a granule have left. */
export const leaveAt = ({ windowMs, parts }, granule) => Math.ceil(((granule + parts + 1) * windowMs) / parts)

/** Charges units as of a time, if they count still. */
function put({ sums }, rule, now, ms, units) {
  const granule = granuleOf(rule, ms)
  if (units === 0 || granule < oldestOf(rule, now)) return false
  sums.set(granule, (sums.get(granule) ?? 0) + units)
  return true
}

/** Fresh units, by the ages of those that were spent last: what is older in the list was settled before. */
function settle(value, rule, now, fresh, ages) {
  let settledBefore = ages.reduce((sum, { units }) => sum + units, 0) - fresh
  if (S.mistake === 'ages from the oldest') settledBefore = 0
  let left = fresh
  for (const { units, ageMs } of ages) {
    const skipped = Math.min(units, Math.max(0, settledBefore))
    settledBefore -= skipped
    const own = Math.min(left, units - skipped)
    left -= own
    put(value, rule, now, now - ageMs, own)
  }
  put(value, rule, now, now, left)
}

export function freeOf({ sums, nodes }, { limit }) {
  let free = limit
  for (const units of sums.values()) free -= units
  for (const { held } of nodes.values()) free -= held
  return free
}

/** All rules, or none. */
function charge(values, now, cost) {
  if (values.some((value, r) => value.untilMs > now || freeOf(value, S.rules[r]) < cost)) return false
  for (const [r, value] of values.entries()) put(value, S.rules[r], now, now, cost)
  return true
}

function activeAt({ nodes }, now, id) {
  let active = 0
  for (const [other, { endMs }] of nodes) if (other === id || endMs >= now) active++
  return Math.max(1, active)
}

/** When units leave, a lease ends, or a block. Never longer than until there is room. */
function waitAt(values, now, cost) {
  let wait = 1
  for (const [r, value] of values.entries()) {
    const rule = S.rules[r]
    wait = Math.max(wait, value.untilMs - now)
    if (freeOf(value, rule) >= cost) continue
    let first = Number.POSITIVE_INFINITY
    for (const granule of value.sums.keys()) first = Math.min(first, leaveAt(rule, granule) - now)
    for (const { held, endMs } of value.nodes.values())
      if (held > 0) first = Math.min(first, Math.max(Math.ceil(rule.windowMs / rule.parts), endMs - now))
    if (Number.isFinite(first)) wait = Math.max(wait, first)
  }
  return wait
}
