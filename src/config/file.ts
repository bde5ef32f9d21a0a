/** Policies in a file of JSON or YAML, which people edit: watched, and swapped whole. */
import { resolve } from 'node:path'
import { invalid, MillraceError } from '../core/errors.js'
import { refuseUnknown } from '../core/option-names.js'
import type { SyncConfigStore } from './config-store.js'
import { type Listed, type PolicyEntry, type RawDocument, SyncDocumentStore } from './document-store.js'
import type { PolicyDocument } from './policy.js'
import { countKeys } from './policy-keys.js'
import { FileWatch } from './stores/file/file-watch.js'
import { formatOf } from './stores/file/format-of.js'
import { differing, documentsIn, isSame, readText } from './stores/file/policy-file.js'
import { replaceFile } from './stores/file/replace-file.js'
import type { TextFormat } from './stores/file/text-format.js'
import { byUtf8 } from './utf8-order.js'

export type * from './store-types.js'

/** Options of {@link fileConfig}. */
export interface FileConfigOptions {
  /**
   * The path of the file. Its extension says what it has: `.json`, or `.yaml` or `.yml`, for which the package `yaml`
   * must be installed.
   */
  path: string
}

/**
 * Opens a file of policies by their keys:
 *
 * ```json
 * {
 *   "user:*": { "limit": 5, "window": "1s" },
 *   "user:241531": { "time_window_sec": 1, "capacity": 5 }
 * }
 * ```
 *
 * The policies are held in memory. A change of the file is there within 100 ms: the file is read once it has been the
 * same for 25 ms. It is taken whole or not at all. With an error in it the store keeps the policies from before, and
 * tells `watch` `{ error }` with the file's name, the line and the column, until it is mended; so too if it is deleted.
 * An empty file is an error; one without policies has `{}`.
 *
 * The whole file is parsed on the calling thread when it changes. For 100,000 policies that takes a fraction of a second
 * with JSON, but several seconds with YAML: keep YAML to some thousands, or use another store.
 *
 * `put` and `delete` write another file beside it, wait until it is on disk, and rename it over. They keep the mode,
 * the order and the rest of the text, and in YAML the comments. They reject with the error of a file that has one.
 * Those that wait are written together. No lock is taken: just before the rename the file is compared with what was
 * read, and if it is another, the change is made again on that. Between this comparison and the rename are some
 * microseconds (in a file of megabytes: milliseconds). If another process, or an editor, writes in them, its change is
 * lost. So let one process at a time write, or choose a store that several may write to, such as
 * `millrace/config/lmdb`. A process that dies in the middle may leave a file `.NAME.PID.*.tmp`.
 *
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`; `ERR_MILLRACE_CONFIG_STORE` for a file that can't be read or
 * parsed, or if `yaml` is missing; `ERR_MILLRACE_INVALID_POLICY` or `ERR_MILLRACE_INVALID_KEY` for a policy in it
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { fileConfig } from 'millrace/config/file'
 *
 * const config = fileConfig({ path: 'limits.yaml' })
 * config.watch(({ keys, error }) => console.log(error ? error.message : `changed: ${keys}`))
 * const limiter = createLimiter({ config, default: { limit: 100, window: '1m' } })
 * ```
 */
export function fileConfig(options: FileConfigOptions): SyncConfigStore {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ path }')
  refuseUnknown(options, ['path'], (name, expected) => invalid('options', name, expected))
  const { path } = options
  const format = formatOf(path)
  return new FileConfig(resolve(path), format)
}

/** A change that waits to be written. */
interface Change {
  readonly key: string
  readonly expected: RawDocument | undefined
  readonly next: PolicyDocument | undefined
  settle(isDone: boolean): void
  fail(error: unknown): void
}

class FileConfig extends SyncDocumentStore {
  readonly kind = 'file'
  readonly watchDelayMs = 100
  readonly #path: string
  readonly #format: TextFormat
  readonly #watch: FileWatch
  #text: string
  #documents: Map<string, unknown>
  /** What is wrong with the present file. */
  #fault: MillraceError | undefined
  #sortedKeys: string[] | undefined
  #waiting: Change[] = []
  #writing: Promise<void> | undefined

  constructor(path: string, format: TextFormat) {
    super()
    this.#path = path
    this.#format = format
    this.#text = readText(path)
    this.#documents = documentsIn(this.#text, path, format, new Map())
    // It reads the file again at the first look: nobody knows whether that was written before or after the text was read.
    this.#watch = new FileWatch(path, () => this.#load())
    void this.#watch.settle(false)
  }

  #load(): void {
    let text: string
    let documents: Map<string, unknown>
    try {
      text = readText(this.#path)
      if (text === this.#text && this.#fault === undefined) return
      documents = documentsIn(text, this.#path, this.#format, this.#documents)
    } catch (error) {
      this.#fault = error instanceof MillraceError ? error : faultOf(this.#path, error)
      this.tell({ error: this.#fault })
      return
    }
    const keys = differing(this.#documents, documents)
    this.#text = text
    this.#documents = documents
    this.#fault = undefined
    this.#sortedKeys = undefined
    this.tell({ keys })
  }

  /** Others have a change of this process at once, and this one those of others: it looks at the file first. */
  protected override async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    await this.#watch.settle(true)
    this.checkOpen()
    return this.readNow(keys)
  }

  protected readNow(keys: readonly string[]): readonly (RawDocument | undefined)[] {
    return keys.map((key) => {
      const document = this.#documents.get(key)
      return document === undefined ? undefined : { document, token: document }
    })
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    await this.#watch.settle(true)
    this.checkOpen()
    this.#sortedKeys ??= [...this.#documents.keys()].sort(byUtf8)
    const keys = this.#sortedKeys
    const from = Math.max(
      firstWhere(keys, (key) => byUtf8(key, prefix) >= 0),
      after === undefined ? 0 : firstWhere(keys, (key) => byUtf8(key, after) > 0),
    )
    return keys
      .slice(from, from + limit)
      .filter((key) => key.startsWith(prefix))
      .map((key) => ({ key, document: this.#documents.get(key), token: undefined }))
  }

  protected async countDocuments(prefix: string): Promise<number> {
    await this.#watch.settle(true)
    this.checkOpen()
    return countKeys(this.#documents.keys(), prefix)
  }

  protected replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    return new Promise((settle, fail) => {
      this.#waiting.push({ key, expected, next: next && JSON.parse(JSON.stringify(next)), settle, fail })
      this.#writing ??= this.#writeAll()
    })
  }

  /** All at once: what is put in the same turn is written together. */
  protected override async putAll(entries: readonly PolicyEntry[]): Promise<void> {
    await Promise.all(entries.map(({ key, policy }) => this.put(key, policy)))
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await Promise.resolve() // those of the same turn are written together
      const changes = this.#waiting
      this.#waiting = []
      try {
        await this.#write(changes)
      } catch (error) {
        for (const { fail } of changes) fail(error)
      }
    }
    this.#writing = undefined
  }

  async #write(changes: readonly Change[]): Promise<void> {
    for (;;) {
      await this.#watch.settle(true)
      if (this.#fault !== undefined) throw this.#fault
      const text = this.#text
      const next = new Map<string, PolicyDocument | undefined>()
      const made = changes.filter((change) => {
        const isMade =
          !next.has(change.key) && isSame(this.#documents.get(change.key), change.expected?.document)
        if (isMade) next.set(change.key, change.next)
        return isMade
      })
      const isReplaced = made.length === 0 || (await this.#replaceText(text, next))
      if (isReplaced) {
        for (const change of changes) change.settle(made.includes(change))
        return
      }
      this.#watch.forget()
    }
  }

  async #replaceText(text: string, next: ReadonlyMap<string, PolicyDocument | undefined>): Promise<boolean> {
    const changed = this.#format.edit(text, next)
    const documents = this.#documents // of this text, also if another one is loaded meanwhile
    const isReplaced = await replaceFile(this.#path, text, changed, (stats) => {
      this.#watch.know(stats)
      this.#text = changed
      for (const [key, document] of next) {
        if (document === undefined) documents.delete(key)
        else documents.set(key, document)
      }
      this.#documents = documents
      this.#sortedKeys = undefined
      this.#fault = undefined
    })
    if (isReplaced) this.tell({ keys: [...next.keys()] })
    return isReplaced
  }

  protected startWatch(): void {} // the file is watched from the beginning

  protected stopWatch(): void {}

  protected async end(): Promise<void> {
    await this.#writing
    this.#watch.close()
    this.#documents.clear()
  }
}

function faultOf(path: string, cause: unknown): MillraceError {
  const message = cause instanceof Error ? cause.message : String(cause)
  return new MillraceError('ERR_MILLRACE_CONFIG_STORE', path, message, 'a file of policies', { cause })
}

/** The index of the first key that fulfils what all after it fulfil. */
function firstWhere(keys: readonly string[], isBehind: (key: string) => boolean): number {
  let [from, to] = [0, keys.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (isBehind(keys[middle]!)) to = middle
    else from = middle + 1
  }
  return from
}
