// What Millrace publishes on `node:diagnostics_channel`: `docs/reference/events.md`.
import { randomBytes } from 'node:crypto'
import type { BatchDecision } from './batch-decision.js'
import type { Decision } from './decision.js'
import { isBlocked } from './decision-counts.js'
import { isUndecided } from './decision-source.js'
import { invalid } from './errors.js'
import { MembersDecision } from './group-decision.js'
import { inert } from './inert.js'
import { keyHash } from './key-hash.js'
import { refuseUnknown } from './option-names.js'

/** A channel of `node:diagnostics_channel`, as users without the types of Node see it. */
export interface Channel {
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

/** Counts refused keys. */
export interface RefusedKeys {
  note(key: unknown): void
}

/** The message of `millrace:limited` and `millrace:blocked`: a refusal. */
export interface RefusalEvent {
  /** The rule, or the member of a group, in whose name it was refused; `'deny'`: the list of a middleware. */
  readonly rule: string
  /**
   * The key, on one line: other characters than visible ones are escaped, and one of more than 256 characters is cut. Or
   * its hash. Undefined if the caller gave a handle or packed keys, which do not have it.
   */
  readonly key: string | undefined
  /** The route of a request, as `stats().routes` of its `rateLimit` names it; undefined: no middleware has asked. */
  readonly route: string | undefined
  /** The limit of the rule; undefined for a key of `checkMany`. */
  readonly limit: number | undefined
  /** Milliseconds until the request would pass; `Infinity`: never. */
  readonly retryAfterMs: number
}

/** What a limiter does while its server does not answer. */
export type OnOutage = 'closed' | 'open' | 'local'

/** The message of `millrace:outage` and `millrace:recovered`, and of `onOutageChange`. */
export interface OutageChange {
  /**
   * `'outage'`: a call had no answer, and is decided without the store. `'recovered'`: the store answers again, and no
   * call has failed for a second; for longer, up to a minute, if outages follow each other within a minute.
   */
  readonly state: 'outage' | 'recovered'
  /** Why the first call of the outage had no answer: an error of the client, of the store, or of the deadline. */
  readonly cause: unknown
  /** When the outage began. */
  readonly since: Date
  /** The option `onOutage` of the limiter. */
  readonly policy: OnOutage
  /** Which store: `'redis'`, `'memcached'`, `'service'` (a decision service), or the option `source` of a backend. */
  readonly store: string
  /** The option `prefix` of the limiter; of a decision service the option `limiter`, or `'default'`. */
  readonly prefix: string
}

/** The message of `millrace:policy-changed`. */
export interface PolicyEvent {
  /** The rule that `update` has changed; undefined: the policy of a key has changed in its configuration store. */
  readonly rule: string | undefined
  /** That key, as in a {@link RefusalEvent}. */
  readonly key: string | undefined
  /** The new limit, if `update` has set one. */
  readonly limit: number | undefined
}

/** The message of `millrace:evicted-live`: tables keep no keys, so it has none. */
export interface EvictionEvent {
  /** Keys that lost their places although they still counted, since the last message. */
  readonly count: number
}

/** The options of `setEventOptions`. */
export interface EventOptions {
  /**
   * What the field `key` of messages is: the text, or a hash of it.
   * @default 'text'
   */
  keyInEvents?: 'text' | 'hash'
  /** For `'hash'`: a secret of 16 or more characters. The hash is an HMAC-SHA-256 by it, in base64url. */
  secret?: string
}

const LEAST_SECRET = 16

export const randomSecret = (): string => randomBytes(32).toString('base64url')

let secretOfKeys: string | undefined

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function setKeysInEvents(options: EventOptions): void {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  refuseUnknown(options, ['keyInEvents', 'secret'], (name, expected) => invalid('options', name, expected))
  const { keyInEvents = 'text', secret } = options
  if (keyInEvents !== 'text' && keyInEvents !== 'hash')
    throw invalid('keyInEvents', keyInEvents, "'text' or 'hash'")
  if (keyInEvents === 'hash' && !(typeof secret === 'string' && secret.length >= LEAST_SECRET))
    throw invalid('secret', typeof secret, `a string of ${LEAST_SECRET} or more characters`)
  secretOfKeys = keyInEvents === 'hash' ? secret : undefined
}

export function tellRefusal(
  limited: Channel,
  blocked: Channel,
  decision: Decision,
  key: unknown,
  route: string | undefined,
  rule = decision.rule,
): void {
  const own = MembersDecision.is(decision) ? decision.members[decision.member]! : decision // members may have like rules
  const refusing = own.rules.find((part) => part.rule === own.rule) ?? own
  const to = isBlocked(refusing) ? blocked : limited
  if (to.hasSubscribers) tell(to, key, rule, decision.limit, decision.retryAfterMs, route)
}

export function tellBatch(
  limited: Channel,
  batch: BatchDecision,
  keys: unknown,
  refusals: RefusedKeys,
  rule: string,
): void {
  for (let i = 0; i < batch.length; i++) {
    if (batch.allowed[i] === 1 || isUndecided(batch.source(i))) continue
    const key: unknown = Array.isArray(keys) ? keys[i] : undefined
    refusals.note(key)
    if (limited.hasSubscribers) tell(limited, key, rule, undefined, batch.retryAfterMs(i), undefined)
  }
}

export function tell(
  to: Channel,
  key: unknown,
  rule: string,
  limit: number | undefined,
  retryAfterMs: number,
  route: string | undefined,
): void {
  to.publish({ rule, key: shownKey(key), route, limit, retryAfterMs } satisfies RefusalEvent)
}

export function shownKey(key: unknown): string | undefined {
  if (typeof key !== 'string') return undefined
  return secretOfKeys === undefined ? inert(key) : keyHash(key, secretOfKeys)
}
