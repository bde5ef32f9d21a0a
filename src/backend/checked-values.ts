import { invalid } from '../core/errors.js'
import type { Values } from '../values/values.js'

/** A store that others have written: what it answers is checked, and what it throws is a rejection. */
export class CheckedValues implements Values {
  readonly now?: () => Promise<number>
  readonly #values: Values

  constructor(values: Values) {
    this.#values = values
    if (values.now !== undefined) this.now = () => this.#now()
  }

  async read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const found: unknown = await this.#values.read(keys)
    if (!Array.isArray(found) || found.length !== keys.length)
      throw invalid('values.read', found, 'a promise of an array with a value for each key')
    return found.map((value: unknown) => {
      if (value === undefined || value === null) return undefined
      if (value instanceof Uint8Array) return value
      throw invalid('values.read', value, 'Uint8Arrays, and undefined for a key without a value')
    })
  }

  async swap(
    key: string,
    before: Uint8Array | undefined,
    after: Uint8Array,
    ttlMs: number,
  ): Promise<boolean> {
    const written: unknown = await this.#values.swap(key, before, after, ttlMs)
    if (typeof written === 'boolean') return written
    throw invalid('values.swap', written, 'a promise of true or false')
  }

  async #now(): Promise<number> {
    const now: unknown = await this.#values.now!()
    if (typeof now === 'number' && Number.isFinite(now) && now > 0) return now
    throw invalid('values.now', now, 'a promise of the milliseconds since 1970')
  }
}
