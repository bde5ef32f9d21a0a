import type { Listed } from './document-store.js'

/** Keeps the documents with the smallest keys of all that pass, in the order of the bytes of keys. */
export class Smallest {
  readonly #limit: number
  #kept: { readonly bytes: Buffer; readonly listed: Listed }[] = []
  /** Larger keys are not among the smallest. */
  #bound: Buffer | undefined

  constructor(limit: number) {
    this.#limit = limit
  }

  add(listed: Listed): void {
    const bytes = Buffer.from(listed.key)
    if (this.#bound !== undefined && Buffer.compare(bytes, this.#bound) >= 0) return
    this.#kept.push({ bytes, listed })
    if (this.#kept.length >= 2 * this.#limit) this.#cut()
  }

  get sorted(): readonly Listed[] {
    this.#cut()
    return this.#kept.map(({ listed }) => listed)
  }

  #cut(): void {
    this.#kept = this.#kept.sort((a, b) => Buffer.compare(a.bytes, b.bytes)).slice(0, this.#limit)
    if (this.#kept.length === this.#limit) this.#bound = this.#kept.at(-1)!.bytes
  }
}
