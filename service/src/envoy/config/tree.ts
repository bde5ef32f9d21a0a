// The descriptors of a domain as a tree: which limit a request meets.
import type { Entry } from '../contract.js'
import type { RateLimit } from './limits.js'

/** A descriptor of a file. */
export interface Branch {
  /** As in `RateLimit.rule`: the path to it. */
  readonly rule: string
  readonly place: string
  /** Undefined: any value. */
  readonly value: string | undefined
  readonly limit: RateLimit | undefined
  readonly hasValueMetric: boolean
  readonly sharesThreshold: boolean
  /** Undefined: nothing is below it. */
  readonly below: Level | undefined
}

/** A value with wildcards: the texts between them. */
interface Pattern {
  readonly parts: readonly string[]
  readonly branch: Branch
}

/** The descriptors of one key, in one list. */
interface OfKey {
  readonly exact: Map<string, Branch>
  /** In the order of the files. */
  readonly patterns: Pattern[]
  any: Branch | undefined
}

/** A list of descriptors, and those below them. */
export class Level {
  readonly #keys = new Map<string, OfKey>()

  /** Returns the one with the same key and value that is there already. */
  add(key: string, branch: Branch): Branch | undefined {
    let own = this.#keys.get(key)
    if (own === undefined) {
      own = { exact: new Map(), patterns: [], any: undefined }
      this.#keys.set(key, own)
    }
    const { value } = branch
    if (value === undefined) {
      const before = own.any
      own.any ??= branch
      return before
    }
    const before = own.exact.get(value)
    if (before !== undefined) return before
    own.exact.set(value, branch)
    if (value.includes('*')) own.patterns.push({ parts: value.split('*'), branch })
    return undefined
  }

  /** The most specific descriptor of an entry: of its value, of a pattern, of any value. */
  find({ key, value }: Entry): Branch | undefined {
    const own = this.#keys.get(key)
    if (own === undefined) return undefined
    return own.exact.get(value) ?? own.patterns.find(({ parts }) => matches(parts, value))?.branch ?? own.any
  }

  /** All limits, for those that are made of them. */
  *limits(): Iterable<RateLimit> {
    for (const { exact, any } of this.#keys.values()) {
      for (const { limit, below } of [...exact.values(), ...(any === undefined ? [] : [any])]) {
        if (limit !== undefined) yield limit
        if (below !== undefined) yield* below.limits()
      }
    }
  }
}

/** Whether a text is these parts, in order, with anything between them. */
function matches(parts: readonly string[], text: string): boolean {
  const [first, last] = [parts[0]!, parts.at(-1)!]
  if (!text.startsWith(first)) return false
  const end = text.length - last.length
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= end && text.endsWith(last)
}

/** The limit that a descriptor meets, and what of the descriptor it counts by. */
export interface Met {
  readonly limit: RateLimit
  /** The key of its count. */
  readonly key: string
  /** The values that metrics show; '' for none. */
  readonly shown: string
}

/** What `millrace config check` says of one entry. */
export interface Step {
  readonly entry: Entry
  readonly branch: Branch | undefined
}

/** The key of a count: without the limit, which may change, and not to be mistaken for another one. */
export const countKey = (domain: string, entries: readonly Entry[]): string =>
  JSON.stringify([domain, ...entries.flatMap(({ key, value }) => [key, value])])

/**
 * The limit of a descriptor; undefined: none. It has as many entries as there are levels to its limit.
 * @param steps what was found is added here
 */
export function findLimit(
  root: Level,
  domain: string,
  entries: readonly Entry[],
  steps?: Step[],
): Met | undefined {
  let level: Level | undefined = root
  let isShared = false
  let isShown = false
  const branches: Branch[] = []
  for (const entry of entries) {
    const branch: Branch | undefined = level?.find(entry)
    steps?.push({ entry, branch })
    if (branch === undefined) return undefined
    branches.push(branch)
    isShared ||= sharesPattern(branch, entry)
    isShown ||= branch.hasValueMetric
    level = branch.below
  }
  const limit = branches.at(-1)?.limit
  if (limit === undefined) return undefined
  const counted = isShared ? entries.map((entry, i) => countedEntry(branches[i]!, entry)) : entries
  const shown =
    limit.isDetailed || isShown
      ? counted.filter((_, i) => limit.isDetailed || showsValue(branches[i]!)).map(textOf)
      : []
  return { limit, key: countKey(domain, counted), shown: shown.join(',') }
}

/** A value that is in the file stands in the name of the rule already. */
const showsValue = ({ hasValueMetric, value }: Branch): boolean =>
  hasValueMetric && (value === undefined || value.includes('*'))

const textOf = ({ key, value }: Entry): string => `${key}=${value}`

/** Whether all values of a pattern count as one. */
const sharesPattern = ({ sharesThreshold, value }: Branch, entry: Entry): boolean =>
  sharesThreshold && value !== entry.value

const countedEntry = (branch: Branch, entry: Entry): Entry =>
  sharesPattern(branch, entry) ? { key: entry.key, value: branch.value! } : entry
