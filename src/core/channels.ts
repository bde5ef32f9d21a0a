// The channels on which events are published, and what publishes where somebody has subscribed: `events.ts`.

import { channel } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import type { BatchDecision } from './batch-decision.js'
import type { Decision } from './decision.js'
import { isUndecided } from './decision-source.js'
import type { EventOptions, EvictionEvent } from './events.js'
import { lazily } from './lazily.js'
import { queueMicrotask } from './real-timers.js'

const require = createRequire(import.meta.url)
const events = lazily(() => require('./events.js') as typeof import('./events.js'))

const limited = channel('millrace:limited')
const blocked = channel('millrace:blocked')
const policyChanged = channel('millrace:policy-changed')
const evictedLive = channel('millrace:evicted-live')
const outage = channel('millrace:outage')
const recovered = channel('millrace:recovered')

let evicted = 0

/**
 * Says how the messages of events show keys, in this thread.
 * @param options what the keys are, and the secret of hashes
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { setEventOptions } from 'millrace'
 *
 * setEventOptions({ keyInEvents: 'hash', secret: process.env.KEY_SECRET ?? 'at least 16 characters' })
 * ```
 */
export function setEventOptions(options: EventOptions): void {
  events().setKeysInEvents(options)
}

/** Hears of refusals without their keys. */
type RefusalListener = (rule: string, retryAfterMs: number) => void
let listener: RefusalListener | undefined

/** Sets who hears of refusals beside the subscribers, in this thread. */
export function onRefusal(next: RefusalListener | undefined): void {
  listener = next
}

/** Whether anybody hears of the keys of refusals. */
export const hearsKeys = (): boolean => limited.hasSubscribers || blocked.hasSubscribers

/** Whether anybody hears of refusals. */
export const hearsRefusals = (): boolean => hearsKeys() || listener !== undefined

/** Publishes a refusal, and returns the decision. One because a store does not answer is none. */
export function publishRefusal<D extends Decision>(decision: D, key: unknown, rule?: string): D {
  if (decision.allowed) return decision
  if (hearsKeys()) events().tellRefusal(limited, blocked, decision, key, rule)
  if (!isUndecided(decision.source)) listener?.(rule ?? decision.rule, decision.retryAfterMs)
  return decision
}

/** Publishes that an address is on a list of those that are refused. */
export function publishDenied(address: string): void {
  listener?.('deny', Number.POSITIVE_INFINITY)
  if (blocked.hasSubscribers) events().tell(blocked, address, 'deny', 0, Number.POSITIVE_INFINITY)
}

/** Publishes the refusals of a batch, whose blocks are not known. @param keys what the caller gave */
export function publishBatch(batch: BatchDecision, keys: unknown, rule: string): BatchDecision {
  if (limited.hasSubscribers) events().tellBatch(limited, batch, keys, rule)
  if (listener !== undefined) {
    const first = batch.allowed.findIndex((allowed, i) => allowed === 0 && !isUndecided(batch.source(i)))
    if (first >= 0) listener(rule, batch.retryAfterMs(first)) // once for all keys
  }
  return batch
}

/** Publishes that the limit of a rule, or the policy of a key, has changed. */
export function publishPolicy(rule: string | undefined, key: string | undefined, limit?: number): void {
  if (policyChanged.hasSubscribers) policyChanged.publish({ rule, key: events().shownKey(key), limit })
}

/** Publishes the beginning or the end of an outage. */
export function publishOutage(change: { readonly state: 'outage' | 'recovered' }): void {
  const to = change.state === 'outage' ? outage : recovered
  if (to.hasSubscribers) to.publish(change)
}

/** A key that still counted has lost its place. Told after this turn: a subscriber must not run inside of a decision. */
export function noteEvictedLive(): void {
  if (!evictedLive.hasSubscribers || evicted++ > 0) return
  queueMicrotask(() => {
    const count = evicted
    evicted = 0
    evictedLive.publish({ count } satisfies EvictionEvent)
  })
}
