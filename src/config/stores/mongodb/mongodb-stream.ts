// Changes by a change stream of a replica set.
import type { ChangeStream, ChangeStreamDocument } from 'mongodb'
import type { ConfigChange } from '../../config-store.js'
import { type MongoServer, type PolicyRecord, within } from './mongodb-server.js'
import type { ChangeSource } from './mongodb-source.js'

/** How long the server waits for a change before it answers that there is none. Changes come at once. */
const AWAIT_MS = 1_000
/** What is needed of a change. `_id`, from where the driver resumes, is always there. */
const FIELDS = [{ $project: { operationType: 1, documentKey: 1 } }]

type Stream = ChangeStream<PolicyRecord, ChangeStreamDocument<PolicyRecord>>
type Answer = ChangeStreamDocument<PolicyRecord> | null

/**
 * The driver resumes a stream that was cut off where it was. If it can't within the deadline, or the server does not
 * have this part of its history any more, `next` rejects, and the watch begins again.
 */
export class StreamSource implements ChangeSource {
  readonly #server: MongoServer
  #stream: Stream | undefined
  /** The first answer, which is under way when the stream has been opened. */
  #first: Promise<Answer> | undefined
  #silence: NodeJS.Timeout | undefined
  #isEnded = false

  constructor(server: MongoServer) {
    this.#server = server
  }

  async open(): Promise<void> {
    const { policies } = await this.#server.collections()
    if (this.#isEnded) return
    const stream: Stream = policies.watch(FIELDS, { maxAwaitTimeMS: AWAIT_MS })
    this.#stream = stream
    // Each answer has changes, or a token by which the stream is resumed later.
    const isOpen = new Promise<void>((resolve) => {
      stream.on('resumeTokenChanged', () => {
        this.#silence?.refresh()
        resolve()
      })
    })
    const first = this.#tryNext()
    first.catch(() => {}) // `next` rejects by it, or `open` does
    this.#first = first
    await Promise.race([isOpen, first])
  }

  async #tryNext(): Promise<Answer> {
    const ms = AWAIT_MS + this.#server.deadlineMs
    try {
      return await within(ms, this.#stream!.tryNext(), (timer) => {
        this.#silence = timer
      })
    } finally {
      this.#silence = undefined
    }
  }

  async next(): Promise<ConfigChange | undefined> {
    const keys = new Set<string>()
    do {
      const change = await (this.#first ?? this.#tryNext())
      this.#first = undefined
      if (change === null) break
      const key = keyOf(change)
      if (key === undefined) {
        if (change.operationType === 'invalidate') await this.#reopen()
        return {}
      }
      keys.add(key)
    } while (this.#stream!.bufferedCount() > 0)
    return keys.size === 0 ? undefined : { keys: [...keys] }
  }

  /** The collection was dropped or renamed: the stream has ended, one on a new collection begins. */
  async #reopen(): Promise<void> {
    await this.#close()
    await this.open()
  }

  async end(): Promise<void> {
    this.#isEnded = true
    await this.#close()
  }

  async #close(): Promise<void> {
    try {
      await within(this.#server.deadlineMs, this.#stream?.close() ?? Promise.resolve())
    } catch {} // the server forgets the cursor by itself
  }
}

/** The key of a change of one document; undefined for one of the whole collection. */
function keyOf(change: ChangeStreamDocument<PolicyRecord>): string | undefined {
  switch (change.operationType) {
    case 'insert':
    case 'update':
    case 'replace':
    case 'delete':
      return String(change.documentKey._id)
    default:
      return undefined
  }
}
