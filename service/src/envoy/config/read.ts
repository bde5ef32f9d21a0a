// Reads the files of limits: YAML as envoyproxy/ratelimit has it, with more in `rate_limit`.
import { type RateLimit, readLimit } from './limits.js'
import { type Branch, Level } from './tree.js'
import { ConfigError, type ConfigFile, Value } from './yaml.js'

/** The limits of all files, by domain. */
export interface Config {
  readonly domains: ReadonlyMap<string, Level>
  readonly limits: readonly RateLimit[]
}

const FIELDS = [
  ...['key', 'value', 'rate_limit', 'descriptors'],
  ...['shadow_mode', 'detailed_metric', 'value_to_metric', 'share_threshold'],
] as const
const HINTS = { quota_mode: 'no quota_mode, because there are no quota buckets' }
/** Levels below each other. */
const DEEPEST = 64

/** @throws ConfigError that names the file and the line */
export function readConfig(files: readonly ConfigFile[]): Config {
  const domains = new Map<string, Level>()
  for (const file of files) {
    const root = Value.of(file)
    const { domain, descriptors } = root.fields(['domain', 'descriptors'])
    const name = domain?.word() ?? root.fail('the field domain', 'none')
    let level = domains.get(name)
    if (level === undefined) {
      level = new Level()
      domains.set(name, level)
    }
    addAll(level, descriptors, '', 1)
  }
  return { domains, limits: [...domains.values()].flatMap((level) => [...level.limits()]) }
}

function addAll(level: Level, list: Value | undefined, path: string, depth: number): void {
  if (depth > DEEPEST) list?.fail(`at most ${DEEPEST} levels of descriptors`, 'more')
  for (const item of list?.items() ?? []) addOne(level, item, path, depth)
}

function addOne(level: Level, item: Value, path: string, depth: number): void {
  const fields = item.fields(FIELDS, HINTS)
  const key = fields.key?.word() ?? item.fail('the field key', 'none')
  const value = fields.value?.word()
  const rule = `${path}${key}${value === undefined ? '' : `_${value}`}`
  const sharesThreshold = fields.share_threshold?.flag() ?? false
  if (sharesThreshold && !value?.includes('*'))
    fields.share_threshold!.fail('a value with a * beside share_threshold: true', value ?? 'no value')
  const isShadow = fields.shadow_mode?.flag() ?? false
  const isDetailed = fields.detailed_metric?.flag() ?? false
  const below = fields.descriptors === undefined ? undefined : new Level()
  const branch: Branch = {
    rule,
    place: item.place,
    value,
    limit: fields.rate_limit && readLimit(fields.rate_limit, rule, isShadow, isDetailed),
    hasValueMetric: fields.value_to_metric?.flag() ?? false,
    sharesThreshold,
    below,
  }
  const before = level.add(key, branch)
  if (before !== undefined)
    throw new ConfigError(
      `${item.place}: ${item.name}: expected a key and value that no other descriptor of the list has, ` +
        `got ${JSON.stringify(rule)} again, which is at ${before.place}`,
    )
  if (below !== undefined) addAll(below, fields.descriptors, `${rule}.`, depth + 1)
}
