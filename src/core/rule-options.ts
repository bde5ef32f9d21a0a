import {
  ALGORITHM_ROWS,
  ALGORITHMS,
  type AlgorithmChoice,
  type AlgorithmName,
  type Counting,
  DEFAULT_ALGORITHM,
} from './algorithms.js'
import type { Sums } from './cell-size.js'
import { type Duration, formatDuration, millisecondsAs } from './duration.js'
import type { LimiterRule } from './limiter-rule.js'
import {
  ALIGNS,
  type Align,
  type Alignment,
  EDGES,
  type Edge,
  PERIODS,
  type Period,
  type RangeSumName,
} from './rule-algorithms.js'
import type { Size } from './sizes.js'

/** The options of a rule. */
export interface RuleOptions {
  /**
   * What a key may use in any window: an integer from 1 to 4,194,302. With `unit` it may be larger, and a
   * size such as `'10GB'`. It is rounded down to whole units.
   */
  limit: Size
  /**
   * The size of the units that are counted, for a limit above 4,194,302: a number or a size such as
   * `'64KB'`. The limit must be 1 to 4,194,302 units. All costs, limits and counts of the rule are then
   * quantities, such as bytes. Every conversion to units rounds against the client: a cost up, a limit down.
   * @default costs and limits are counted as they are
   */
  unit?: Size | undefined
  /**
   * How long a unit counts after its use: from 1 ms to 10,000 years, such as `'1m'`. Every rule must have it, but for one
   * with `align: 'calendar'`, which must not.
   */
  window?: Duration | undefined
  /**
   * The length of one bucket. A unit counts for up to one granularity longer than the window. A finer
   * granularity is more exact, and takes 4 more bytes of each key for each bucket. It must divide the window
   * into at most 1,048,576 equal buckets.
   * @default a sixtieth of the window
   */
  granularity?: Duration | undefined
  /**
   * The data structure that sums a window of more than 256 buckets: `'blocks'` or `'fenwick'`. Both decide
   * alike; they differ only in speed. A window of up to 256 buckets is summed directly, and does not accept
   * this option.
   * @default 'blocks'; above 262,144 buckets 'fenwick'
   */
  rangeSum?: RangeSumName | undefined
  /**
   * How the rule counts.
   * - `'sliding-window'`: in buckets of one granularity. A key never exceeds its limit in any window.
   * - `'sliding-log'`: by the time of each unit, exact to the millisecond. It takes 4 bytes of each key for each
   *   unit of the limit, which is at most 4,096.
   * - `'sliding-counter'`: in two windows aligned to the clock, the present one and the one before. What was
   *   used in the one before counts by the part of it that the last `window` still covers, in sixteenths,
   *   rounded up: as if it had been used evenly. It takes little memory, and is not exact.
   * - `'fixed-window'`: in windows that follow each other. A key may use its limit at the end of one and again
   *   at the beginning of the next. At most 2,097,150.
   * - `'token-bucket'`: a key has at most `burst` tokens, and gets `limit` new ones in each `window`, evenly.
   * - `'leaky-bucket'`: the same seen from the other side: a cost fills the bucket, and it leaks.
   * - `'auto'`: `'sliding-log'` where it takes less memory than the buckets of `'sliding-window'`, otherwise that.
   *   `limiter.rule.algorithm` says which.
   * @default 'sliding-window'
   */
  algorithm?: AlgorithmChoice | undefined
  /**
   * Where the windows of `'fixed-window'` begin: with `'clock'` at whole multiples of the window in UTC, by the
   * system's time at creation or a clock of your own; with `'first'` at a key's first charge; with `'calendar'` with
   * the days, weeks, months or years of a time zone, by the same time: see `period`.
   * @default 'clock'
   */
  align?: Alignment | undefined
  /**
   * The windows of `align: 'calendar'`, which needs it: from a midnight of `timeZone` to another one. A week begins on
   * Monday. Where clocks are put forward or back, a day has 23 or 25 hours. `limiter.rule.windowMs` and headers have its
   * longest length, with days of 24 hours: a month has 31 of them, a year 366. `resetMs` and `retryAfterMs` are exact.
   */
  period?: Period | undefined
  /**
   * The time zone of `align: 'calendar'`: a name of the IANA database that the runtime knows, such as
   * `'Europe/Berlin'`.
   * @default 'UTC'
   */
  timeZone?: string | undefined
  /**
   * What a key of `'token-bucket'` or `'leaky-bucket'` may use at once: an integer from 1 to 262,144,
   * at least the tokens that come in a millisecond. `decision.limit` is this number.
   * @default limit
   */
  burst?: Size | undefined
  /**
   * The largest limit that `update` and the limits of calls may give a rule of `'sliding-log'`, as the option
   * `limit`: up to 4,096. It reserves 4 bytes of each key for each unit.
   * @default limit
   */
  maxLimit?: Size | undefined
  /**
   * How the limiter counts the oldest bucket, which lies only partly inside the window.
   * @default 'strict'
   */
  edge?: Edge | undefined
  /**
   * Whether a refused request is charged, too: a client that goes on asking is refused until it pauses. The
   * refusals of `check`, `checkOrThrow`, `reserve` and `checkMany` are charged like an admission by the same limit, up
   * to the largest count of a bucket (see `penalize`). Those of `wait` and `peek` are not, nor is a cost above the
   * limit. Of several rules, each one with this option charges what it refuses itself, in any order of the rules. The
   * addon leaves the refusals and the batches of such a rule to TypeScript.
   * @default false
   */
  countRefused?: boolean | undefined
  /**
   * Whether to try the rule without enforcing it: it decides and counts, but every request is allowed.
   * `decision.shadow` and `stats().shadowDenied` say what the rule would have done. A request that would have
   * been refused is not charged.
   * @default false
   */
  shadow?: boolean | undefined
  /**
   * The name of the rule, in decisions and for `update`: 1 or more characters.
   * @default 'default'
   */
  name?: string | undefined
}

/** A checked rule, as its options have made it. */
export interface CountedRule extends Counting {
  readonly name: string
  /** Present if the option was given: 1 to 2^53 - 1. */
  readonly unit?: number | undefined
  readonly algorithm: AlgorithmName
  /** Present with `align: 'calendar'`. */
  readonly timeZone?: string | undefined
  /** The bits of the options that are true (`OptionRow.flag`). */
  readonly flags: number
}

/** All that the code needs to know of an option of a rule to carry it to every place. */
export interface OptionRow {
  /** The bit of an option that is true or false, in the flags of a rule. */
  readonly flag?: number
  /** The word of a record (`RECORD`) that has the option's value, as an index into `choices`. */
  readonly record?: 'ALGORITHM' | 'EDGE' | 'ALIGN' | 'PERIOD'
  readonly choices?: readonly string[]
  /**
   * In what all processes on one file must agree: a value, and its text if it differs. Without it they may
   * differ. If a rule has no value, it agrees with any.
   */
  readonly agrees?: (rule: SummedRule) => readonly [value: string | number | undefined, text?: string]
  /** What `limiter.rule` shows of it. */
  readonly shown?: (rule: ShownSource) => Partial<LimiterRule>
}

/** A rule with the way in which its window is summed. */
export interface SummedRule extends CountedRule {
  readonly sums: Sums
}

/** A rule to be shown: its limit is a quantity. */
export interface ShownSource extends CountedRule {
  readonly granularityMs: number
}

/** The limit of a rule, of what a key may use at once; or its window, of that in which it gets that back. */
export const ofRate = ({ rate }: Pick<CountedRule, 'rate'>, size: number): number =>
  rate === undefined ? size : (size * rate.limit) / rate.burst

const isLog = ({ algorithm }: CountedRule): boolean => ALGORITHM_ROWS[algorithm].units === 'entries'

/** The options by which a rule has its windows. */
export function windowOptions(rule: {
  readonly windowMs: number
  readonly align?: Align | undefined
  readonly period?: CountedRule['period'] | undefined
  readonly timeZone?: string | undefined
}): Pick<RuleOptions, 'window' | 'align' | 'period' | 'timeZone'> {
  const { windowMs, align = 'none', period, timeZone } = rule
  if (align === 'calendar') return { align, period: period as Period, timeZone: timeZone! }
  return { window: millisecondsAs(windowMs), ...(align !== 'none' && { align }) }
}

/** The options of a rule, in the order of texts. */
export const OPTION_ROWS = {
  limit: { shown: (rule) => ({ limit: ofRate(rule, rule.limit) }) },
  unit: {
    agrees: ({ unit }) => [unit ?? 'none'],
    shown: ({ unit }) => (unit === undefined ? {} : { unit }),
  },
  window: {
    agrees: ({ windowMs }) => [windowMs, formatDuration(windowMs)],
    shown: (rule) => ({ windowMs: ofRate(rule, rule.windowMs) }),
  },
  granularity: {
    agrees: ({ windowMs, buckets }) => [buckets, formatDuration(windowMs / buckets)],
    shown: ({ granularityMs }) => ({ granularityMs }),
  },
  algorithm: {
    record: 'ALGORITHM',
    choices: ALGORITHMS,
    agrees: ({ algorithm }) => [algorithm],
    shown: ({ algorithm }) => (algorithm === DEFAULT_ALGORITHM ? {} : { algorithm }),
  },
  edge: {
    record: 'EDGE',
    choices: EDGES,
    agrees: ({ edge }) => [edge],
    shown: ({ edge }) => ({ edge }),
  },
  align: {
    record: 'ALIGN',
    choices: ALIGNS,
    agrees: ({ align }) => [align],
    shown: ({ align }) => (align === 'none' ? {} : { align }),
  },
  period: {
    record: 'PERIOD',
    choices: PERIODS,
    agrees: ({ period }) => [period],
    shown: ({ period }) => (period === 'none' ? {} : { period }),
  },
  timeZone: {
    agrees: ({ timeZone }) => [timeZone ?? 'none'],
    shown: ({ timeZone }) => (timeZone === undefined ? {} : { timeZone }),
  },
  burst: {
    // The part of the limit that a burst is. Limits need not match, but this part stays.
    agrees: ({ rate }) => [rate === undefined ? 'the limit' : `${rate.burst} for a limit of ${rate.limit}`],
    shown: ({ rate, limit }) => (rate === undefined ? {} : { burst: limit }),
  },
  maxLimit: {
    agrees: (rule) => [isLog(rule) ? rule.units : undefined],
    shown: (rule) => (isLog(rule) ? { maxLimit: rule.units * (rule.unit ?? 1) } : {}),
  },
  rangeSum: { agrees: ({ sums }) => [sums] },
  name: { shown: ({ name }) => ({ name }) },
  countRefused: { flag: 1, shown: ({ flags }) => ((flags & 1) === 0 ? {} : { countRefused: true }) },
  shadow: { flag: 2, shown: ({ flags }) => ((flags & 2) === 0 ? {} : { shadow: true }) },
} as const satisfies Readonly<Record<keyof RuleOptions, OptionRow>>

const ROWS = Object.entries(OPTION_ROWS) as [keyof RuleOptions, OptionRow][]

/** A copy of the options, read by name: a loop over the names takes ten times as long. */
export const readOnce = (options: RuleOptions): RuleOptions => {
  const read: { [Name in keyof RuleOptions]-?: RuleOptions[Name] | undefined } = {
    limit: options.limit,
    unit: options.unit,
    window: options.window,
    granularity: options.granularity,
    algorithm: options.algorithm,
    edge: options.edge,
    align: options.align,
    period: options.period,
    timeZone: options.timeZone,
    burst: options.burst,
    maxLimit: options.maxLimit,
    rangeSum: options.rangeSum,
    name: options.name,
    countRefused: options.countRefused,
    shadow: options.shadow,
  }
  return read as RuleOptions
}

/** The names of the options of a rule. */
export const RULE_OPTIONS: readonly string[] = Object.keys(OPTION_ROWS)

/** The options that are true or false. */
export type FlagName = {
  [K in keyof RuleOptions]-?: (typeof OPTION_ROWS)[K] extends { flag: number } ? K : never
}[keyof RuleOptions]

/** Each with its bit. */
export const FLAGS = ROWS.flatMap(([name, { flag }]) => (flag === undefined ? [] : [[name, flag] as const]))
export const ALL_FLAGS = FLAGS.reduce((all, [, flag]) => all | flag, 0)

/** The options that a record has as an index. */
export const RECORDED = ROWS.flatMap(([name, { record, choices }]) =>
  record === undefined
    ? []
    : [{ name: name as 'algorithm' | 'edge' | 'align' | 'period', record, choices: choices! }],
)

/** The options in which two rules differ that must agree, with the text of each. */
export function differences(
  own: SummedRule,
  other: SummedRule,
): (readonly [name: string, own: string, other: string])[] {
  const isTrue = ({ flags }: CountedRule, flag: number): [string] => [`${(flags & flag) !== 0}`]
  return ROWS.flatMap(([name, { flag, agrees }]) => {
    const of = agrees ?? ((rule: SummedRule) => (flag === undefined ? [undefined] : isTrue(rule, flag)))
    const [[a, aText = `${a}`], [b, bText = `${b}`]] = [of(own), of(other)]
    return a === undefined || b === undefined || a === b ? [] : [[name, aText, bText] as const]
  })
}

/** The rule as `limiter.rule` shows it. */
export function limiterRule(rule: ShownSource): LimiterRule {
  const shown = ROWS.map(([, row]) => row.shown?.(rule))
  return Object.assign({ name: rule.name }, ...shown)
}
