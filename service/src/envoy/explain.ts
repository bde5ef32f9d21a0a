// Which limits a request meets, and why, in words: for `millrace config check`.
import { formatDuration } from 'millrace/internal'
import { OptionError } from '../options/option.js'
import { readFiles } from './config/files.js'
import type { RateLimit } from './config/limits.js'
import { readConfig } from './config/read.js'
import { findLimit, type Step } from './config/tree.js'
import type { Entry } from './contract.js'

export { OptionError }

/** The entries in `key=value,key=value`; a comma in a value is `\,`. Undefined for another text. */
export function entriesIn(text: string): Entry[] | undefined {
  const entries = text.split(/(?<!\\),/).map((part): Entry | undefined => {
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(part.replaceAll('\\,', ',')) ?? []
    return key === undefined ? undefined : { key, value: value! }
  })
  return entries.every((entry) => entry !== undefined) ? entries : undefined
}

/**
 * Some lines for each descriptor of a request.
 * @param domain undefined: the one that the files have
 * @throws OptionError for files that are wrong, and for a domain that they don't have
 */
export function explain(
  paths: readonly string[],
  domain: string | undefined,
  descriptors: readonly (readonly Entry[])[],
): string[] {
  const { domains } = readConfig(readFiles(paths))
  const names = [...domains.keys()]
  const name = domain ?? (names.length === 1 ? names[0]! : undefined)
  if (name === undefined || !domains.has(name)) {
    const given = name === undefined ? 'none' : JSON.stringify(name)
    throw new OptionError(`domain: expected one of the files: ${names.join(', ')}; got ${given}`)
  }
  const found = descriptors.map((entries) => {
    const steps: Step[] = []
    return { entries, steps, met: findLimit(domains.get(name)!, name, entries, steps) }
  })
  const replacing = found.flatMap(
    ({ met }) => met?.limit.replaces.map((each) => [each, met.limit] as const) ?? [],
  )
  return found.flatMap(({ entries, steps, met }) => [
    `${name}: ${entries.map(({ key, value }) => `${key}=${value}`).join(', ')}`,
    ...steps.map(stepOf),
    ...(met === undefined
      ? [`  no limit: ${reasonOf(entries, steps)}`]
      : limitLines(met.limit, met.key, met.shown, replacing.find(([each]) => each === met.limit.name)?.[1])),
  ])
}

function stepOf({ entry: { key, value }, branch }: Step): string {
  const entry = `  ${key}=${value}: `
  if (branch === undefined) return `${entry}no descriptor of this key and value`
  const kind =
    branch.value === undefined
      ? 'any value'
      : branch.value === value
        ? 'this value'
        : `the values ${branch.value}`
  return `${entry}the descriptor of ${kind}, ${branch.place}`
}

function reasonOf(entries: readonly Entry[], steps: readonly Step[]): string {
  const last = steps.at(-1)!
  if (last.branch === undefined)
    return steps.length > 1 && steps.at(-2)!.branch!.below === undefined
      ? 'the request has more entries than the file has levels'
      : 'the list has no descriptor for an entry'
  return last.branch.below !== undefined && steps.length === entries.length
    ? 'limits are on the levels below it'
    : 'the descriptor has no rate_limit'
}

function limitLines(limit: RateLimit, key: string, shown: string, by: RateLimit | undefined): string[] {
  const { rule, place, counting, requestsPerUnit } = limit
  const { windowMs, algorithm, granularity, isShadow, calendar } = counting
  const lines = [`  rule: ${rule}, ${place}`]
  if (by !== undefined) return [...lines, `  replaced by: ${by.rule}, ${by.place}: it is not charged`]
  if (limit.isUnlimited) return [...lines, '  limit: unlimited']
  const buckets = granularity === undefined ? '' : `, in buckets of ${granularity}`
  const windows =
    calendar === undefined
      ? `in any ${formatDuration(windowMs)}`
      : `in each ${calendar.period} of ${calendar.timeZone}`
  lines.push(`  limit: ${requestsPerUnit} ${windows}, by ${algorithm}${buckets}`)
  if (isShadow) lines.push('  shadow_mode: it admits in any case')
  lines.push(`  counts by: ${key}`)
  if (shown !== '') lines.push(`  metrics show: ${shown}`)
  return lines
}
