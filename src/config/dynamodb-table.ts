// The table of a store on DynamoDB.
import { setTimeout as pause } from 'node:timers/promises'
import { CreateTableCommand, DescribeTableCommand, type TableDescription } from '@aws-sdk/client-dynamodb'
import { storeError } from './document-store.js'
import { type DynamoCalls, isNamed } from './dynamodb-calls.js'

/** DynamoDB makes a table in some ten seconds. */
const LONGEST_MS = 120_000
const POLL_MS = 100

/** Makes the table unless it is there. Resolves when it is active. */
export async function createTable(calls: DynamoCalls): Promise<void> {
  try {
    await create(calls)
    const startMs = performance.now()
    for (;;) {
      const { Table } = await calls.ask((client, options) =>
        client.send(new DescribeTableCommand({ TableName: calls.table }), options),
      )
      if (Table?.TableStatus === 'ACTIVE') return checkTable(Table, calls.table)
      if (performance.now() - startMs > LONGEST_MS)
        throw new Error(`table ${calls.table} is ${Table?.TableStatus} after ${LONGEST_MS} ms`)
      await pause(POLL_MS)
    }
  } catch (error) {
    throw storeError('dynamodb', error)
  }
}

async function create(calls: DynamoCalls): Promise<void> {
  const command = new CreateTableCommand({
    TableName: calls.table,
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  })
  try {
    await calls.ask((client, options) => client.send(command, options))
  } catch (error) {
    if (!isNamed(error, 'ResourceInUseException')) throw error
  }
}

function checkTable({ KeySchema = [] }: TableDescription, table: string): void {
  const [first, second] = KeySchema
  if (first?.AttributeName === 'key' && second === undefined) return
  throw new Error(`table ${table} has another key than the attribute key`)
}
