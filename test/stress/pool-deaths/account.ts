/** A request on one key and its result. */
export interface Entry {
  readonly kind: 'check' | 'refund'
  readonly cost: number
  /** Whether the request's worker died, so that its effect is unknown. */
  isLost: boolean
  /** For a check: whether it was admitted. */
  isAllowed: boolean
  /** For a check: its `remaining`, if requested. */
  remaining: number | undefined
  /** For a refund: the units refunded. */
  refunded: number
}

/**
 * The requests of one key, in a window that does not end. The pool decides them in request order, so each
 * result must follow from the earlier ones. A lost request may or may not have had its effect.
 */
export class Account {
  readonly #entries: Entry[] = []

  add(kind: Entry['kind'], cost: number): Entry {
    const entry: Entry = { kind, cost, isLost: false, isAllowed: false, remaining: undefined, refunded: 0 }
    this.#entries.push(entry)
    return entry
  }

  get length(): number {
    return this.#entries.length
  }

  /** The least and the most units that a rule counts at the end which refuses nothing by itself. */
  bounds(): [least: number, most: number] {
    let [least, most] = [0, 0]
    for (const { kind, cost, isLost, isAllowed, refunded } of this.#entries) {
      if (kind === 'refund') {
        least -= isLost ? cost : refunded
        most -= isLost ? 0 : refunded
      } else if (isLost) most += cost
      else if (isAllowed) {
        least += cost
        most += cost
      }
    }
    return [Math.max(0, least), most]
  }

  /** All contradictions between the results, and with the key's usage at the end. */
  complaints(limit: number, usage: number): string[] {
    const found: string[] = []
    // The least and the most that may be charged so far. It may exceed the limit: a thread charges before it
    // admits, and if it dies in between, the charge remains without an admission.
    let least = 0
    let most = 0
    /** Units of reported admissions, less refunds. */
    let admitted = 0
    // A thread that dies in a refund, between removing units and clearing the mark that the key is full,
    // leaves the key refused until the granule ends (never, here) or another refund clears the mark: see
    // `test/algorithms/interrupted-charges.test.ts`.
    let mayBeMarkedFull = false
    this.#entries.forEach((entry, i) => {
      const complain = (problem: string) =>
        found.push(
          `${problem} at ${i} of ${this.#entries.length}: ${least} to ${most}, ${JSON.stringify(entry)}`,
        )
      const { kind, cost, isLost, isAllowed, remaining, refunded } = entry
      if (kind === 'refund') {
        if (!isLost && refunded !== cost) complain('refunded in part')
        mayBeMarkedFull = isLost
        admitted -= cost
        least = Math.max(0, least - (isLost ? cost : refunded))
        most -= isLost ? 0 : refunded
        return
      }
      if (isLost) {
        most += cost
        return
      }
      if (isAllowed) {
        admitted += cost
        least += cost
        most += cost
        if (admitted > limit) complain(`over the limit with ${admitted}`)
      } else if (most + cost <= limit && !mayBeMarkedFull) complain('refused below the limit')
      if (remaining === undefined) return
      const charged = limit - remaining
      if (charged < least && remaining > 0) complain('a charge is missing')
      if (charged > most) complain('charged twice')
      least = Math.max(least, charged)
      if (remaining > 0) most = charged
    })
    if (usage < least) found.push(`${usage} charged at the end, expected at least ${least}`)
    if (usage > most) found.push(`${usage} charged at the end, expected at most ${most}`)
    return found
  }
}
