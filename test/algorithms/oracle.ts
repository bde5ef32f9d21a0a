/** An exact sliding log: every admission with its moment and cost. What the limiter's promises are judged by. */
export class ExactLog {
  readonly #entries: { at: number; cost: number }[] = []

  add(at: number, cost: number): void {
    this.#entries.push({ at, cost })
  }

  /** Units in (at - windowMs, at]: what happened exactly a window ago is out. */
  used(at: number, windowMs: number): number {
    let used = 0
    for (let i = this.#entries.length - 1; i >= 0 && this.#entries[i]!.at > at - windowMs; i--) {
      used += this.#entries[i]!.cost
    }
    return used
  }
}

/** The same numbers from the same seed, anywhere: Mulberry32 by T. Ettinger. */
export function random(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
