/** What was asked about one key, in the order of asking, and what came of each. */
export interface Entry {
  readonly kind: 'check' | 'refund'
  readonly cost: number
  /** Nobody knows whether it was done. */
  isLost: boolean
  /** Of a check. */
  isAllowed: boolean
  /** Of a check, where it was told. */
  remaining: number | undefined
  /** Units that a refund gave back. */
  refunded: number
}

/**
 * One key's account, in a window that never ends. Its answers were made one after another, in the order of asking: so each has
 * to follow from those before, but for what was lost, which was done or not.
 */
export class Account {
  readonly #entries: Entry[] = []

  ask(kind: Entry['kind'], cost: number): Entry {
    const entry: Entry = { kind, cost, isLost: false, isAllowed: false, remaining: undefined, refunded: 0 }
    this.#entries.push(entry)
    return entry
  }

  get length(): number {
    return this.#entries.length
  }

  /** All that is wrong with it, given what the key has been charged at the end. */
  complaints(limit: number, usage: number): string[] {
    const found: string[] = []
    // What may have been charged so far: at least, and at most. Beyond the limit, too: a thread charges before it admits, and
    // where it dies in between, the charge stays beside all that is admitted.
    let least = 0
    let most = 0
    /** What callers were told is theirs. */
    let admitted = 0
    // Who dies between taking a unit out and ending the note that the key is full leaves it refused until the granule is over,
    // which here is never, or until another refund ends the note (`test/algorithms/interrupted.test.ts` has that thread).
    let mayBeNotedFull = false
    this.#entries.forEach((entry, i) => {
      const complain = (what: string) =>
        found.push(
          `${what} at ${i} of ${this.#entries.length}: ${least} to ${most}, ${JSON.stringify(entry)}`,
        )
      const { kind, cost, isLost, isAllowed, remaining, refunded } = entry
      if (kind === 'refund') {
        if (!isLost && refunded !== cost) complain('not given back whole')
        mayBeNotedFull = isLost
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
      } else if (most + cost <= limit && !mayBeNotedFull) complain('refused without reason')
      if (remaining === undefined) return
      const charged = limit - remaining
      if (charged < least && remaining > 0) complain('a charge lost')
      if (charged > most) complain('charged twice')
      least = Math.max(least, charged)
      if (remaining > 0) most = charged
    })
    if (usage < least) found.push(`${usage} charged at the end, of at least ${least}`)
    if (usage > most) found.push(`${usage} charged at the end, of at most ${most}`)
    return found
  }
}
