// LMDB has no notifications. So each write adds the keys that it changes to a log, in the same transaction, and
// watchers read on from where they have been.
import type { Database } from 'lmdb'

/** The number of writes that the log holds. A watcher that has missed more knows only that something has changed. */
export const LOG_LENGTH = 10_000
/** A write of more keys is logged as one of any keys. */
export const MOST_LOGGED_KEYS = 64

/** Its value is the revision: the number of writes. The others are numbers of writes, with the keys that changed. */
const REVISION_KEY = 0

export interface Changes {
  readonly revision: number
  /** Undefined: any may have changed. */
  readonly keys: readonly string[] | undefined
}

export class ChangeLog {
  readonly #database: Database<unknown, number>

  constructor(database: Database<unknown, number>) {
    this.#database = database
  }

  get revision(): number {
    return (this.#database.get(REVISION_KEY) as number | undefined) ?? 0
  }

  /** Logs a write. Must be called in its transaction. */
  add(keys: readonly string[]): void {
    const revision = this.revision + 1
    void this.#database.put(REVISION_KEY, revision)
    void this.#database.put(revision, keys.length > MOST_LOGGED_KEYS ? null : keys)
    if (revision > LOG_LENGTH) void this.#database.remove(revision - LOG_LENGTH)
  }

  /** What has changed since a revision. */
  since(seen: number): Changes {
    const { revision } = this
    if (revision === seen) return { revision, keys: [] }
    const isLogged = revision > seen && revision - seen <= LOG_LENGTH // lower: an older copy was put in its place
    return { revision, keys: isLogged ? this.#keysIn(seen + 1, revision) : undefined }
  }

  #keysIn(first: number, last: number): string[] | undefined {
    const keys = new Set<string>()
    let expected = first
    for (const { key, value } of this.#database.getRange({ start: first, end: last + 1 })) {
      if (key !== expected++ || !Array.isArray(value)) return undefined
      for (const each of value) keys.add(each)
    }
    return expected === last + 1 ? [...keys] : undefined
  }
}
