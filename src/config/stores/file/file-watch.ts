// Notices that a file has become another one, however that was done: written in place, renamed over, or by a symbolic
// link that has changed its target, as in a ConfigMap of Kubernetes.
import { type FSWatcher, realpathSync, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'

/** A file that was the same for so long has been written whole, as far as anybody can know. */
const REST_MS = 25
/** A file that never rests is read after so many of them. */
const MOST_RESTS = 3
/** How often to look at the file, as a file system may tell nothing, such as NFS. */
const POLL_MS = 1_000
/** The same, if its folder can't be watched. */
const BLIND_POLL_MS = 50
const UNKNOWN = ''

/** What tells one content of a file from another: who it is, and when it was written. */
function identityOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code) // ENOENT: no file is a state, too
  }
}

export class FileWatch {
  readonly #path: string
  readonly #onChange: () => void
  #watchers: FSWatcher[] = []
  #isBlind = false
  #isClosed = false
  /** The file as the owner knows it. */
  #known = UNKNOWN
  #settling: Promise<void> | undefined
  #isAwaited = false
  #rest: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined

  /** @param onChange reads the file; it must not throw */
  constructor(path: string, onChange: () => void) {
    this.#path = path
    this.#onChange = onChange
    this.#watchFolders()
    this.#pollLater()
  }

  /**
   * Calls `onChange` if the file has changed, once it rests.
   * @param isAwaited whether a caller waits for it: then it keeps the process alive
   */
  settle(isAwaited: boolean): Promise<void> {
    if (this.#settling === undefined && identityOf(this.#path) === this.#known) return Promise.resolve()
    if (isAwaited) {
      this.#isAwaited = true
      this.#rest?.ref()
    }
    this.#settling ??= this.#afterRest()
    return this.#settling
  }

  async #afterRest(): Promise<void> {
    let last = identityOf(this.#path)
    for (let rests = 0; rests < MOST_RESTS; rests++) {
      await new Promise<void>((resolve) => {
        this.#rest = setTimeout(resolve, REST_MS)
        if (!this.#isAwaited) this.#rest.unref()
      })
      const before = last
      last = identityOf(this.#path)
      if (last === before) break
    }
    this.#settling = undefined
    this.#isAwaited = false
    if (this.#isClosed) return
    this.#known = last
    this.#watchFolders() // a link may lead elsewhere now
    this.#onChange()
  }

  /** The owner has put this file there. Unless another one has come since, the owner knows it. */
  know({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): void {
    const identity = identityOf(this.#path)
    const [, now, length, written] = identity.split(':')
    const isOwn = now === String(ino) && length === String(size) && written === String(mtimeNs)
    this.#known = isOwn ? identity : UNKNOWN
  }

  /** The file is not what the owner knows, though it looks like it. */
  forget(): void {
    this.#known = UNKNOWN
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#poll)
    for (const watcher of this.#watchers) watcher.close()
  }

  #watchFolders(): void {
    const old = this.#watchers
    this.#isBlind = false
    this.#watchers = [...this.#folders()].flatMap((folder) => this.#watch(folder))
    for (const watcher of old) watcher.close()
  }

  #folders(): Set<string> {
    const folders = new Set([dirname(this.#path)])
    if (identityOf(this.#path).includes(':')) folders.add(dirname(realpathSync(this.#path)))
    return folders
  }

  /** Without a watcher (no such folder, too many watchers), looking at the file often does instead. */
  #watch(folder: string): FSWatcher[] {
    try {
      const watcher = watch(folder, { persistent: false }, () => void this.settle(false))
      watcher.on('error', () => {
        watcher.close()
        this.#isBlind = true
      })
      return [watcher]
    } catch {
      this.#isBlind = true
      return []
    }
  }

  #pollLater(): void {
    const act = () => {
      void this.settle(false)
      this.#pollLater()
    }
    this.#poll = setTimeout(act, this.#isBlind ? BLIND_POLL_MS : POLL_MS).unref()
  }
}
