import type { RemoteRule } from '../../remote/remote-rule.js'
import { KEY_FAULT } from '../../remote/reply-codes.js'
import { FOREVER_MS } from '../../values/count.js'
import { decodeCounts, encodeCounts, type SavedCount, ValueFault } from '../../values/saved-count.js'
import type { Values } from '../../values/values.js'
import type { Command } from '../clients/connection.js'
import { changesOf, type Members, savedIn } from './log-set.js'
import type { WatchSession } from './watch-session.js'

/**
 * The logs of one key as one value: a read watches its sets and reads them, a swap writes what differs by MULTI and
 * EXEC, which runs nothing if a set has changed since.
 */
export class WatchedValues implements Values {
  readonly #session: WatchSession
  readonly #names: readonly string[]
  readonly #rules: readonly RemoteRule[]
  readonly #expires: boolean

  /** @param expires whether the sets end by themselves: not in a test's time */
  constructor(
    session: WatchSession,
    names: readonly string[],
    rules: readonly RemoteRule[],
    expires: boolean,
  ) {
    this.#session = session
    this.#names = names
    this.#rules = rules
    this.#expires = expires
  }

  /** WATCH and all reads go out together. */
  async read(): Promise<(Uint8Array | undefined)[]> {
    const names = this.#names
    const watched = this.#session.watch(names)
    const sets = names.map((name) =>
      this.#session.send(['ZRANGE', name, '0', '-1', 'WITHSCORES']).then(membersOf, faultOf),
    )
    const [members] = await Promise.all([Promise.all(sets), watched])
    const saved = members.map((set, i) => savedIn(set, this.#rules[i]!))
    return [saved.every((own) => own === undefined) ? undefined : encodeCounts(saved)]
  }

  async now(): Promise<number> {
    const [seconds, micros] = (await this.#session.send(['TIME'])) as [string, string]
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  }

  swap(_: string, before: Uint8Array | undefined, after: Uint8Array, ttlMs: number): Promise<boolean> {
    const shapes = this.#rules.map(({ shape }) => shape)
    const old = before === undefined ? [] : decodeCounts(before, shapes)
    const counts = decodeCounts(after, shapes)
    const latestMs = Math.max(...counts.map(endOf))
    const writes = counts.flatMap((count, i) => {
      if (count === undefined) return []
      const name = this.#names[i]!
      const changes = changesOf(name, old[i], count)
      return this.#expires ? [...changes, expiryOf(name, ttlMs - latestMs + endOf(count))] : changes
    })
    return this.#session.execute(writes)
  }
}

/** Until when the store must keep a count. */
const endOf = (count: SavedCount | undefined): number =>
  count === undefined
    ? Number.NEGATIVE_INFINITY
    : count.untilMs === FOREVER_MS
      ? Number.MAX_SAFE_INTEGER
      : Math.max(count.endMs, count.untilMs)

const expiryOf = (name: string, ms: number): Command =>
  ms === Number.POSITIVE_INFINITY ? ['PERSIST', name] : ['PEXPIRE', name, String(Math.max(1, ms))]

/** RESP2 lists members and scores in turn, RESP3 in pairs. */
function membersOf(reply: unknown): Members {
  const list = (reply as unknown[]).flat()
  const members: [string, number][] = []
  for (let i = 0; i < list.length; i += 2) members.push([String(list[i]), Number(list[i + 1])])
  return members
}

function faultOf(error: unknown): never {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) throw new ValueFault(KEY_FAULT.TYPE)
  throw error
}
