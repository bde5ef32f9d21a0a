// What has changed, for change streams: events, their resume tokens, and cursors that wait for the next one.
import { EventEmitter, once } from 'node:events'
import { type Document, Long } from 'bson'
import { Refusal } from './refusal.js'

/** One change of a document, or of the whole collection. */
interface Event {
  readonly at: number
  readonly namespace: string
  readonly change: Document
}

const tokenOf = (at: number): Document => ({ _data: at.toString(16).padStart(16, '0') })

export class History {
  readonly #events: Event[] = []
  readonly #news = new EventEmitter().setMaxListeners(0)
  #at = 0
  /** Tokens before this one are too old. */
  #begin = 0

  add(namespace: string, change: Document): void {
    this.#events.push({ at: ++this.#at, namespace, change })
    this.wake()
  }

  /** Lets cursors that wait look again. */
  wake(): void {
    this.#news.emit('news')
  }

  get at(): number {
    return this.#at
  }

  /** Forgets all that has been, as an oplog does that is too short. */
  forget(): void {
    this.#events.length = 0
    this.#begin = ++this.#at
  }

  /** Where the stream goes on after a token. */
  after(token: Document): number {
    const at = Number.parseInt(token._data, 16)
    this.#checkKept(at)
    return at
  }

  #checkKept(at: number): void {
    if (at >= this.#begin) return
    const message =
      'Resume of change stream was not possible, as the resume point may no longer be in the oplog.'
    throw new Refusal(286, 'ChangeStreamHistoryLost', message, ['NonResumableChangeStreamError'])
  }

  eventsAfter(at: number, namespace: string): Event[] {
    this.#checkKept(at)
    return this.#events.filter((event) => event.at > at && event.namespace === namespace)
  }

  /** Resolves at the next event, or after this time. */
  async wait(ms: number): Promise<void> {
    const end = new AbortController()
    const timer = setTimeout(() => end.abort(), ms)
    try {
      await once(this.#news, 'news', { signal: end.signal })
    } catch {
      // the time is over
    } finally {
      clearTimeout(timer)
    }
  }
}

/** A change stream of one collection. */
export class StreamCursor {
  readonly id = Long.fromNumber(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER) + 1)
  readonly namespace: string
  readonly #history: History
  readonly #project: (event: Document) => Document
  #at: number
  isKilled = false
  /** Set when an `invalidate` has been told: the server has closed the cursor. */
  isOver = false

  constructor(history: History, namespace: string, at: number, project: (event: Document) => Document) {
    this.#history = history
    this.namespace = namespace
    this.#at = at
    this.#project = project
  }

  /** What is there. */
  batch(): { events: Document[]; token: Document } {
    const events = this.#history.eventsAfter(this.#at, this.namespace)
    const last = events.find(({ change }) => change.operationType === 'invalidate')
    this.isOver ||= last !== undefined
    const told = last === undefined ? events : events.slice(0, events.indexOf(last) + 1)
    this.#at = last?.at ?? this.#history.at
    return {
      events: told.map(({ at, change }) => this.#project({ _id: tokenOf(at), ...change })),
      token: tokenOf(this.#at),
    }
  }

  /** The same, after a while if there is nothing yet. */
  async next(waitMs: number): Promise<{ events: Document[]; token: Document }> {
    const untilMs = performance.now() + waitMs
    for (;;) {
      if (this.isKilled) throw new Refusal(237, 'CursorKilled', 'the cursor was killed')
      const batch = this.batch()
      const leftMs = untilMs - performance.now()
      if (batch.events.length > 0 || leftMs <= 0) return batch
      await this.#history.wait(leftMs)
    }
  }
}
