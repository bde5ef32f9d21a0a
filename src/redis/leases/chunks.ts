// How many units a node asks for, and how long a lease lasts.

/** How long the units of a lease are meant to last, and the least of them near the limit, as shares of the window. */
const [MEANT, LEAST] = [1 / 5, 1 / 20]
/** How long a lease lasts, as a share of the window; and the longest lease. */
const LEASE = 0.4
const LONGEST_MS = 3_600_000
/** Clocks may go wrong by this share. */
const MARGIN = 0.001
/** A lease of fewer units is not worth its message: the server decides such keys one by one. */
export const WORTH = 3
/** More is asked for before this time's stock is spent. */
const AHEAD_MS = 30

/** The times of the leases of one limiter, by the shortest of its windows. */
export interface Chunks {
  readonly windowMs: number
  /** By the server's clock, from when it gets the message. */
  readonly leaseMs: number
  /** By the node's clock, from when it sends the message. */
  readonly usableMs: number
  /** In which the units of a lease are meant to be spent. */
  readonly meantMs: number
  readonly leastMs: number
  /** After which what lies idle is given back. */
  readonly restMs: number
}

export function chunksOf(windowMs: number): Chunks {
  const leaseMs = Math.max(1, Math.floor(Math.min(windowMs * LEASE, LONGEST_MS)))
  const share = leaseMs / (windowMs * LEASE)
  const usableMs = leaseMs * (1 - MARGIN)
  const [meantMs, leastMs] = [windowMs * MEANT * share, windowMs * LEAST * share]
  return { windowMs, leaseMs, usableMs, meantMs, leastMs, restMs: leaseMs / 2 }
}

/** Ages are told a little too low: a unit may seem younger, and never older. */
export const safeAge = (ageMs: number): number => ageMs * (1 - MARGIN)

/** The rate at which a key's units are asked for, by this node. */
export class Rate {
  readonly #meantMs: number
  #units = 0
  #sinceMs: number
  #perMs = 0

  constructor(meantMs: number, nowMs: number, units: number) {
    this.#meantMs = meantMs
    this.#sinceMs = nowMs
    this.#perMs = units / meantMs
  }

  add(units: number, nowMs: number): void {
    this.#units += units
    if (nowMs - this.#sinceMs >= this.#meantMs / 2) this.settle(nowMs)
  }

  settle(nowMs: number): void {
    const past = nowMs - this.#sinceMs
    if (past < this.#meantMs / 2) return
    this.#perMs = (this.#units / past + this.#perMs) / 2
    this.#units = 0
    this.#sinceMs = nowMs
  }

  /** Units in so many milliseconds. */
  in(ms: number): number {
    return Math.ceil(this.#perMs * ms)
  }

  /** Whether a key that holds so many units should ask for more. */
  isLow(held: number): boolean {
    return held <= this.#perMs * AHEAD_MS
  }

  /** Whether a lease is worth its message. */
  get isWorth(): boolean {
    return this.#perMs * this.#meantMs >= WORTH
  }
}
