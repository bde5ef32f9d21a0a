import { invalid } from '../../../core/errors.js'
// The options of a store on DynamoDB.

import type { DynamoDBClient, DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { refuseUnknown } from '../../../core/option-names.js'
import type { ConfigStore } from '../../config-store.js'
import { checkMs } from '../../deadline.js'

/** Options of {@link dynamoConfig}. */
export interface DynamoConfigOptions {
  /** The name of the table: 3 to 255 letters, digits, dots, dashes and underscores. */
  table: string
  /**
   * The name of the table's index for `list`, as `createTable` makes it. Without one `list` scans the whole table for
   * each page. With one a page reads its own policies and some hundred keys, at any size of the table, but it may lack
   * changes of the last seconds, and items of others that have no `listShard` and `listKey`.
   */
  listIndex?: string
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
   * takes two, and `list` without an index one for each megabyte of the table.
   * @default 1000
   */
  deadlineMs?: number
}

/** A store on DynamoDB. */
export interface DynamoConfigStore extends ConfigStore {
  /**
   * Makes the table, billed by request, and the index `listIndex`, unless the table is there. Resolves when it is
   * active.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CONFIG_STORE`, also for a table with another key or without the index
   */
  createTable(): Promise<void>
}

const OWN_CLIENT = ['region', 'endpoint', 'credentials'] as const
const KNOWN = ['table', 'listIndex', 'client', ...OWN_CLIENT, 'deadlineMs']
const DEADLINE_MS = [1, 3_600_000] as const
/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkOptions(options: DynamoConfigOptions): void {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ table, ... }')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const { client, table, listIndex, region, endpoint, credentials, deadlineMs } = options
  checkName('table', table)
  if (listIndex !== undefined) checkName('listIndex', listIndex)
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

function checkName(option: string, name: unknown): void {
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_.-]{3,255}$/.test(name))
    throw invalid(option, name, '3 to 255 letters, digits, dots, dashes and underscores')
}

const protocolOf = (url: unknown): string =>
  typeof url === 'string' && URL.canParse(url) ? new URL(url).protocol : ''
