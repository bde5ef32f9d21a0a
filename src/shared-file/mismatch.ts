import { formatDuration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import type { Rule } from '../core/rule.js'
import type { Arena } from '../memory/arena.js'
import { HEADER, type OnFull, setsFor, sumsFor } from '../memory/layout.js'
import { read } from '../memory/words.js'
import { isRuleName, quoted, ruleNameIn } from './rule-name.js'

/** The options of a limiter that its arena must match. */
export interface ArenaOptions {
  readonly rule: Rule
  readonly maxKeys: number
  readonly onFull: OnFull
}

/**
 * Checks that a file's arena matches the options. The limit need not match: it may change at any time.
 * @throws MillraceError `ERR_MILLRACE_SHARED_MISMATCH` with all options that differ, and both values of each
 */
export function checkMatch(path: string, arena: Arena, { rule, maxKeys, onFull }: ArenaOptions): void {
  const { shape, words, edge } = arena
  const sums = sumsFor(rule.buckets, rule.rangeSum)
  const granule = (windowMs: number, buckets: number) => formatDuration(windowMs / buckets)
  const compared: [name: string, expected: string, found: string, isSame: boolean][] = [
    ['name', quoted(rule.name), ruleNameIn(words), isRuleName(words, rule.name)],
    [
      'window',
      formatDuration(rule.windowMs),
      formatDuration(shape.windowMs),
      rule.windowMs === shape.windowMs,
    ],
    [
      'granularity',
      granule(rule.windowMs, rule.buckets),
      granule(shape.windowMs, shape.buckets),
      rule.buckets === shape.buckets,
    ],
    ['maxKeys', `${maxKeys}`, `${read(words, HEADER.MAX_KEYS)}`, setsFor(maxKeys) === shape.sets],
    ['rangeSum', sums, shape.sums, sums === shape.sums],
    ['edge', rule.edge, edge, rule.edge === edge],
    ['onFull', onFull, arena.onFull, onFull === arena.onFull],
  ]
  const differing = compared.filter(([, , , isSame]) => !isSame)
  if (differing.length === 0) return
  const list = (value: 1 | 2) => differing.map((each) => `${each[0]} ${each[value]}`).join(', ')
  throw mismatchError(path, differing.map(([name]) => name).join(', '), list(1), list(2))
}

/**
 * Checks that the file belongs to the rule. @throws MillraceError `ERR_MILLRACE_SHARED_MISMATCH` with both
 * names
 */
export function checkRuleName(path: string, { words }: Arena, name: string): void {
  if (isRuleName(words, name)) return
  throw mismatchError(path, 'name', `name ${quoted(name)}`, `name ${ruleNameIn(words)}`)
}

/** An error that names both values. */
export function mismatchError(path: string, option: string, given: string, found: string): MillraceError {
  const remedy = 'or use another file, or delete this one while no process has it open'
  const expected = `${found} as in the file ${path} (${remedy})`
  return new MillraceError('ERR_MILLRACE_SHARED_MISMATCH', option, given, expected)
}
