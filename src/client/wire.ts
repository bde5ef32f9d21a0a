// What goes between a client and a decision service: JSON, and what it means here.
import type { Decision, RuleDecision } from '../core/decision.js'
import { ruleFieldsOf, withFigures } from '../core/decision-fields.js'
import { MillraceError } from '../core/errors.js'
import type { LimiterRule } from '../core/limiter-rule.js'
import type { RemotePart } from '../remote/remote-decision.js'
import type { Answer } from './transport.js'

/** `Infinity`, which JSON has not. */
const INFINITY = 'Infinity'
const PENDING = 'ERR_MILLRACE_IDEMPOTENCY_PENDING'
export type WireNumber = number | typeof INFINITY

/** Whether a limit of an answer is none. */
export const isUnlimited = (limit: unknown): boolean => limit === INFINITY

export const toWire = (value: number): WireNumber => (value === Number.POSITIVE_INFINITY ? INFINITY : value)

const isFigure = (value: unknown): boolean =>
  value === INFINITY || (typeof value === 'number' && Number.isFinite(value) && value >= 0)

/** One key of a request that decides. */
export interface WireCheck {
  readonly key: string
  readonly cost: number
  readonly limiter?: string
  readonly limit?: WireNumber | Readonly<Record<string, WireNumber>>
}

/** An error as the service writes it. */
interface Problem {
  readonly status?: number
  readonly title?: string
  readonly detail?: string
  readonly code?: string
  readonly field?: string
  readonly expected?: string
  readonly mayBeCharged?: boolean
}

/** A decision of the service. */
export interface ServiceDecision {
  readonly parts: readonly RemotePart[]
  /** The index of the rule that refused, or -1. */
  readonly refusing: number
  readonly source: string | undefined
}

/** The limiters of a service. */
interface ShownLimiters {
  readonly limiters: readonly { readonly name: string; readonly rules: readonly LimiterRule[] }[]
  /** Whether it keeps the answers of requests by their `Idempotency-Key`. */
  readonly idempotency: boolean
}

/** The JSON of an answer. @throws Error of an answer that is no decision service's */
export function readJson({ status, text }: Answer): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw status === 200 ? foreign(`an answer without JSON`) : errorOf({ status }, {})
  }
}

/**
 * The error that a problem means. What says nothing about the request begins with a word of `ANSWERS`, by which an
 * outage tells whether the request may have been charged.
 * @param sent the request
 */
export function errorOf(problem: Problem, sent: object): Error {
  const { status = 500, title, detail = title ?? `status ${status}`, code, mayBeCharged } = problem
  if (status === 401) return new Error(`UNAUTHORIZED ${detail}`)
  if (status === 403) return new Error(`FORBIDDEN ${detail}`)
  if (status === 503 && code !== undefined && mayBeCharged === false) return new Error(`UNDECIDED ${detail}`)
  // 409 with this code: the request has come before, and is under way.
  const isUnknown = status >= 500 || status === 408 || status === 429 || code === PENDING
  if (isUnknown) return unavailable(detail)
  if (status === 404 || code === undefined || !/^ERR_MILLRACE_/.test(code)) return foreign(detail)
  const { field = 'request', expected = detail } = problem
  const value = (sent as Readonly<Record<string, unknown>>)[field]
  return new MillraceError(code, field, value, expected, mayBeCharged === undefined ? {} : { mayBeCharged })
}

/** Nobody knows whether the request has been done. */
export const unavailable = (why: string): Error => new Error(`UNAVAILABLE ${why}`)

export const foreign = (what: string): Error => new Error(`FOREIGN ${what}`)

/** @throws Error of an answer that is no decision */
export function readDecision(json: unknown): ServiceDecision {
  const decision = Object(json) as Decision & { readonly token?: unknown }
  const { allowed, rules = [decision], rule, source, token } = decision
  if (typeof allowed !== 'boolean' || !Array.isArray(rules) || rules.length === 0)
    throw foreign('an answer that is no decision')
  const own = typeof token === 'string' ? { token } : {}
  const parts = rules.map((part) => ({ ...readPart(part), ...own }))
  const refusing = Math.max(
    0,
    parts.findIndex((part) => part.rule === rule),
  )
  return { parts, refusing: allowed ? -1 : refusing, source: typeof source === 'string' ? source : undefined }
}

function readPart(json: unknown): RemotePart {
  const part = Object(json) as RuleDecision & { readonly blocked?: unknown }
  const { rule, allowed, limit, remaining, retryAfterMs, resetMs } = part
  const figures: readonly unknown[] = [limit, remaining, retryAfterMs, resetMs]
  if (typeof rule !== 'string' || typeof allowed !== 'boolean' || !figures.every(isFigure))
    throw foreign('a decision without its figures')
  const isBlocked = part.blocked === true
  return { ...ruleFieldsOf(withFigures(part, Number)), receipt: undefined, ...(isBlocked && { isBlocked }) }
}

/** The limiters that the service shows, the default one first. @throws Error of an answer that has none */
export function readLimiters(json: unknown): ShownLimiters {
  const { limiters, idempotency = false } = Object(json) as Partial<ShownLimiters>
  const hasRules = (limiter: unknown) => {
    const { rules } = Object(limiter) as { rules?: unknown }
    return Array.isArray(rules) && rules.every((rule) => typeof rule === 'object' && rule !== null)
  }
  if (!(Array.isArray(limiters) && limiters.every(hasRules))) throw foreign('an answer without limiters')
  return { limiters, idempotency }
}

/** A number of an answer. @throws Error of an answer without it */
export function readNumber(json: unknown, name: string): number {
  const value = (Object(json) as Readonly<Record<string, unknown>>)[name]
  if (typeof value !== 'number') throw foreign(`an answer without ${name}`)
  return value
}

/** Whether an answer says that something was done. @throws Error of an answer without it */
export function readFlag(json: unknown, name: string): boolean {
  const value = (Object(json) as Readonly<Record<string, unknown>>)[name]
  if (typeof value !== 'boolean') throw foreign(`an answer without ${name}`)
  return value
}
