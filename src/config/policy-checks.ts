// The functions that may refuse a policy before a store writes it.
import type { Policy } from './policy.js'

interface Check {
  readonly check: (policy: Policy) => void
  readonly failed: (policy: Policy) => void
}

/** The checks of one store. */
export class PolicyChecks {
  readonly #checks = new Set<Check>()

  /** @see ConfigStore.addCheck */
  add(check: (policy: Policy) => void, failed: (policy: Policy) => void = () => {}): () => void {
    const own = { check, failed } // the same function may check twice
    this.#checks.add(own)
    return () => void this.#checks.delete(own)
  }

  /**
   * Asks all checks. If one throws, those before it are told that the policy is not stored.
   * @returns tells all of them so; for a write that failed, to be called at most once
   */
  pass(policy: Policy): () => void {
    const passed: Check[] = []
    const tell = () => {
      for (const { failed } of passed) failed(policy)
    }
    try {
      for (const each of this.#checks) {
        each.check(policy)
        passed.push(each)
      }
    } catch (error) {
      tell()
      throw error
    }
    return tell
  }

  clear(): void {
    this.#checks.clear()
  }
}
