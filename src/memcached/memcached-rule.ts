import type { Rule } from '../core/rule.js'
import { invalidRule } from '../core/rule-algorithms.js'
import type { RuleOptions } from '../core/rule-options.js'
import { LONGEST_WINDOW_MS, type RemoteRule } from '../remote/remote-rule.js'

/**
 * A rule on Memcached. Without `strict: true` it has two counters (that of the current fixed window, and that of the one
 * before, by the part of it that the sliding window still covers): its `algorithm` is `'sliding-counter'`, which needs not
 * be said, and it has no options of other algorithms.
 */
export type MemcachedRule = RuleOptions

/** The options of a rule, with the only algorithm that Memcached can have if they name none. */
export function withAlgorithm(options: RuleOptions): RuleOptions {
  const own = { ...options }
  return own.algorithm === undefined ? { ...own, algorithm: 'sliding-counter' } : own
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` for a rule that Memcached can't have */
export function checkMemcachedRule(rule: Rule, path = ''): RemoteRule {
  const { algorithm, windowMs } = rule
  if (algorithm !== 'sliding-counter')
    throw invalidRule(`${path}algorithm`, algorithm, "'sliding-counter' on Memcached, or strict: true")
  if (!Number.isInteger(windowMs))
    throw invalidRule(`${path}window`, windowMs, 'whole milliseconds on Memcached')
  if (windowMs > LONGEST_WINDOW_MS)
    throw invalidRule(`${path}window`, windowMs, 'at most 366 days on Memcached')
  return { rule, parts: 1, flags: 0, windowMs, shape: 0 }
}
