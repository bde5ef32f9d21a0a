// The channels on which events are published, and what publishes where somebody has subscribed: `events.ts`.

import { channel } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import type { BatchDecision } from './batch-decision.js'
import type { Decision } from './decision.js'
import { isUndecided } from './decision-source.js'
import type { EventOptions, EvictionEvent, RefusedKeys } from './events.js'
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
 * Says how the messages of events show keys, in this thread. Threads that attach a limiter of this thread then hash its
 * keys, too: by a secret of their own, until they call this function with the same one.
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
  keyInEvents = options.keyInEvents ?? 'text'
}

/** What this thread has chosen; undefined: nothing. */
let keyInEvents: EventOptions['keyInEvents']

/** Whether messages of this thread have hashes in place of keys. */
export const hashesKeys = (): boolean => keyInEvents === 'hash'

/**
 * Hashes keys by a secret of this thread, unless it has chosen: the thread that shares a limiter hashes them, and its
 * secret stays there.
 */
export function hashKeysUnlessChosen(): void {
  if (keyInEvents === undefined) setEventOptions({ keyInEvents: 'hash', secret: events().randomSecret() })
}

/** How many limiters count their refused keys. */
let counting = 0

/** Hears of refusals without their keys. */
type RefusalListener = (rule: string, retryAfterMs: number) => void
let listener: RefusalListener | undefined

/** Sets who hears of refusals beside the subscribers, in this thread. */
export function onRefusal(next: RefusalListener | undefined): void {
  listener = next
}

/** Whether anybody hears of the keys of refusals. */
export const hearsKeys = (): boolean => limited.hasSubscribers || blocked.hasSubscribers || counting > 0

/** Whether anybody hears of refusals. */
export const hearsRefusals = (): boolean => hearsKeys() || listener !== undefined

/** So many more limiters count their refused keys. */
export function countsRefusedKeys(more: number): void {
  counting += more
}

/** The route of the request for which a limiter is called just now. */
let route: string | undefined

export const presentRoute = (): string | undefined => route

/** Calls a limiter for a request of this route, which the events of its refusals name. */
export function inRoute<T>(name: string | undefined, act: () => T): T {
  const before = route
  route = name
  try {
    return act()
  } finally {
    route = before
  }
}

/**
 * Publishes a refusal, and returns the decision. One because a store does not answer is none.
 * @param refusals those of the limiter or group
 * @param rule in whose name it is published, if not in that of the decision's rule
 */
export function publishRefusal<D extends Decision>(
  decision: D,
  key: unknown,
  refusals: RefusedKeys,
  rule?: string,
  of = route,
): D {
  if (decision.allowed || !hearsRefusals() || isUndecided(decision.source)) return decision
  refusals.note(key)
  listener?.(rule ?? decision.rule, decision.retryAfterMs)
  if (limited.hasSubscribers || blocked.hasSubscribers)
    events().tellRefusal(limited, blocked, decision, key, of, rule)
  return decision
}

/** Publishes that an address is on a list of those that are refused. */
export function publishDenied(address: string, of: string): void {
  listener?.('deny', Number.POSITIVE_INFINITY)
  if (blocked.hasSubscribers) events().tell(blocked, address, 'deny', 0, Number.POSITIVE_INFINITY, of)
}

/** Publishes the refusals of a batch, whose blocks are not known. @param keys what the caller gave */
export function publishBatch(
  batch: BatchDecision,
  keys: unknown,
  refusals: RefusedKeys,
  rule: string,
): BatchDecision {
  if (hearsKeys()) events().tellBatch(limited, batch, keys, refusals, rule)
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
