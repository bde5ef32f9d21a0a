// Calls of DynamoDB that settle by a deadline. A request that has failed or was throttled is sent again: by a client that
// was handed in, as it was made to; otherwise here, sooner than the SDK does, whose first pause is up to a second.
import { setTimeout as pause } from 'node:timers/promises'
import { BatchGetItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type BoundedCall, within } from '../../deadline.js'
import { type Item, keyOf } from './dynamodb-items.js'

type Ask<T> = (client: DynamoDBClient, options: { abortSignal: AbortSignal }) => Promise<T>

/** A call that can be ended. */
interface Call extends BoundedCall {
  readonly abortSignal: AbortSignal
  lastError: unknown
}

/** The most keys of one BatchGetItem. */
const BATCH = 100
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500

export class DynamoCalls {
  readonly table: string
  readonly #client: DynamoDBClient
  readonly #deadlineMs: number
  readonly #attempts: number
  readonly #resent = new WeakSet<Error>()

  /** @param attempts how often a request is sent, at most */
  constructor(client: DynamoDBClient, table: string, deadlineMs: number, attempts: number) {
    this.#client = client
    this.table = table
    this.#deadlineMs = deadlineMs
    this.#attempts = attempts
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
      call.lastError = new Error('keys that a batch has left unread')
      await pause(pauseMs * (0.5 + 0.5 * Math.random()))
    }
  }

  /** Whether the request of an error had been sent before, and may have been carried out then. */
  wasResent(error: Error): boolean {
    return this.#resent.has(error) || (metadataOf(error).attempts ?? 1) > 1
  }

  #within<T>(act: (call: Call) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    let call: Call | undefined
    const late = () => lateError(this.#deadlineMs, call?.lastError)
    return within(this.#deadlineMs, late, (bounded) => {
      bounded.onLate = () => controller.abort()
      call = Object.assign(bounded, { abortSignal: controller.signal, lastError: undefined })
      return act(call)
    })
  }

  async #ask<T>(call: Call, ask: Ask<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask(this.#client, { abortSignal: call.abortSignal })
      } catch (error) {
        if (isNamed(error, 'ResourceNotFoundException'))
          throw new Error(`no table ${this.table}: createTable() makes it`, { cause: error })
        if (attempt > 1 && error instanceof Error) this.#resent.add(error)
        if (call.isOver || attempt === this.#attempts || !isPassing(error)) throw error
        call.lastError = error
        await pause(Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * (0.5 + 0.5 * Math.random()))
      }
    }
  }
}

interface Metadata {
  readonly attempts?: number
  readonly httpStatusCode?: number
}

const metadataOf = (error: unknown): Metadata => (error as { $metadata?: Metadata }).$metadata ?? {}

const THROTTLED = ['ProvisionedThroughputExceededException', 'ThrottlingException', 'RequestLimitExceeded']

/** Whether the same request may succeed later: it was throttled, or the server or the network has failed. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (THROTTLED.includes(error.name) || (metadataOf(error).httpStatusCode ?? 0) >= 500) return true
  const { code } = error as { code?: unknown }
  return error.name === 'TimeoutError' || (typeof code === 'string' && /^E[A-Z]+$/.test(code))
}

function lateError(ms: number, cause: unknown): Error {
  if (!(cause instanceof Error)) return new Error(`no reply of DynamoDB within ${ms} ms`)
  return new Error(
    `no success of DynamoDB within ${ms} ms: ${cause.name === 'Error' ? cause.message : cause.name}`,
    { cause },
  )
}

/** By name: the client may come from another copy of the package. */
export const isNamed = (error: unknown, name: string): error is Error =>
  error instanceof Error && error.name === name
