import { type ErrorCode, MillraceError } from '../core/errors.js'
import { enforced } from '../core/verdict.js'
import type { RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import { CHANGED_FIELDS, KEY_FAULT, NO_MARK, Verdict } from './reply-codes.js'

const timeOf = (ms: number): number => (ms < 0 ? Number.POSITIVE_INFINITY : ms)

/** What one rule says of a request: the numbers of the reply from `at` on. */
export function partOf(
  rule: RemoteRule,
  limit: number | undefined,
  reply: readonly number[],
  at: number,
): RemotePart {
  const [verdict, remaining, waitMs, resetMs] = [reply[at]!, reply[at + 1]!, reply[at + 2]!, reply[at + 3]!]
  return partWith(rule, limit, verdict, remaining, waitMs, resetMs, reply[at + 4]!, reply[at + 5]!)
}

/** What one rule says of a change. */
export interface ChangedPart {
  /** In units: what was given back; of unblock, whether it was blocked. */
  readonly result: number
  /**
   * Of the receipt of what was charged; below 0: nothing was charged. Of a refund by key: how many of the units were
   * charged last, in one granule or at one time. All that were charged before those are gone.
   */
  readonly mark: number
  readonly birth: number
  /**
   * How long a value that was charged lasts. Of a refund by key: how long ago the newest of the refunded units were
   * charged, or less.
   */
  readonly ms: number
  /** Of a refund by key of a window: units that count still, of all processes. */
  readonly left: number
}

type Numbers = [number, number, number, number, number]

/** What each rule says of the change with this index in a call. */
export function changedParts(rules: number, reply: readonly number[], index = 0): ChangedPart[] {
  return Array.from({ length: rules }, (_, i) => {
    const at = (index * rules + i) * CHANGED_FIELDS
    const [result, mark, birth, ms, left] = reply.slice(at, at + CHANGED_FIELDS) as Numbers
    return { result, mark, birth, ms, left }
  })
}

export function partWith(
  { rule }: RemoteRule,
  limit: number | undefined,
  verdict: number,
  remaining: number,
  waitMs: number,
  resetMs: number,
  mark: number,
  birth: number,
): RemotePart {
  const unit = rule.unit ?? 1
  const allowed = verdict === Verdict.ADMITTED
  return {
    rule: rule.name,
    limit: (limit ?? rule.limit) * unit,
    remaining: remaining * unit,
    resetMs: timeOf(resetMs),
    receipt: mark < 0 ? undefined : [mark, birth],
    birth,
    ...(mark === NO_MARK.BLOCKED && { isBlocked: true }),
    ...enforced({ allowed, retryAfterMs: allowed ? 0 : timeOf(waitMs) }, rule),
  }
}

/** The index of the rule that refuses, or -1: one that can never admit the cost comes first. */
export function refusingOf(
  rules: readonly RemoteRule[],
  cost: number,
  limits: readonly (number | undefined)[] | undefined,
  parts: readonly RemotePart[],
): number {
  const above = rules.findIndex(({ rule }, i) => isAbove(rule, cost, limits?.[i] ?? rule.limit, parts[i]!))
  return above >= 0 ? above : parts.findIndex(({ allowed }) => !allowed)
}

/** Whether this rule can never admit the cost. */
const isAbove = (rule: RemoteRule['rule'], cost: number, limit: number, part: RemotePart): boolean =>
  cost > 1 && !part.allowed && Math.ceil(cost / (rule.unit ?? 1)) > limit

const FAULTS: Readonly<Record<number, readonly [got: string, expected: string] | undefined>> = {
  [KEY_FAULT.VERSION]: ['a value of another version', 'a value that this version of Millrace has written'],
  [KEY_FAULT.SHAPE]: [
    'a value with another window or algorithm',
    'a prefix of its own for each set of rules',
  ],
  [KEY_FAULT.CUT]: ['a damaged value', 'a value that only limiters have written'],
  [KEY_FAULT.TYPE]: ['a value of another type', 'a prefix that nothing else uses'],
  [KEY_FAULT.TIME]: [
    "a rule with align: 'calendar' by clocks that are two periods or more apart",
    'the right time in this process and on the server',
  ],
}

/** @throws MillraceError with this code if the reply says why a key could not be read */
export function checkFault(first: number, key: string, code: ErrorCode = 'ERR_MILLRACE_REDIS_VALUE'): void {
  const fault = FAULTS[first]
  if (fault === undefined) return
  const [got, expected] = fault
  throw new MillraceError(code, `the value of '${key.slice(0, 64)}'`, got, expected)
}
