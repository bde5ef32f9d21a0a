// Calls of DynamoDB that settle by a deadline. Its client resends a request that has failed or was throttled, three
// times in all unless it was made otherwise.
import { setTimeout as pause } from 'node:timers/promises'
import { BatchGetItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type BoundedCall, within } from './deadline.js'
import { type Item, keyOf } from './dynamodb-items.js'

type Ask<T> = (client: DynamoDBClient, options: { abortSignal: AbortSignal }) => Promise<T>

/** A call that can be ended. */
interface Call extends BoundedCall {
  readonly abortSignal: AbortSignal
}

/** The most keys of one BatchGetItem. */
const BATCH = 100
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500

export class DynamoCalls {
  readonly table: string
  readonly #client: DynamoDBClient
  readonly #deadlineMs: number

  constructor(client: DynamoDBClient, table: string, deadlineMs: number) {
    this.#client = client
    this.table = table
    this.#deadlineMs = deadlineMs
  }

  /** Sends one command. */
  ask<T>(ask: Ask<T>): Promise<T> {
    return this.#within((call) => this.#ask(call, ask))
  }

  /** The items of these keys as they are now, in their order. One round trip, more if DynamoDB leaves some unread. */
  async get(keys: readonly string[]): Promise<readonly (Item | undefined)[]> {
    const unique = [...new Set(keys)]
    const batches: string[][] = []
    for (let at = 0; at < unique.length; at += BATCH) batches.push(unique.slice(at, at + BATCH))
    const items = await this.#within((call) =>
      Promise.all(batches.map((batch) => this.#getBatch(call, batch))),
    )
    const byKey = new Map(items.flat().map((item) => [keyOf(item), item]))
    return keys.map((key) => byKey.get(key))
  }

  /** It asks for keys that were left unread, because of throttling or of the size of the reply, until the deadline. */
  async #getBatch(call: Call, keys: readonly string[]): Promise<readonly Item[]> {
    const items: Item[] = []
    let left: Item[] = keys.map((key) => ({ key: { S: key } }))
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const request = { RequestItems: { [this.table]: { Keys: left, ConsistentRead: true } } }
      const reply = await this.#ask(call, (client, options) =>
        client.send(new BatchGetItemCommand(request), options),
      )
      items.push(...(reply.Responses?.[this.table] ?? []))
      left = reply.UnprocessedKeys?.[this.table]?.Keys ?? []
      if (left.length === 0 || call.isOver) return items
      await pause(pauseMs * (0.5 + 0.5 * Math.random()))
    }
  }

  #within<T>(act: (call: Call) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    const late = () => new Error(`no reply of DynamoDB within ${this.#deadlineMs} ms`)
    return within(this.#deadlineMs, late, (call) => {
      call.onLate = () => controller.abort()
      return act(Object.assign(call, { abortSignal: controller.signal }))
    })
  }

  async #ask<T>({ abortSignal }: Call, ask: Ask<T>): Promise<T> {
    try {
      return await ask(this.#client, { abortSignal })
    } catch (error) {
      if (!isNamed(error, 'ResourceNotFoundException')) throw error
      throw new Error(`no table ${this.table}: createTable() makes it`, { cause: error })
    }
  }
}

/** By name: the client may come from another copy of the package. */
export const isNamed = (error: unknown, name: string): error is Error =>
  error instanceof Error && error.name === name
