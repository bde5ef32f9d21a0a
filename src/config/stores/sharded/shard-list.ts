// Pages of several shards as one, in order.
import type { ConfigStore, InvalidPolicy, StoredPolicy } from '../../config-store.js'
import { byUtf8 } from '../../utf8-order.js'
import { type Shard, shardError } from './shard-search.js'

/** The longest page of a list. */
const COUNTED_AT_ONCE = 10_000

export type Entry = StoredPolicy | InvalidPolicy

/** The rest of a shard's policies, of which a page has been read. */
interface Cursor {
  readonly shard: Shard
  page: readonly Entry[]
  at: number
  isLast: boolean
  after: string | undefined
}

/**
 * The first policies after `after` of these shards together.
 * @param choose of a key, what each shard has: what counts; undefined: nothing
 */
export async function mergedPage(
  shards: readonly Shard[],
  prefix: string,
  after: string | undefined,
  limit: number,
  choose: (key: string, entries: ReadonlyMap<Shard, Entry>) => Entry | undefined,
): Promise<Entry[]> {
  const cursors = shards.map((shard): Cursor => ({ shard, page: [], at: 0, isLast: false, after }))
  const merged: Entry[] = []
  while (merged.length < limit) {
    await Promise.all(cursors.map((cursor) => fill(cursor, prefix, limit)))
    const heads = cursors.filter(({ page, at }) => at < page.length)
    if (heads.length === 0) break
    const keys = heads.map(({ page, at }) => page[at]!.key)
    const key = keys.reduce((least, each) => (byUtf8(each, least) < 0 ? each : least))
    const same = heads.filter(({ page, at }) => page[at]!.key === key)
    const chosen = choose(key, new Map(same.map(({ shard, page, at }) => [shard, page[at]!])))
    for (const cursor of same) cursor.at++
    if (chosen !== undefined) merged.push(chosen)
  }
  return merged
}

async function fill(cursor: Cursor, prefix: string, limit: number): Promise<void> {
  if (cursor.at < cursor.page.length || cursor.isLast) return
  const { after } = cursor
  const from = after === undefined ? {} : { after }
  try {
    cursor.page = await cursor.shard.store.list({ ...(prefix !== '' && { prefix }), ...from, limit })
  } catch (error) {
    throw new ShardDown(cursor.shard, shardError(cursor.shard, error))
  }
  cursor.at = 0
  cursor.isLast = cursor.page.length < limit
  cursor.after = cursor.page.at(-1)?.key ?? after
}

/** How many documents a shard has. One that can't say it is listed. */
export async function countIn(store: ConfigStore, prefix: string): Promise<number> {
  const options = prefix === '' ? {} : { prefix }
  if (store.count !== undefined) return store.count(options)
  let count = 0
  for (let after: string | undefined; ; ) {
    const from = after === undefined ? {} : { after }
    const page = await store.list({ ...options, ...from, limit: COUNTED_AT_ONCE })
    count += page.length
    if (page.length < COUNTED_AT_ONCE) return count
    after = page.at(-1)!.key
  }
}

/** A shard has no page; the cause says why. */
export class ShardDown extends Error {
  readonly shard: Shard

  constructor(shard: Shard, cause: unknown) {
    super(shard.name, { cause })
    this.shard = shard
  }
}
