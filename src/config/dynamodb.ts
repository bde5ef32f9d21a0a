/** Policies in Amazon DynamoDB, or in what speaks its protocol. */
import {
  type AttributeValue,
  DeleteItemCommand,
  DynamoDBClient,
  ScanCommand,
  type ScanCommandOutput,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import { DocumentStore, type Listed, type RawDocument } from './document-store.js'
import type { PolicyDocument } from './policy.js'
import { Smallest } from './smallest.js'
import { DynamoCalls, isNamed } from './stores/dynamodb/dynamodb-calls.js'
import { countInIndex, keysInIndex, listAttributesOf } from './stores/dynamodb/dynamodb-index.js'
import {
  attributesOf,
  type Condition,
  conditionOf,
  keyOf,
  listedOf,
  rawOf,
  type Token,
} from './stores/dynamodb/dynamodb-items.js'
import {
  checkOptions,
  type DynamoConfigOptions,
  type DynamoConfigStore,
} from './stores/dynamodb/dynamodb-options.js'
import { createTable } from './stores/dynamodb/dynamodb-table.js'
import { byUtf8 } from './utf8-order.js'

export type * from './store-types.js'
export type { DynamoConfigOptions, DynamoConfigStore } from './stores/dynamodb/dynamodb-options.js'

/** How often the store sends a request that has failed or was throttled, by its own client. */
const ATTEMPTS = 5

/**
 * Creates a store on DynamoDB. Each policy is an item `{ key, version, policy }`, the policy as a map, with two
 * attributes for the index. `key` is the partition key, so DynamoDB spreads any number of policies by itself, and each is
 * found by one read.
 *
 * What others write is read as well: `policy` may be a map or a JSON text. Who changes a map must raise `version`.
 *
 * - Reads are consistent. One item takes 3,000 reads of them a second, also that of a prefix such as `'*'`.
 * - `list` scans the whole table for each page, because DynamoDB has no order over partitions: that is quick and cheap
 *   for some ten thousand policies. With more, take `listIndex`; each change then costs one or two more writes. `count`
 *   reads the whole table once, or with `listIndex` the index, which has no policies.
 * - DynamoDB tells nobody of changes: `watch` tells only those of this store. A limiter notices the others when its
 *   cache asks again.
 * - A `put` that rejects with `ERR_MILLRACE_CONFIG_STORE` may have been stored all the same. It never overwrites what
 *   somebody else has stored since.
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { dynamoConfig } from 'millrace/config/dynamodb'
 *
 * const store = dynamoConfig({ region: 'eu-central-1', table: 'limits' })
 * await store.createTable()
 * await store.put('plan:pro:*', { limit: 1000, window: '1m' })
 * ```
 */
export function dynamoConfig(options: DynamoConfigOptions): DynamoConfigStore {
  checkOptions(options)
  const { client, table, listIndex, region, endpoint, credentials, deadlineMs = 1_000 } = options
  if (client !== undefined)
    return new DynamoConfig(new DynamoCalls(client, table, deadlineMs, 1), listIndex, undefined)
  const own = new DynamoDBClient({
    maxAttempts: 1,
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
  })
  return new DynamoConfig(new DynamoCalls(own, table, deadlineMs, ATTEMPTS), listIndex, own)
}

class DynamoConfig extends DocumentStore implements DynamoConfigStore {
  readonly kind = 'dynamodb'
  readonly watchDelayMs = Number.POSITIVE_INFINITY
  readonly #calls: DynamoCalls
  readonly #listIndex: string | undefined
  readonly #own: DynamoDBClient | undefined

  constructor(calls: DynamoCalls, listIndex: string | undefined, own: DynamoDBClient | undefined) {
    super()
    this.#calls = calls
    this.#listIndex = listIndex
    this.#own = own
  }

  async createTable(): Promise<void> {
    this.checkOpen()
    await createTable(this.#calls, this.#listIndex)
  }

  protected async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    if (keys.length === 0) return []
    return (await this.#calls.get(keys)).map((item) => item && rawOf(item))
  }

  protected async replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    try {
      await this.#write(key, conditionOf(expected?.token as Token | undefined), next)
    } catch (error) {
      if (!isNamed(error, 'ConditionalCheckFailedException')) throw error
      if (!this.#calls.wasResent(error) || !(await this.#has(key, next))) return false
    }
    this.tell({ keys: [key] })
    return true
  }

  async #write(key: string, condition: Condition, next: PolicyDocument | undefined): Promise<void> {
    const { names, values, expression } = condition
    const request = {
      TableName: this.#calls.table,
      Key: { key: { S: key } },
      ConditionExpression: expression,
    }
    if (next === undefined) {
      const given = Object.keys(values).length > 0 && { ExpressionAttributeValues: values }
      const command = new DeleteItemCommand({ ...request, ExpressionAttributeNames: names, ...given })
      await this.#calls.ask((client, options) => client.send(command, options))
      return
    }
    const attributes = { ...attributesOf(next), ...listAttributesOf(key) }
    const given = Object.entries(attributes)
    const command = new UpdateItemCommand({
      ...request,
      UpdateExpression: `SET ${given.map(([name]) => `#${name} = :next_${name}`).join(', ')}`,
      ExpressionAttributeNames: {
        ...names,
        ...Object.fromEntries(given.map(([name]) => [`#${name}`, name])),
      },
      ExpressionAttributeValues: {
        ...values,
        ...Object.fromEntries(given.map(([name, value]) => [`:next_${name}`, value])),
      },
    })
    await this.#calls.ask((client, options) => client.send(command, options))
  }

  /** Whether the item is what a write has made of it: it was sent twice, and has succeeded the first time. */
  async #has(key: string, next: PolicyDocument | undefined): Promise<boolean> {
    const [item] = await this.#calls.get([key])
    if (item === undefined || next === undefined) return item === next
    return item.version?.N === String(next.version)
  }

  protected page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    return this.#listIndex === undefined
      ? this.#pageByScan(prefix, after, limit)
      : this.#pageByIndex(this.#listIndex, prefix, after, limit)
  }

  async #pageByIndex(
    index: string,
    prefix: string,
    after: string | undefined,
    limit: number,
  ): Promise<readonly Listed[]> {
    const found: Listed[] = []
    let keys: string[] = []
    const read = async () => {
      for (const item of await this.#calls.get(keys)) if (item) found.push(listedOf(item))
      keys = []
    }
    for await (const key of keysInIndex(this.#calls, index, { prefix, after, expected: limit })) {
      keys.push(key)
      if (found.length + keys.length === limit) await read()
      if (found.length === limit) return found
    }
    await read() // the index may still have keys that were deleted: then there were more to come
    return found
  }

  async #pageByScan(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    const smallest = new Smallest(limit)
    for await (const { Items = [] } of this.#scan(prefix)) {
      for (const item of Items) {
        const key = keyOf(item)
        if (key.startsWith(prefix) && (after === undefined || byUtf8(key, after) > 0))
          smallest.add(listedOf(item))
      }
    }
    return smallest.sorted
  }

  /** By the index, the items that it has; otherwise by a scan of the whole table, as for a page. */
  protected async countDocuments(prefix: string): Promise<number> {
    if (this.#listIndex !== undefined) return countInIndex(this.#calls, this.#listIndex, prefix)
    let count = 0
    for await (const { Count = 0 } of this.#scan(prefix, { Select: 'COUNT' })) count += Count
    return count
  }

  async *#scan(prefix: string, select: { Select?: 'COUNT' } = {}): AsyncGenerator<ScanCommandOutput> {
    const filter = prefix !== '' && {
      FilterExpression: 'begins_with(#key, :prefix)',
      ExpressionAttributeNames: { '#key': 'key' },
      ExpressionAttributeValues: { ':prefix': { S: prefix } },
    }
    let start: Record<string, AttributeValue> | undefined
    do {
      const command = new ScanCommand({
        TableName: this.#calls.table,
        ConsistentRead: true,
        ...select,
        ...filter,
        ...(start !== undefined && { ExclusiveStartKey: start }),
      })
      const reply = await this.#calls.ask((client, options) => client.send(command, options))
      yield reply
      start = reply.LastEvaluatedKey
    } while (start !== undefined)
  }

  protected startWatch(): void {}

  protected stopWatch(): void {}

  protected async end(): Promise<void> {
    this.#own?.destroy()
  }
}
