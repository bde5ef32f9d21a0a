import { MillraceError } from '../../core/errors.js'
import { Outage } from '../../remote/outage.js'
import type { ServersWatch } from '../../remote/outage-watch.js'
import type { RemoteStore } from '../../remote/remote-store.js'

/** A connection to a shard. */
export interface OpenedShard {
  readonly client: unknown
  readonly store: RemoteStore
  /** What is heard of it. */
  readonly outages: ServersWatch
  /** Whether its breaker is open: no call goes out but a probe. */
  readonly isDown: () => boolean
}

/** A server of a sharded store. Another connection may take the place of the first one. */
export interface Shard {
  /** No other shard of the store has had it. */
  readonly id: number
  readonly name: string
  opened: OpenedShard
}

export const storeOf = ({ opened }: Shard): RemoteStore => opened.store

/**
 * Does the same at each shard. If one fails, the others have done it nevertheless.
 * @throws Outage (rejects) or MillraceError, of the first shard that failed
 */
export async function everywhere<T>(shards: readonly Shard[], act: (store: RemoteStore) => Promise<T>) {
  const outcomes = await Promise.allSettled(shards.map(async (shard) => act(storeOf(shard))))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined) return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value)
  const isDoneElsewhere = outcomes.some(({ status }) => status === 'fulfilled')
  throw isDoneElsewhere ? possiblyCharged(failed.reason) : failed.reason
}

/** The same error, but of a call that another shard has run. */
export const possiblyCharged = (error: unknown): unknown =>
  error instanceof Outage ? new Outage(error.cause, true) : error

/** Whether an error is one that a caller can have. No caller is left to hear of it where charges are given back. */
export const isExpected = (error: unknown): boolean =>
  error instanceof Outage || error instanceof MillraceError
