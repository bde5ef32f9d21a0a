/** Policies in the memory of this process: for tests, and for policies that the program itself keeps. */
import type { SyncConfigStore } from './config-store.js'
import { type Listed, type RawDocument, SyncDocumentStore } from './document-store.js'
import { checkPolicy, documentOf, type Policy, type PolicyDocument } from './policy.js'
import { checkPolicyKey, countKeys } from './policy-keys.js'
import { byUtf8 } from './utf8-order.js'

export type * from './store-types.js'

/**
 * Creates a store in memory.
 * @param policies policies to begin with, by their keys
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_POLICY`, `ERR_MILLRACE_INVALID_KEY`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { memoryConfig } from 'millrace/config/memory'
 *
 * const config = memoryConfig({ 'plan:pro:*': { limit: 1000, window: '1m' } })
 * const limiter = createLimiter({ config, default: { limit: 100, window: '1m' } })
 * console.log(limiter.check('plan:pro:alice').limit) // 1000
 * ```
 */
export function memoryConfig(policies: Readonly<Record<string, Policy>> = {}): SyncConfigStore {
  return new MemoryConfig(policies)
}

class MemoryConfig extends SyncDocumentStore {
  readonly kind = 'memory'
  readonly watchDelayMs = 0
  readonly #documents = new Map<string, RawDocument>()

  constructor(policies: Readonly<Record<string, Policy>>) {
    super()
    for (const [key, policy] of Object.entries(policies)) {
      checkPolicyKey(key)
      checkPolicy(policy)
      this.#set(key, documentOf(policy, 1))
    }
  }

  #set(key: string, document: PolicyDocument): void {
    const own = JSON.parse(JSON.stringify(document)) // the caller may change its object later
    this.#documents.set(key, { document: own, token: own })
  }

  protected readNow(keys: readonly string[]): readonly (RawDocument | undefined)[] {
    return keys.map((key) => this.#documents.get(key))
  }

  protected async replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    if (this.#documents.get(key)?.token !== expected?.token) return false
    if (next === undefined) this.#documents.delete(key)
    else this.#set(key, next)
    this.tell({ keys: [key] })
    return true
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    const keys = [...this.#documents.keys()]
      .filter((key) => key.startsWith(prefix) && (after === undefined || byUtf8(key, after) > 0))
      .sort(byUtf8)
    return keys.slice(0, limit).map((key) => ({ key, ...this.#documents.get(key)! }))
  }

  protected async countDocuments(prefix: string): Promise<number> {
    return countKeys(this.#documents.keys(), prefix)
  }

  protected startWatch(): void {}

  protected stopWatch(): void {}

  protected async end(): Promise<void> {
    this.#documents.clear()
  }
}
