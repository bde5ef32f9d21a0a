import { createHash } from 'node:crypto'
import { ALGORITHM_ROWS, type AlgorithmName, serverOf } from '../core/algorithms.js'
import type { Rule } from '../core/rule.js'
import { invalidRule } from '../core/rule-algorithms.js'
import { checkRemoteRule, LONGEST_WINDOW_MS, type RemoteRule } from './remote-rule.js'

/** How Redis keeps the keys of a rule: as packed strings, or by the script of their algorithm. */
export type Kind = 'packed' | AlgorithmName

export const kindOf = ({ algorithm }: Pick<Rule, 'algorithm'>): Kind =>
  ALGORITHM_ROWS[algorithm].server?.code === undefined ? algorithm : 'packed'

/**
 * @param on the name of the store, for errors
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` for a rule that a store can't have
 */
export const checkStoredRule = (rule: Rule, path: string, on: string): RemoteRule =>
  kindOf(rule) === 'packed' ? checkRemoteRule(rule, path, on) : countingRule(rule, path, on)

/** `parts` are those of `limiter.rule.granularityMs`: a log has milliseconds, a counter its whole window. */
function countingRule(rule: Rule, path: string, on: string): RemoteRule {
  const { algorithm, windowMs } = rule
  if (ALGORITHM_ROWS[algorithm].server === undefined)
    throw invalidRule(`${path}algorithm`, algorithm, `one that counts on ${on}`)
  if (!Number.isInteger(windowMs)) throw invalidRule(`${path}window`, windowMs, `whole milliseconds on ${on}`)
  if (windowMs > LONGEST_WINDOW_MS) throw invalidRule(`${path}window`, windowMs, `at most 366 days on ${on}`)
  const parts = serverOf(algorithm).parts(rule)
  return { rule, parts, flags: rule.flags, windowMs, shape: shapeOf(`${algorithm} ${windowMs}`) }
}

/** A checksum of algorithm and window, 16 bits. */
const shapeOf = (text: string): number => createHash('sha1').update(text).digest().readUInt16BE()
