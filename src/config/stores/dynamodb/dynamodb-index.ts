// The index by which a large table is listed in the order of keys: a global secondary index of 16 partitions, each of
// which DynamoDB keeps sorted. A page merges them, so it reads little more than its own keys.
import { crc32 } from 'node:zlib'
import { type AttributeValue, QueryCommand } from '@aws-sdk/client-dynamodb'
import type { DynamoCalls } from './dynamodb-calls.js'
import { type Item, keyOf } from './dynamodb-items.js'

/** The partition key of the index, a number, and its sort key, bytes. Each item has them beside its policy. */
export const SHARD = 'listShard'
export const SORTED = 'listKey'

const SHARDS = 16
/** The longest sort key of DynamoDB is 1,024 bytes. Keys that are longer are sorted by their first ones, and here. */
const LONGEST = 1_000
/** Keys that a query reads beyond its part of a page, as the parts are not equal. */
const SPARE = 8
/** Keys that are read together where they can only be counted one by one. */
const COUNTED_AT_ONCE = 1_000

/** The attributes by which an item is in the index. */
export const listAttributesOf = (key: string): { listShard: AttributeValue; listKey: AttributeValue } => ({
  [SHARD]: { N: String(crc32(key) % SHARDS) },
  [SORTED]: { B: sortedBytes(Buffer.from(key)) },
})

const sortedBytes = (bytes: Buffer): Buffer => bytes.subarray(0, LONGEST)

/** The keys with a prefix after a key, in the order of their bytes, as DynamoDB has noted them some time ago. */
export async function* keysInIndex(
  calls: DynamoCalls,
  index: string,
  { prefix, after, expected }: { prefix: string; after: string | undefined; expected: number },
): AsyncGenerator<string> {
  const range = rangeOf(prefix, after)
  if (range === undefined) return
  const perQuery = Math.ceil(expected / SHARDS) + SPARE
  const shards = Array.from({ length: SHARDS }, (_, shard) => new Shard(calls, index, shard, range, perQuery))
  const heads = await Promise.all(shards.map((shard) => shard.next()))
  const afterBytes = after === undefined ? undefined : Buffer.from(after)
  for (;;) {
    let first: Entry | undefined
    for (const head of heads)
      if (head !== undefined && (first === undefined || byBytes(head, first) < 0)) first = head
    if (first === undefined) return
    const at = heads.indexOf(first)
    heads[at] = await shards[at]!.next()
    const isAfter = afterBytes === undefined || Buffer.compare(first.bytes, afterBytes) > 0
    if (isAfter && first.key.startsWith(prefix)) yield first.key
  }
}

/** How many keys with a prefix the index has. */
export async function countInIndex(calls: DynamoCalls, index: string, prefix: string): Promise<number> {
  if (Buffer.byteLength(prefix) > LONGEST) return countLong(calls, index, prefix)
  const range = rangeOf(prefix, undefined)!
  const counts = await Promise.all(
    Array.from({ length: SHARDS }, (_, shard) => countIn(calls, queryOf(calls, index, shard, range))),
  )
  return counts.reduce((a, b) => a + b)
}

async function countIn(calls: DynamoCalls, query: Query): Promise<number> {
  let count = 0
  let start: Record<string, AttributeValue> | undefined
  do {
    const from = start === undefined ? {} : { ExclusiveStartKey: start }
    const command = new QueryCommand({ ...query, ...from, Select: 'COUNT' })
    const reply = await calls.ask((client, options) => client.send(command, options))
    count += reply.Count ?? 0
    start = reply.LastEvaluatedKey
  } while (start !== undefined)
  return count
}

/** The sort key does not tell which keys begin with a prefix that is longer than it. */
async function countLong(calls: DynamoCalls, index: string, prefix: string): Promise<number> {
  let count = 0
  for await (const _ of keysInIndex(calls, index, { prefix, after: undefined, expected: COUNTED_AT_ONCE }))
    count++
  return count
}

interface Range {
  readonly from: Buffer
  readonly to: Buffer
}

/** The sort keys that may be of the page. No byte of UTF-8 is 255. Undefined: none. */
function rangeOf(prefix: string, after: string | undefined): Range | undefined {
  const start = Buffer.from(prefix)
  const last = Buffer.from(after ?? '')
  const from = sortedBytes(Buffer.compare(last, start) > 0 ? last : start)
  const to = sortedBytes(Buffer.concat([start, Buffer.from([255])]))
  if (Buffer.compare(from, to) > 0) return undefined
  return { from: from.length === 0 ? Buffer.alloc(1) : from, to }
}

interface Entry {
  readonly key: string
  readonly bytes: Buffer
}

const entryOf = (item: Item): Entry => ({ key: keyOf(item), bytes: Buffer.from(keyOf(item)) })

const byBytes = (a: Entry, b: Entry): number => Buffer.compare(a.bytes, b.bytes)

type Query = Omit<ConstructorParameters<typeof QueryCommand>[0], 'ExclusiveStartKey'>

/** What asks one partition of the index for a range. */
const queryOf = (calls: DynamoCalls, index: string, shard: number, { from, to }: Range): Query => ({
  TableName: calls.table,
  IndexName: index,
  KeyConditionExpression: '#shard = :shard AND #sorted BETWEEN :from AND :to',
  ExpressionAttributeNames: { '#shard': SHARD, '#sorted': SORTED },
  ExpressionAttributeValues: { ':shard': { N: String(shard) }, ':from': { B: from }, ':to': { B: to } },
})

/** The keys of one partition of the index, in their order. */
class Shard {
  readonly #calls: DynamoCalls
  readonly #query: Query
  /** Sorted, the next one last. */
  #entries: Entry[] = []
  #start: Record<string, AttributeValue> | undefined
  #hasMore = true

  constructor(calls: DynamoCalls, index: string, shard: number, range: Range, limit: number) {
    this.#calls = calls
    this.#query = { ...queryOf(calls, index, shard, range), Limit: limit }
  }

  async next(): Promise<Entry | undefined> {
    while (this.#hasMore && !this.#isHeadSure()) await this.#load()
    return this.#entries.pop()
  }

  /** Whether no key that is still to come is before the first of those that are here. */
  #isHeadSure(): boolean {
    const [last] = this.#entries
    const head = this.#entries.at(-1)
    if (last === undefined || head === undefined) return false
    // Keys that agree in the bytes by which DynamoDB sorts come in any order.
    return last.bytes.length < LONGEST || !sortedBytes(last.bytes).equals(sortedBytes(head.bytes))
  }

  async #load(): Promise<void> {
    const start = this.#start === undefined ? {} : { ExclusiveStartKey: this.#start }
    const command = new QueryCommand({ ...this.#query, ...start })
    const reply = await this.#calls.ask((client, options) => client.send(command, options))
    this.#entries = [...this.#entries, ...(reply.Items ?? []).map(entryOf)].sort((a, b) => byBytes(b, a))
    this.#start = reply.LastEvaluatedKey
    this.#hasMore = this.#start !== undefined
  }
}
