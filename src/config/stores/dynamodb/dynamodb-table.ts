// The table of a store on DynamoDB.
import { setTimeout as pause } from 'node:timers/promises'
import {
  type AttributeDefinition,
  CreateTableCommand,
  DescribeTableCommand,
  type KeySchemaElement,
  type TableDescription,
} from '@aws-sdk/client-dynamodb'
import { storeError } from '../../document-store.js'
import { type DynamoCalls, isNamed } from './dynamodb-calls.js'
import { SHARD, SORTED } from './dynamodb-index.js'

/** DynamoDB makes a table in some ten seconds. */
const LONGEST_MS = 120_000
const POLL_MS = 100

const KEY: KeySchemaElement[] = [{ AttributeName: 'key', KeyType: 'HASH' }]
const LIST_KEY: KeySchemaElement[] = [
  { AttributeName: SHARD, KeyType: 'HASH' },
  { AttributeName: SORTED, KeyType: 'RANGE' },
]
const LISTED: AttributeDefinition[] = [
  { AttributeName: SHARD, AttributeType: 'N' },
  { AttributeName: SORTED, AttributeType: 'B' },
]

/** Makes the table, with an index to list it if that has a name, unless it is there. Resolves when it is active. */
export async function createTable(calls: DynamoCalls, index: string | undefined): Promise<void> {
  try {
    await create(calls, index)
    const startMs = performance.now()
    for (;;) {
      const { Table } = await calls.ask((client, options) =>
        client.send(new DescribeTableCommand({ TableName: calls.table }), options),
      )
      if (Table?.TableStatus === 'ACTIVE') return checkTable(Table, calls.table, index)
      if (performance.now() - startMs > LONGEST_MS)
        throw new Error(`table ${calls.table} is ${Table?.TableStatus} after ${LONGEST_MS} ms`)
      await pause(POLL_MS)
    }
  } catch (error) {
    throw storeError('dynamodb', error)
  }
}

async function create(calls: DynamoCalls, index: string | undefined): Promise<void> {
  const command = new CreateTableCommand({
    TableName: calls.table,
    AttributeDefinitions: [
      { AttributeName: 'key', AttributeType: 'S' },
      ...(index === undefined ? [] : LISTED),
    ],
    KeySchema: KEY,
    BillingMode: 'PAY_PER_REQUEST',
    ...(index !== undefined && {
      GlobalSecondaryIndexes: [
        { IndexName: index, KeySchema: LIST_KEY, Projection: { ProjectionType: 'KEYS_ONLY' } },
      ],
    }),
  })
  try {
    await calls.ask((client, options) => client.send(command, options))
  } catch (error) {
    if (!isNamed(error, 'ResourceInUseException')) throw error
  }
}

function checkTable(
  { KeySchema, GlobalSecondaryIndexes = [] }: TableDescription,
  table: string,
  index: string | undefined,
): void {
  if (!isSame(KeySchema, KEY)) throw new Error(`table ${table} has another key than the attribute key`)
  if (index === undefined) return
  const found = GlobalSecondaryIndexes.find(({ IndexName }) => IndexName === index)
  if (found === undefined) throw new Error(`table ${table} has no index ${index}`)
  if (!isSame(found.KeySchema, LIST_KEY)) throw new Error(`index ${index} has other keys`)
}

const isSame = (schema: readonly KeySchemaElement[] = [], expected: readonly KeySchemaElement[]): boolean =>
  schema.length === expected.length &&
  expected.every(({ AttributeName }, i) => schema[i]!.AttributeName === AttributeName)
