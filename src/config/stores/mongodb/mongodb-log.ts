// Changes on a server without replica set, which has no change streams: a document that says what was changed last.
//
// There are no transactions either, so a writer first logs what it is about to write, and then writes it. If it dies in
// between, or another one comes first, the log has an entry too many, never one too few. A reader asks for new entries
// at short intervals. It keeps each entry until it sees the policy as the entry has it, and then tells the key. If it
// never sees that, as the write did not happen or was itself written over, it tells the key when the entry is too old
// for its write to come.
//
// A random id tells entries apart. Counters and clocks don't: a server that loses its last writes would use a counter's
// values again, and the clocks of writers differ.
import { randomUUID } from 'node:crypto'
import type { ConfigChange } from '../../config-store.js'
import { BY_BYTES, type Collections, isDuplicate, type Limits, type MongoServer } from './mongodb-server.js'
import { type ChangeSource, pause } from './mongodb-source.js'

/** What a writer is about to do. */
interface Entry {
  readonly id: string
  readonly key: string
  /** The version that the key will have; null: none. */
  readonly version: number | null
  /** How long the write may take. */
  readonly withinMs: number
}

/** An entry whose write has not been seen yet. */
interface Pending {
  readonly entry: Entry
  readonly untilMs: number
}

const LOG = 'changes'
/** The entries that the log keeps. More than that in a poll's time, and readers are told that anything may have changed. */
const KEPT = 200
const MOST_PENDING = 1_000
/** How much longer than its deadline a write may take that hangs in the network. */
const SPARE_MS = 5_000
const LONGEST_MS = 60_000
const MOST_TRIES = 5

/** Logs a write that is about to be made. */
export async function logChange(server: MongoServer, key: string, version: number | null): Promise<void> {
  const entry: Entry = { id: randomUUID(), key, version, withinMs: server.deadlineMs }
  const change = {
    $set: { last: entry.id },
    $push: { recent: { $each: [entry], $slice: -KEPT } },
  }
  for (let tries = 1; ; tries++) {
    try {
      await server.ask(({ changes }, limits) =>
        changes.updateOne({ _id: LOG }, change as object, { ...limits, upsert: true }),
      )
      return
    } catch (error) {
      // another writer has made the log at the same time
      if (!isDuplicate(error) || tries === MOST_TRIES) throw error
    }
  }
}

export class LogSource implements ChangeSource {
  readonly #server: MongoServer
  readonly #pollMs: number
  readonly #pending = new Map<string, Pending>()
  #last: unknown = null
  /** Until when writes may be made whose entries this reader has missed; undefined: it has missed none. */
  #missedUntilMs: number | undefined

  constructor(server: MongoServer, pollMs: number) {
    this.#server = server
    this.#pollMs = pollMs
  }

  async open(): Promise<void> {
    await this.#readLog({ _id: LOG })
  }

  async next(): Promise<ConfigChange | undefined> {
    await pause(this.#pollMs)
    const isAny = await this.#readLog({ _id: LOG, last: { $ne: this.#last } })
    const keys = await this.#settled()
    if (isAny || this.#missedIsOver()) return {}
    return keys.length === 0 ? undefined : { keys }
  }

  /** Reads the log if it fits the filter, and keeps new entries. Returns whether it may have missed some. */
  async #readLog(filter: object): Promise<boolean> {
    const log = await this.#server.ask(({ changes }, limits) => changes.findOne(filter, limits))
    if (log === null) return false
    const entries = Array.isArray(log.recent) ? log.recent.filter(isEntry) : []
    const known = entries.findIndex(({ id }) => id === this.#last)
    // All entries are there, from the first one on, or from the one that is known.
    const isWhole = known >= 0 || (this.#last === null && entries.length < KEPT)
    this.#last = log.last ?? null
    for (const entry of entries.slice(known + 1)) this.#keep(entry)
    if (isWhole && this.#pending.size <= MOST_PENDING && entries.at(-1)?.id === this.#last) return false
    if (this.#pending.size > MOST_PENDING) this.#pending.clear()
    this.#missedUntilMs = performance.now() + longestMs(entries)
    return true
  }

  #keep(entry: Entry): void {
    this.#pending.set(entry.id, { entry, untilMs: performance.now() + entry.withinMs + SPARE_MS })
  }

  /** The keys whose changes can be told: they have been made, or they will not be. */
  async #settled(): Promise<string[]> {
    if (this.#pending.size === 0) return []
    const keys = [...new Set([...this.#pending.values()].map(({ entry }) => entry.key))]
    const versions = await this.#server.ask(({ policies }, limits) => versionsOf(policies, keys, limits))
    const now = performance.now()
    const told = new Set<string>()
    for (const [id, { entry, untilMs }] of this.#pending) {
      if ((versions.get(entry.key) ?? null) !== entry.version && now < untilMs) continue
      this.#pending.delete(id)
      told.add(entry.key)
    }
    return [...told]
  }

  #missedIsOver(): boolean {
    if (this.#missedUntilMs === undefined || performance.now() < this.#missedUntilMs) return false
    this.#missedUntilMs = undefined
    return true
  }

  async end(): Promise<void> {
    this.#pending.clear()
  }
}

/** The time within which writes are made whose entries were missed. Their writers are probably like the others. */
const longestMs = (entries: readonly Entry[]): number =>
  SPARE_MS + Math.max(0, ...entries.map(({ withinMs }) => withinMs))

/** The versions of keys, where there is a policy; what is no number is in the map all the same. */
async function versionsOf(
  policies: Collections['policies'],
  keys: readonly string[],
  limits: Limits,
): Promise<ReadonlyMap<string, unknown>> {
  const options = { ...limits, projection: { version: 1 }, collation: BY_BYTES, batchSize: keys.length + 1 }
  const found = await policies.find({ _id: { $in: keys } }, options).toArray()
  return new Map(found.map(({ _id, version }) => [_id, version ?? 0]))
}

function isEntry(value: unknown): value is Entry {
  const { id, key, version, withinMs } = Object(value) as Record<keyof Entry, unknown>
  return (
    typeof id === 'string' &&
    typeof key === 'string' &&
    (version === null || typeof version === 'number') &&
    typeof withinMs === 'number' &&
    withinMs >= 0 &&
    withinMs <= LONGEST_MS
  )
}
