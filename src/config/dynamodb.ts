/** Policies in Amazon DynamoDB, or in what speaks its protocol. */
import {
  type AttributeValue,
  DeleteItemCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { ConfigStore } from './config-store.js'
import { checkMs } from './deadline.js'
import { DocumentStore, invalid, type Listed, type RawDocument } from './document-store.js'
import { DynamoCalls, isNamed } from './dynamodb-calls.js'
import { attributesOf, type Item, keyOf, listedOf, rawOf, type Token } from './dynamodb-items.js'
import { createTable } from './dynamodb-table.js'
import type { PolicyDocument } from './policy.js'
import { Smallest } from './smallest.js'
import { byUtf8 } from './utf8-order.js'

export type {
  ConfigChange,
  ConfigListener,
  ConfigStore,
  InvalidPolicy,
  ListOptions,
  PutOptions,
  StoredPolicy,
} from './config-store.js'
export type { Policy } from './policy.js'

/** Options of {@link dynamoConfig}. */
export interface DynamoConfigOptions {
  /** The name of the table: 3 to 255 letters, digits, dots, dashes and underscores. */
  table: string
  /** A client of `@aws-sdk/client-dynamodb`, which stays open. Without one the store makes its own. */
  client?: DynamoDBClient
  /** The region of the store's own client. By default what the SDK finds: the variable `AWS_REGION`, or its files. */
  region?: string
  /** The URL of the service, for the store's own client: of DynamoDB local, or of another service with its protocol. */
  endpoint?: string
  /** The credentials of the store's own client. By default what the SDK finds. */
  credentials?: NonNullable<DynamoDBClientConfig['credentials']>
  /**
   * The longest that one request may take with all its retries, in milliseconds: 1 to 3,600,000. A `put` or a `delete`
   * takes two, and `list` one for each megabyte of the table.
   * @default 1000
   */
  deadlineMs?: number
}

/** A store on DynamoDB. */
export interface DynamoConfigStore extends ConfigStore {
  /**
   * Makes the table, billed by request, unless it is there. Resolves when it is active.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CONFIG_STORE`, also for a table with another key
   */
  createTable(): Promise<void>
}

const OWN_CLIENT = ['region', 'endpoint', 'credentials'] as const
const KNOWN = ['table', 'client', ...OWN_CLIENT, 'deadlineMs']
const DEADLINE_MS = [1, 3_600_000] as const
/** How often the store sends a request that has failed or was throttled, by its own client. */
const ATTEMPTS = 5

/**
 * Creates a store on DynamoDB. Each policy is an item `{ key, version, policy }`, the policy as a map. `key` is the
 * partition key, so DynamoDB spreads any number of policies by itself, and each is found by one read.
 *
 * What others write is read as well: `policy` may be a map or a JSON text. Who changes a map must raise `version`.
 *
 * - Reads are consistent. One item takes 3,000 reads of them a second, also that of a prefix such as `'*'`.
 * - `list` scans the whole table for each page, because DynamoDB has no order over partitions. That is quick and cheap
 *   for some ten thousand policies. With more, take large pages, or DynamoDB's own export to S3.
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
  const { client, table, region, endpoint, credentials, deadlineMs = 1_000 } = options
  if (client !== undefined) return new DynamoConfig(client, table, deadlineMs)
  const own = new DynamoDBClient({
    maxAttempts: 1,
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
  })
  return new DynamoConfig(own, table, deadlineMs, own)
}

function checkOptions(options: DynamoConfigOptions): void {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ table, ... }')
  for (const name of Object.keys(options))
    if (!KNOWN.includes(name)) throw invalid('options', name, `only ${KNOWN.join(', ')}`)
  const { client, table, region, endpoint, credentials, deadlineMs } = options
  if (typeof table !== 'string' || !/^[a-zA-Z0-9_.-]{3,255}$/.test(table))
    throw invalid('table', table, '3 to 255 letters, digits, dots, dashes and underscores')
  if (deadlineMs !== undefined) checkMs('deadlineMs', deadlineMs, DEADLINE_MS)
  if (client !== undefined) {
    if (typeof Object(client).send !== 'function' || typeof Object(client).config !== 'object')
      throw invalid('client', client, 'a DynamoDBClient of @aws-sdk/client-dynamodb')
    const beside = OWN_CLIENT.find((name) => options[name] !== undefined)
    if (beside !== undefined) throw invalid(beside, options[beside], 'no such option beside client')
  }
  if (region !== undefined && (typeof region !== 'string' || !/^[a-z0-9-]+$/.test(region)))
    throw invalid('region', region, "the name of a region, such as 'eu-central-1'")
  if (endpoint !== undefined && !/^https?:$/.test(protocolOf(endpoint)))
    throw invalid('endpoint', endpoint, 'a URL with http: or https:')
  if (credentials !== undefined && !['object', 'function'].includes(typeof credentials))
    throw invalid('credentials', credentials, '{ accessKeyId, secretAccessKey }, or a function')
}

const protocolOf = (url: unknown): string =>
  typeof url === 'string' && URL.canParse(url) ? new URL(url).protocol : ''

class DynamoConfig extends DocumentStore implements DynamoConfigStore {
  readonly kind = 'dynamodb'
  readonly watchDelayMs = Number.POSITIVE_INFINITY
  readonly #calls: DynamoCalls
  readonly #own: DynamoDBClient | undefined

  constructor(client: DynamoDBClient, table: string, deadlineMs: number, own?: DynamoDBClient) {
    super()
    this.#calls = new DynamoCalls(client, table, deadlineMs, own === undefined ? 1 : ATTEMPTS)
    this.#own = own
  }

  async createTable(): Promise<void> {
    this.checkOpen()
    await createTable(this.#calls)
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
    const { version, policy } = attributesOf(next)
    const command = new UpdateItemCommand({
      ...request,
      UpdateExpression: 'SET #version = :nextVersion, #policy = :nextPolicy',
      ExpressionAttributeNames: { ...names, '#version': 'version', '#policy': 'policy' },
      ExpressionAttributeValues: { ...values, ':nextVersion': version, ':nextPolicy': policy },
    })
    await this.#calls.ask((client, options) => client.send(command, options))
  }

  /** Whether the item is what a write has made of it: it was sent twice, and has succeeded the first time. */
  async #has(key: string, next: PolicyDocument | undefined): Promise<boolean> {
    const [item] = await this.#calls.get([key])
    if (item === undefined || next === undefined) return item === next
    return item.version?.N === String(next.version)
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    const smallest = new Smallest(limit)
    for await (const item of this.#scan(prefix)) {
      const key = keyOf(item)
      if (key.startsWith(prefix) && (after === undefined || byUtf8(key, after) > 0))
        smallest.add(listedOf(item))
    }
    return smallest.sorted
  }

  async *#scan(prefix: string): AsyncGenerator<Item> {
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
        ...filter,
        ...(start !== undefined && { ExclusiveStartKey: start }),
      })
      const reply = await this.#calls.ask((client, options) => client.send(command, options))
      yield* reply.Items ?? []
      start = reply.LastEvaluatedKey
    } while (start !== undefined)
  }

  protected startWatch(): void {}

  protected stopWatch(): void {}

  protected async end(): Promise<void> {
    this.#own?.destroy()
  }
}

interface Condition {
  readonly expression: string
  readonly names: Record<string, string>
  readonly values: Record<string, AttributeValue>
}

/** The condition that an item is still the one that was read. */
function conditionOf(token: Token | undefined): Condition {
  if (token === undefined)
    return { expression: 'attribute_not_exists(#key)', names: { '#key': 'key' }, values: {} }
  const { version, text } = token
  const parts = ['attribute_exists(#key)', version ? '#version = :version' : 'attribute_not_exists(#version)']
  if (text !== undefined) parts.push('#policy = :text')
  return {
    expression: parts.join(' AND '),
    names: { '#key': 'key', '#version': 'version', ...(text && { '#policy': 'policy' }) },
    values: { ...(version && { ':version': version }), ...(text && { ':text': text }) },
  }
}
