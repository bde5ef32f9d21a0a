// What a policy is, and the documents that stores hold.

import { millisecondsAs } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { refuseUnknown } from '../core/option-names.js'
import { checkRule, checkRules, type Rule, type Rules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import type { Size } from '../core/sizes.js'
import { UNLIMITED, uncountedLimitIn } from '../core/uncounted-limit.js'

/** The options of a rule of a policy. */
export interface PolicyRule extends Omit<RuleOptions, 'limit'> {
  /**
   * What the key may use in any window: as the limit of a rule. 0 refuses every request of the key; `'unlimited'`, or
   * `Infinity` in JavaScript, admits every one without a count.
   */
  limit: Size | 'unlimited'
}

/** The rules of a key: the options of one rule, or `rules`, each with a name of its own. */
export type Policy = PolicyRule | { readonly rules: readonly PolicyRule[] }

/** The policy of a key as a document: JSON, with a version and the number of its format. */
export type PolicyDocument = Policy & { readonly format: number; readonly version: number }

/** The present format of documents. A document of a later one is an error: its rules may mean something else. */
export const FORMAT = 1

/** The names of the plain form, in seconds: `{ "time_window_sec": 1, "capacity": 5, "granularity_sec": 0.1 }`. */
const PLAIN = ['time_window_sec', 'capacity', 'granularity_sec']

/** @throws MillraceError `ERR_MILLRACE_INVALID_POLICY` that names the option, the value and what would be right */
export function checkPolicy(policy: unknown): Rules {
  if (!isObject(policy))
    throw invalidPolicy('policy', policy, 'an object with limit and window, or with rules')
  try {
    const { rules } = policy
    if (rules === undefined) {
      checkNames(policy, RULE_OPTIONS, 'policy')
      return [checkPolicyRule(policy as unknown as PolicyRule)]
    }
    checkNames(policy, ['rules'], 'policy')
    return checkRules(rules, checkPolicyRule)
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code === 'ERR_MILLRACE_INVALID_POLICY') throw error
    throw invalidPolicy(error.option, error.value, error.expected, error)
  }
}

/** A rule that needs no count is checked as the one that its cells are made for. Errors name an option after `path`. */
export function checkPolicyRule(options: PolicyRule, path?: string): Rule {
  const limit = uncountedLimitIn(options.limit)
  const rule = checkRule(countable(options), path)
  return limit === undefined ? rule : { ...rule, limit }
}

/** A policy whose rules can all be counted: cells are made by it. */
export function countablePolicy(policy: Policy): Policy {
  if ('rules' in policy && policy.rules !== undefined) return { rules: policy.rules.map(countable) }
  return countable(policy as PolicyRule)
}

/** A rule with the smallest limit in place of one that needs no count. */
function countable(rule: PolicyRule): RuleOptions {
  if (uncountedLimitIn(rule.limit) === undefined) return rule as RuleOptions
  const { burst: _, ...others } = rule
  return { ...others, limit: rule.unit ?? 1 }
}

/** The document of a checked policy. Options that are undefined are left out. */
export function documentOf(policy: Policy, version: number): PolicyDocument {
  const own =
    'rules' in policy && policy.rules !== undefined
      ? { rules: policy.rules.map(given) }
      : given(policy as PolicyRule)
  return { format: FORMAT, version, ...own } as PolicyDocument
}

/** The options of a rule that are given, in one order: equal rules give equal texts. */
function given(rule: PolicyRule): PolicyRule {
  const options = rule as unknown as Record<string, unknown>
  const names = RULE_OPTIONS.filter((name) => options[name] !== undefined)
  const own = Object.fromEntries(names.map((name) => [name, options[name]]))
  return (own.limit === Number.POSITIVE_INFINITY
    ? { ...own, limit: UNLIMITED }
    : own) as unknown as PolicyRule
}

/**
 * Reads a document: of this format, or in the plain form. `name` names it in errors.
 * @throws MillraceError `ERR_MILLRACE_INVALID_POLICY`
 */
export function parsePolicy(document: unknown, name: string): { policy: Policy; version: number } {
  if (document instanceof KnownPolicy) return document
  try {
    return parse(document)
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    throw invalidPolicy(`${name}: ${error.option}`, error.value, error.expected, error)
  }
}

function parse(document: unknown): { policy: Policy; version: number } {
  if (document instanceof UnreadableDocument)
    throw invalidPolicy('document', document.text, document.expected)
  if (!isObject(document)) throw invalidPolicy('document', document, 'a policy as an object')
  const { format = FORMAT, version = 0, ...own } = document
  if (format !== FORMAT) {
    const later = Number.isInteger(format) && (format as number) > FORMAT
    const expected = later
      ? `format ${FORMAT}, the latest that this version of Millrace knows: update Millrace`
      : `format ${FORMAT}`
    throw invalidPolicy('format', format, expected)
  }
  if (!Number.isSafeInteger(version) || (version as number) < 0)
    throw invalidPolicy('version', version, 'a whole number of 0 or more')
  const policy = 'time_window_sec' in own || 'capacity' in own ? fromPlain(own) : (own as unknown as Policy)
  checkPolicy(policy)
  return { policy: Object.freeze(documentRules(policy)), version: version as number }
}

/** A policy of its own, which nobody else can change. */
function documentRules(policy: Policy): Policy {
  const { format: _, version: __, ...own } = documentOf(policy, 0) as PolicyDocument & RuleOptions
  return own
}

function fromPlain(own: Record<string, unknown>): RuleOptions {
  checkNames(own, PLAIN, 'policy')
  const { time_window_sec: window, capacity, granularity_sec: granularity } = own
  return {
    limit: capacity as number,
    window: millisecondsAs(millisecondsOf(window, 'time_window_sec')),
    ...(granularity !== undefined && { granularity: millisecondsOf(granularity, 'granularity_sec') }),
  }
}

function millisecondsOf(seconds: unknown, name: string): number {
  const ms = Number((1_000 * (seconds as number)).toFixed(6)) // 1000 * 0.0349 is not 34.9
  if (typeof seconds === 'number' && ms > 0 && Number.isFinite(ms)) return ms
  throw invalidPolicy(name, seconds, 'a number of seconds above 0')
}

/** What a backend hands on in place of a document that it has parsed and checked. */
export class KnownPolicy {
  readonly policy: Policy
  readonly version: number

  constructor(policy: Policy, version: number) {
    this.policy = policy
    this.version = version
  }
}

/** What a backend hands on in place of a document that it can't parse. */
export class UnreadableDocument {
  readonly text: unknown
  readonly expected: string

  constructor(text: unknown, expected: string) {
    this.text = text
    this.expected = expected
  }
}

/** Parses the JSON text of a document. */
export function documentIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return new UnreadableDocument(text, `JSON (${(error as Error).message})`)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function checkNames(options: object, known: readonly string[], what: string): void {
  refuseUnknown(options, known, (name, expected) => invalidPolicy(what, name, expected))
}

function invalidPolicy(option: string, value: unknown, expected: string, cause?: unknown): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_POLICY', option, value, expected, { cause })
}
