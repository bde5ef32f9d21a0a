// A store by promises whose answers a test releases: the real ones are too fast or too slow to catch in the middle.
import { MillraceError } from 'millrace'
import type { ConfigListener, ConfigStore, StoredPolicy } from '#millrace/config/config-store.js'
import type { Policy } from '#millrace/config/policy.js'

interface Question {
  readonly keys: readonly string[]
  answer(found?: StoredPolicy): void
  fail(error: unknown): void
}

export class FakeStore implements ConfigStore {
  readonly kind = 'fake'
  readonly watchDelayMs = 0
  /** The reads without an answer. */
  readonly questions: Question[] = []
  readonly asked: (readonly string[])[] = []
  readonly listeners = new Set<ConfigListener>()
  readonly checks = new Set<(policy: Policy) => void>()

  find(keys: readonly string[]): Promise<StoredPolicy | undefined> {
    this.asked.push(keys)
    return new Promise((resolve, reject) => {
      this.questions.push({ keys, answer: resolve, fail: reject })
    })
  }

  /** Answers the oldest question, and lets those who wait for it go on. */
  async answer(found?: StoredPolicy): Promise<void> {
    this.questions.shift()!.answer(found)
    await turn()
  }

  async fail(error: unknown = down()): Promise<void> {
    this.questions.shift()!.fail(error)
    await turn()
  }

  watch(listener: ConfigListener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  addCheck(check: (policy: Policy) => void): () => void {
    this.checks.add(check)
    return () => void this.checks.delete(check)
  }

  tell(keys?: readonly string[]): void {
    for (const listener of this.listeners) listener(keys === undefined ? {} : { keys })
  }

  get(): never {
    throw new Error('not asked for')
  }
  put = this.get
  delete = this.get
  list = this.get

  async close(): Promise<void> {}
}

export const down = () => new MillraceError('ERR_MILLRACE_CONFIG_STORE', 'fake', 'down', 'a store that is up')

export const stored = (key: string, policy: Policy, version = 1): StoredPolicy => ({ key, policy, version })

/** Lets all promises that are settled go on. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
