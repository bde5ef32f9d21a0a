import { invalid } from '../../core/errors.js'
import type { RemoteRule } from '../../remote/remote-rule.js'

/** The number of parts of every key, or of those keys that are named. */
export type Split = number | Readonly<Record<string, number>>

/** Keys that are split. */
export interface SplitPlan {
  /** The parts of a key: 1 if it is not split. */
  readonly partsOf: (key: string) => number
  /** The most parts of a key. */
  readonly most: number
}

const MOST_PARTS = 1_024

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkSplit(split: unknown, rules: readonly RemoteRule[]): SplitPlan | undefined {
  if (split === undefined) return undefined
  if (typeof split === 'number') {
    const parts = checkParts(split, rules, 'split')
    return parts === 1 ? undefined : { partsOf: () => parts, most: parts }
  }
  if (typeof split !== 'object' || split === null || Array.isArray(split))
    throw invalid('split', split, 'a number of parts, or an object of keys and their numbers of parts')
  const byKey = new Map(
    Object.entries(split).map(([key, parts]) => {
      return [key, checkParts(parts, rules, `split[${JSON.stringify(key.slice(0, 64))}]`)]
    }),
  )
  return { partsOf: (key) => byKey.get(key) ?? 1, most: Math.max(1, ...byKey.values()) }
}

function checkParts(parts: unknown, rules: readonly RemoteRule[], option: string): number {
  if (!Number.isInteger(parts) || (parts as number) < 1 || (parts as number) > MOST_PARTS)
    throw invalid(option, parts, `an integer from 1 to ${MOST_PARTS}`)
  const small = rules.find(({ rule }) => rule.limit < (parts as number))
  if (small === undefined) return parts as number
  const { name, limit } = small.rule
  throw invalid(option, parts, `at most ${limit}, the limit of '${name}': each part needs a unit of it`)
}
