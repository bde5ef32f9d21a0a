// The rules of a limiter of the service, as the client knows them: for the headers of answers, for its share of them
// during an outage, and for the limits of calls.
import { ALGORITHM_ROWS, DEFAULT_ALGORITHM, type OwnOption } from '../core/algorithms.js'
import { millisecondsAs } from '../core/duration.js'
import type { LimiterRule } from '../core/limiter-rule.js'
import { checkRules, type Rule } from '../core/rule.js'
import { MAX_LIMIT } from '../core/rule-algorithms.js'
import { FLAGS, type FlagName, windowOptions } from '../core/rule-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import { isUnlimited } from './wire.js'

/** The rules that a user expects. @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
export const rulesExpected = (rules: unknown): readonly RemoteRule[] => checkRules(rules).map(remoteRule)

/** What stands for the rules of the service until it has shown them: what is not known limits nothing. */
export const unknownRules = (): readonly RemoteRule[] => rulesExpected([{ limit: MAX_LIMIT, window: '1s' }])

/** The rules that the service shows. @throws MillraceError for one that this version does not know */
export const rulesShown = (rules: readonly LimiterRule[]): readonly RemoteRule[] =>
  rulesExpected(rules.map(optionsOf))

function optionsOf(rule: LimiterRule): object {
  const { name, limit, windowMs, granularityMs, edge, algorithm = DEFAULT_ALGORITHM } = rule
  const { burst, maxLimit, unit } = rule
  // A rule without a limit counts nothing: here it stands as one that nobody reaches.
  if (isUnlimited(limit))
    return { name, limit: MAX_LIMIT * (unit ?? 1), window: millisecondsAs(windowMs), unit }
  const flags = FLAGS.map(([flag]) => [flag, rule[flag as FlagName]] as const).filter(
    ([, is]) => is !== undefined,
  )
  const has = (option: OwnOption) => ALGORITHM_ROWS[algorithm]?.options.includes(option) ?? false
  return {
    ...{ name, limit, algorithm, ...windowOptions(rule) },
    ...(has('granularity') && { granularity: millisecondsAs(granularityMs) }),
    ...(has('edge') && { edge }),
    ...(burst !== undefined && { burst }),
    ...(maxLimit !== undefined && { maxLimit }),
    ...(unit !== undefined && { unit }),
    ...Object.fromEntries(flags),
  }
}

/** The service counts by any rule, so none is refused here. `parts` are those of `limiter.rule.granularityMs`. */
function remoteRule(rule: Rule): RemoteRule {
  const { algorithm, align, windowMs, buckets, units, flags } = rule
  const granules = ALGORITHM_ROWS[algorithm].units === 'time' ? units : buckets
  return { rule, parts: align === 'none' ? granules : windowMs / granules, flags, windowMs, shape: 0 }
}
