import { sumsOf } from '../core/algorithms.js'
import { MillraceError } from '../core/errors.js'
import type { Rule, Rules } from '../core/rule.js'
import { differences } from '../core/rule-options.js'
import type { Seeds } from '../memory/arena.js'
import { type Arenas, seedsOf } from '../memory/arenas.js'
import { HEADER, type OnFull, setsFor } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'
import { hasHadWindow } from '../memory/records.js'
import { unitIn } from '../memory/unit.js'
import { read } from '../memory/words.js'
import { isRuleName, quoted, ruleNameIn } from './rule-name.js'

/** The options of a limiter that the arenas of its file must match. */
export interface ArenaOptions {
  readonly rules: Rules
  readonly maxKeys: number
  readonly onFull: OnFull
  /** The seeds of the hash that its keys must have; undefined: any. */
  readonly seeds?: Seeds
}

/** An option with its value in the limiter and its value in the file. */
type Compared = readonly [name: string, expected: string, found: string, isSame: boolean]

/**
 * Checks that a file's arenas match the options. Limits need not match: they may change at any time. Nor need
 * the windows, if the file has had them.
 * @throws MillraceError `ERR_MILLRACE_SHARED_MISMATCH` with all options that differ, and both values of each
 */
export function checkMatch(
  path: string,
  arenas: Arenas,
  { rules, maxKeys, onFull, seeds }: ArenaOptions,
): void {
  const [{ words, shape, onFull: foundOnFull }] = arenas
  const areOfNames = isOfNames(arenas, namesOf(rules))
  const compared: Compared[] = [
    ...(rules.length === 1 && arenas.length === 1
      ? compareRule(rules[0], arenas[0], '')
      : areOfNames
        ? rules.flatMap((rule, i) => compareRule(rule, arenas[i]!, `rules[${i}].`))
        : [['rules', listed(namesOf(rules).map(quoted)), namesIn(arenas), false] as const]),
    ['maxKeys', `${maxKeys}`, `${read(words, HEADER.MAX_KEYS)}`, setsFor(maxKeys) === shape.sets],
    ['onFull', onFull, foundOnFull, onFull === foundOnFull],
    ...(seeds === undefined ? [] : [compareSeeds(seeds, seedsOf(arenas[0]))]),
  ]
  const differing = compared.filter(([, , , isSame]) => !isSame)
  if (differing.length === 0) return
  const list = (value: 1 | 2) => listed(differing.map((each) => `${each[0]} ${each[value]}`))
  throw mismatchError(path, listed(differing.map(([name]) => name)), list(1), list(2))
}

/** The file of other windows of a limiter hashes its keys as the first file does, unless that one was replaced. */
function compareSeeds(expected: Seeds, found: Seeds): Compared {
  const shown = (seeds: Seeds) => seeds.map((seed) => (seed >>> 0).toString(16)).join(' ')
  return ['seed', shown(expected), shown(found), expected[0] === found[0] && expected[1] === found[1]]
}

/**
 * Compares one rule with its arena. `at` stands before the names of its options. The window may be any that the
 * rule has had: `update` may have changed it since the options were written.
 */
function compareRule(rule: Rule, arena: Arena, at: string): Compared[] {
  const { shape, words, edge, algorithm, align, period, rate, timeZone, flags } = arena
  const { windowMs, buckets } = hasHadWindow(words, rule) ? rule : shape
  const own = { ...rule, sums: sumsOf({ ...rule, buckets: shape.cellBuckets }) }
  const recorded = {
    edge,
    algorithm,
    align,
    period,
    rate,
    timeZone,
    flags,
    windowMs,
    buckets,
    units: shape.units,
  }
  const found = { ...own, ...recorded, unit: unitIn(words), sums: shape.sums }
  return [
    [`${at}name`, quoted(rule.name), ruleNameIn(words), isRuleName(words, rule.name)],
    ...differences(own, found).map(([name, ...texts]) => [`${at}${name}`, ...texts, false] as const),
  ]
}

/**
 * Checks that the file belongs to the rules of these names.
 * @throws MillraceError `ERR_MILLRACE_SHARED_MISMATCH` with all names
 */
export function checkRuleNames(path: string, arenas: Arenas, names: readonly string[]): void {
  if (isOfNames(arenas, names)) return
  const option = names.length === 1 && arenas.length === 1 ? 'name' : 'rules'
  const given = listed(names.map(quoted))
  throw mismatchError(path, option, `${option} ${given}`, `${option} ${namesIn(arenas)}`)
}

function isOfNames(arenas: Arenas, names: readonly string[]): boolean {
  if (arenas.length !== names.length) return false
  return arenas.every(({ words }, i) => isRuleName(words, names[i]!))
}

const namesOf = (rules: Rules): string[] => rules.map(({ name }) => name)
const namesIn = (arenas: Arenas): string => listed(arenas.map(({ words }) => ruleNameIn(words)))
const listed = (texts: readonly string[]): string => texts.join(', ')

/** An error that names both values. */
export function mismatchError(path: string, option: string, given: string, found: string): MillraceError {
  const remedy = 'or use another file, or delete this one while no process has it open'
  const expected = `${found} as in the file ${path} (${remedy})`
  return new MillraceError('ERR_MILLRACE_SHARED_MISMATCH', option, given, expected)
}
