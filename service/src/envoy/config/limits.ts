// What a file says of one limit.
import { MillraceError } from 'millrace'
import { ALGORITHM_OPTIONS, checkRule, parseDuration } from 'millrace/internal'
import { UNIT_MS, UNITS } from '../contract.js'
import { ConfigError, type Value } from './yaml.js'

/** How a limit counts. Limits that count alike share a limiter, and each of their keys has one count. */
export interface Counting {
  readonly windowMs: number
  readonly algorithm: string
  readonly granularity: string | undefined
  /** Whether what it would refuse is only counted. */
  readonly isShadow: boolean
  /** Of algorithms that count in units of the limit. */
  readonly ownLimit: number | undefined
  /** In place of `windowMs`, the periods of a time zone. */
  readonly calendar?: { readonly period: string; readonly timeZone: string } | undefined
}

/** A `rate_limit` of a file. */
export interface RateLimit {
  /** The keys and values that lead to it, such as `message_type_marketing.to_number`. */
  readonly rule: string
  readonly place: string
  readonly name: string
  /** Names of limits that it replaces in a request. */
  readonly replaces: readonly string[]
  readonly isUnlimited: boolean
  readonly requestsPerUnit: number
  /** The number of a unit; 0: none, as for a `window` or with a `unit_multiplier`. */
  readonly unit: number
  readonly counting: Counting
  readonly isDetailed: boolean
}

const DEFAULT_ALGORITHM = 'sliding-window'
/** The largest limit of the algorithms of which one limiter counts by all limits. */
const MOST: Readonly<Record<string, number>> = { 'sliding-window': 2 ** 22 - 2, 'fixed-window': 2 ** 21 - 2 }
const MOST_OTHERS = 2 ** 22 - 2
const MOST_MULTIPLIER = 2 ** 32 - 1
const FIELDS = [
  ...['unit', 'requests_per_unit', 'unit_multiplier', 'unlimited', 'name', 'replaces'],
  ...['window', 'algorithm', 'granularity', 'align', 'time_zone'],
] as const
const ALGORITHMS = Object.keys(ALGORITHM_OPTIONS).filter((name) => name !== 'auto')
const PERIODS = ['day', 'week', 'month', 'year']
const UNIT_NAMES = UNITS.slice(1).map((unit) => unit.toLowerCase())

/** Places of flags that belong beside the limit. */
const HINTS = Object.fromEntries(
  ['shadow_mode', 'detailed_metric', 'value_to_metric', 'share_threshold'].map((name) => [
    name,
    `${name} beside rate_limit, not in it`,
  ]),
)

export function countingOf(
  windowMs: number,
  requestsPerUnit: number,
  isShadow = false,
  algorithm = DEFAULT_ALGORITHM,
  granularity?: string,
): Counting {
  const ownLimit = algorithm in MOST ? undefined : Math.max(1, requestsPerUnit)
  return { windowMs, algorithm, granularity, isShadow, ownLimit }
}

/** The largest limit of a limiter that counts so. */
export const mostOf = (algorithm = DEFAULT_ALGORITHM): number => MOST[algorithm] ?? MOST_OTHERS

/** @throws ConfigError */
export function readLimit(value: Value, rule: string, isShadow: boolean, isDetailed: boolean): RateLimit {
  const fields = value.fields(FIELDS, HINTS)
  const name = fields.name?.word() ?? ''
  const shared = { rule, place: value.place, name, replaces: replacesOf(fields.replaces, name), isDetailed }
  if (fields.unlimited?.flag()) {
    for (const other of [fields.unit, fields.window])
      other?.fail('no unit and no window beside unlimited: true')
    return { ...shared, isUnlimited: true, requestsPerUnit: 0, unit: 0, counting: countingOf(1_000, 1) }
  }
  const algorithm = fields.algorithm === undefined ? undefined : algorithmIn(fields.algorithm)
  const requestsPerUnit =
    fields.requests_per_unit?.integer(0, mostOf(algorithm)) ??
    value.fail('the field requests_per_unit', 'none')
  const { windowMs, unit } = windowOf(value, fields.unit, fields.unit_multiplier, fields.window)
  const counting = {
    ...countingOf(windowMs, requestsPerUnit, isShadow, algorithm, fields.granularity?.word()),
    calendar: calendarOf(fields),
  }
  checkCounting(value, counting)
  return { ...shared, isUnlimited: false, requestsPerUnit, unit, counting }
}

function replacesOf(value: Value | undefined, own: string): string[] {
  return (value?.items() ?? []).map((item) => {
    const { name } = item.fields(['name'])
    const replaced = name?.word() ?? item.fail('the name of a limit', 'none')
    return replaced === own ? name!.fail('the name of another limit') : replaced
  })
}

function calendarOf(fields: Partial<Record<(typeof FIELDS)[number], Value>>): Counting['calendar'] {
  const { align, time_zone, unit, unit_multiplier, window } = fields
  if (align === undefined) return time_zone?.fail('no time_zone without align: calendar')
  if (align.word() !== 'calendar') align.fail('calendar, or no align')
  window?.fail('a unit beside align: calendar')
  unit_multiplier?.fail('no unit_multiplier beside align: calendar')
  const period = unit!.word().toLowerCase()
  if (!PERIODS.includes(period)) unit!.fail(`one of ${PERIODS.join(', ')} beside align: calendar`)
  return { period, timeZone: time_zone?.word() ?? 'UTC' }
}

function windowOf(limit: Value, unit?: Value, multiplier?: Value, window?: Value) {
  if (window !== undefined) {
    unit?.fail('either unit or window')
    multiplier?.fail('no unit_multiplier beside window')
    const windowMs = durationOf(window)
    return { windowMs, unit: Math.max(0, UNIT_MS.indexOf(windowMs as never)) }
  }
  if (unit === undefined) limit.fail(`a unit (${UNIT_NAMES.join(', ')}) or a window`, 'neither')
  const number = UNITS.indexOf(unit.word().toUpperCase() as (typeof UNITS)[number])
  if (number < 1) unit.fail(`one of ${UNIT_NAMES.join(', ')}`)
  const times = multiplier?.integer(1, MOST_MULTIPLIER) ?? 1
  return { windowMs: UNIT_MS[number]! * times, unit: number }
}

function durationOf(value: Value): number {
  try {
    return parseDuration(value.word() as '1s', value.name)
  } catch {
    return value.fail('a duration with its unit, such as 250ms, 10s or 5m')
  }
}

function algorithmIn(value: Value): string {
  const name = value.word()
  return ALGORITHMS.includes(name) ? name : value.fail(`one of ${ALGORITHMS.join(', ')}`)
}

/** The options of a limiter that counts so. */
export function ruleOf({ windowMs, algorithm, granularity, isShadow, ownLimit, calendar }: Counting) {
  return {
    limit: ownLimit ?? mostOf(algorithm),
    ...(calendar === undefined ? { window: windowMs } : { align: 'calendar', ...calendar }),
    algorithm,
    ...(granularity !== undefined && { granularity }),
    ...(isShadow && { shadow: true }),
  }
}

function checkCounting({ place, name }: Value, counting: Counting): void {
  try {
    checkRule(ruleOf(counting) as never, `${name}.`)
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    throw new ConfigError(`${place}: ${error.message}`)
  }
}
