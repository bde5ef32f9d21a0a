import { InvalidArgumentError } from 'commander'
import type { AlgorithmName, Duration, RuleOptions } from 'millrace'
import { ALGORITHM_OPTIONS, checkRule } from 'millrace/internal'
import type { LimitIn } from '../arguments.js'
import { type Admissions, admissionsOf, decide } from './decisions.js'
import { PROMISES } from './promises.js'
import { inOrder, type Traffic } from './traffic.js'

/** The algorithms that a replay may use. */
export const ALGORITHM_NAMES = Object.keys(PROMISES) as AlgorithmName[]

/** The options that only some algorithms have. */
export type Own = Pick<RuleOptions, 'granularity' | 'edge' | 'align' | 'burst'>

/** The rules of the command line. */
export interface RuleArguments extends Own {
  readonly algorithm: AlgorithmName
  readonly compare?: readonly AlgorithmName[]
  readonly limit: number
  readonly window: Duration
  readonly rule?: readonly LimitIn[]
}

/** Parses the algorithms to compare with: names joined by commas. */
export function algorithmNames(text: string, others: readonly AlgorithmName[] = []): AlgorithmName[] {
  const names = text.split(',') as AlgorithmName[]
  if (!names.every((name) => ALGORITHM_NAMES.includes(name)))
    throw new InvalidArgumentError(
      `Allowed choices are ${ALGORITHM_NAMES.join(', ')}, or several of them joined by commas.`,
    )
  const all = [...others, ...names]
  if (new Set(all).size < all.length) throw new InvalidArgumentError('Expected each algorithm once.')
  return all
}

/**
 * The rules to replay. They are checked before the log is read, which may take long.
 * @throws MillraceError for an invalid rule, or an option that none of the algorithms has
 */
export function rulesOf(options: RuleArguments): RuleOptions[] {
  const { algorithm, compare = [] } = options
  const compared = compare.flatMap((name): readonly string[] => ALGORITHM_OPTIONS[name])
  return rulesWith(algorithm, options, (option) => !compared.includes(option), '')
}

/**
 * The same limits by an algorithm to compare with. It gets the options that it has.
 * @throws MillraceError for an invalid rule
 */
export function comparedRules(algorithm: AlgorithmName, options: RuleArguments): RuleOptions[] {
  return rulesWith(algorithm, options, () => false, `--compare ${algorithm}: `)
}

/** The algorithm gets its own options, and all that it must have. The check refuses those that it does not have. */
function rulesWith(
  algorithm: AlgorithmName,
  { rule, limit, window, granularity, edge, align, burst }: RuleArguments,
  mustHave: (option: string) => boolean,
  path: string,
): RuleOptions[] {
  const own: readonly string[] = ALGORITHM_OPTIONS[algorithm]
  const given = Object.entries({ granularity, edge, align, burst }).filter(([option, value]) => {
    return value !== undefined && (own.includes(option) || mustHave(option))
  })
  const more = { algorithm, ...(Object.fromEntries(given) as Own) }
  if (rule === undefined) {
    checkRule({ limit, window, ...more }, path)
    return [{ limit, window, ...more }]
  }
  return rule.map((each) => {
    checkRule({ ...each, ...more }, `${path}--rule ${each.name}: `)
    return { ...each, ...more }
  })
}

/** The result of another algorithm on the same requests. */
export interface Compared extends Admissions {
  readonly algorithm: AlgorithmName
}

/** Decides all requests with these rules. */
export function comparedWith(
  algorithm: AlgorithmName,
  traffic: Traffic,
  rules: readonly RuleOptions[],
  onProgress: (done: number) => void,
): Compared {
  const order = inOrder(traffic)
  return { algorithm, ...admissionsOf(traffic, order, decide(traffic, order, rules, onProgress)) }
}
