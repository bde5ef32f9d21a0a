/**
 * The visited states, each as a hash of 53 bits with the fewest preemptions by which it was reached. Among 50
 * million states, the odds that two share a hash are one in seven. The table is an open one of doubles: a Map
 * of the same size takes several times the memory.
 */
export class SeenStates {
  #keys = new Float64Array(1 << 12)
  #used = new Uint8Array(1 << 12)
  #size = 0

  /** Returns whether the state is new, or was reached only with more preemptions so far. */
  add(hash1: number, hash2: number, used: number): boolean {
    const key = 1 + (hash1 >>> 0) + (hash2 & 0x1fffff) * 2 ** 32
    const at = this.#find(key)
    if (this.#keys[at] === key) {
      if (this.#used[at]! <= used) return false
      this.#used[at] = used
      return true
    }
    this.#keys[at] = key
    this.#used[at] = used
    if (++this.#size > this.#keys.length / 2) this.#grow()
    return true
  }

  #find(key: number): number {
    const mask = this.#keys.length - 1
    let at = Math.imul(key % 4_294_967_291, 0x9e3779b1) & mask
    while (this.#keys[at] !== 0 && this.#keys[at] !== key) at = (at + 1) & mask
    return at
  }

  #grow(): void {
    const keys = this.#keys
    const used = this.#used
    this.#keys = new Float64Array(2 * keys.length)
    this.#used = new Uint8Array(2 * keys.length)
    for (let i = 0; i < keys.length; i++) {
      if (keys[i] === 0) continue
      const at = this.#find(keys[i]!)
      this.#keys[at] = keys[i]!
      this.#used[at] = used[i]!
    }
  }
}
