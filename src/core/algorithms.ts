/** The algorithms: a row for each, which has all that depends on the name. `algorithms/select.ts` makes them. */
import { type CellSize, isLogSmaller, logCell, ringCell, type Sums, sumsFor, wordCell } from './cell-size.js'
import type { Duration } from './duration.js'
import { checkGranularity, MAX_BUCKETS } from './granularity.js'
import {
  type Align,
  type Alignment,
  checkChoice,
  EDGES,
  type Edge,
  fillingMs,
  granulesOf,
  invalidRule,
  logTicksOf,
  MAX_LIMIT,
  MOST_IN_FIXED_WINDOW,
  MOST_IN_LOG,
  MOST_LOG_TICKS,
  MOST_UNITS,
  type Period,
  type RangeSumName,
  type Rate,
  tokenTime,
} from './rule-algorithms.js'

/**
 * How a rule counts: see the option `algorithm` of {@link RuleOptions}.
 */
export type AlgorithmName =
  | 'sliding-window'
  | 'sliding-log'
  | 'sliding-counter'
  | 'fixed-window'
  | 'token-bucket'
  | 'leaky-bucket'

/** The option `algorithm`: with `'auto'`, `checkRule` chooses. */
export type AlgorithmChoice = AlgorithmName | 'auto'

export const DEFAULT_ALGORITHM = 'sliding-window' satisfies AlgorithmName

/** The options of a rule that not all algorithms have. */
export type OwnOption =
  | 'granularity'
  | 'edge'
  | 'rangeSum'
  | 'align'
  | 'period'
  | 'timeZone'
  | 'burst'
  | 'maxLimit'

/** The options by which an algorithm counts, in whole units. */
export interface Chosen {
  readonly limit: number
  readonly burst: number
  readonly maxLimit: number
  readonly windowMs: number
  readonly granularity: Duration | undefined
  readonly edge: unknown
  readonly align: unknown
  /** Of `align: 'calendar'`. */
  readonly period: Period | undefined
  readonly path: string
}

/** How a checked rule counts. */
export interface Counting {
  /** What a key may use at once: `burst`, if the rule has one. In whole units, if there is a unit. */
  readonly limit: number
  /** In which a key that has used all of its limit gets it back. */
  readonly windowMs: number
  /** The window's number of granules, 1 to 2^20; of a log, to 2^27. */
  readonly buckets: number
  readonly edge: Edge
  readonly align: Align
  readonly period: Period | 'none'
  /** @see AlgorithmRow.units */
  readonly units: number
  /** Added to readings of the clock: with `align: 'clock'` or `'calendar'`, the system's time minus the clock. */
  readonly offsetMs: number
  /** Present if a burst was given that is not the limit. */
  readonly rate?: Rate | undefined
}

/** How a rule counts in a window. */
export type CountedWindow = Pick<Counting, 'windowMs' | 'buckets' | 'units'>
type PresentWindow = Pick<Counting, 'limit' | 'buckets' | 'units' | 'align'>

/** What is counted on a server: see `remote/remote-rule.ts`. */
interface OnServer {
  /** Its number in the script of packed values on Redis; undefined if it has a script of its own. */
  readonly code?: number
  /** See `RemoteRule.parts`. */
  parts(rule: Counting): number
  /** Units whose charges lie this far apart, or less, may be told apart no more. */
  granuleMs(windowMs: number, parts: number): number
  /** How long a unit counts, at most. */
  longestMs(windowMs: number, parts: number): number
}

/** All that depends on the name of an algorithm. */
export interface AlgorithmRow {
  /** Its number in a record of shared memory (`RECORD.ALGORITHM`). */
  readonly number: number
  readonly options: readonly OwnOption[]
  /** Of `Counting.units`: time units in the window of a bucket; entries of a log, as many as the largest limit. */
  readonly units: 'none' | 'time' | 'entries'
  /** The words of a cell. */
  readonly cell: (buckets: number, units: number, sums: Sums) => CellSize
  readonly mostBuckets: number
  readonly mostLimit: number
  /** Whether a cell knows when its units were charged, by granules. */
  readonly isDated: boolean
  /** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
  counting(chosen: Chosen): Counting
  /** The same rule in another window. @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
  inWindow(windowMs: number, present: PresentWindow, granularity: Duration | undefined): CountedWindow
  /** Undefined: it can't count on a server. */
  readonly server?: OnServer
}

/** How a rule counts, where it does not count as most do. */
const counted = (
  { limit, windowMs, period }: Chosen,
  own: Pick<Counting, 'buckets'> & Partial<Pick<Counting, 'limit' | 'edge' | 'align' | 'units' | 'rate'>>,
): Counting => ({
  limit: own.limit ?? limit,
  windowMs,
  buckets: own.buckets,
  edge: own.edge ?? 'strict',
  align: own.align ?? 'none',
  period: period ?? 'none',
  units: own.units ?? 0,
  offsetMs: 0,
  rate: own.rate,
})

const SLIDING_WINDOW: AlgorithmRow = {
  number: 0,
  options: ['granularity', 'edge', 'rangeSum'],
  units: 'none',
  cell: ringCell,
  mostBuckets: MAX_BUCKETS,
  mostLimit: MAX_LIMIT,
  isDated: true,
  counting: (chosen) => {
    const { edge = 'strict', granularity, windowMs, path } = chosen
    checkChoice(edge, EDGES, `${path}edge`)
    return counted(chosen, { edge, buckets: checkGranularity(granularity, windowMs, `${path}granularity`) })
  },
  inWindow: (windowMs, { buckets }, granularity) => ({
    windowMs,
    buckets: checkGranularity(granularity, windowMs, 'granularity', buckets),
    units: 0,
  }),
  server: {
    code: 0,
    parts: ({ buckets }) => buckets,
    granuleMs: (windowMs, parts) => windowMs / parts,
    longestMs: (windowMs, parts) => windowMs + windowMs / parts,
  },
}

const ALIGNMENTS: readonly Alignment[] = ['clock', 'first', 'calendar']

/** A bucket may be filled threefold by penalties. */
const FULLEST_BUCKET = 3

const TOKEN_BUCKET: AlgorithmRow = {
  number: 3,
  options: ['burst'],
  units: 'time',
  cell: wordCell,
  mostBuckets: MAX_BUCKETS,
  mostLimit: MAX_LIMIT,
  isDated: false,
  counting: (chosen) => {
    const { limit, burst, windowMs, path } = chosen
    const rate = burst === limit ? undefined : { limit, burst }
    const option = `${path}${rate === undefined ? 'limit' : 'burst'}`
    const time = tokenTime(burst, fillingMs(windowMs, rate), option)
    return { ...counted(chosen, { ...time, limit: burst, rate }), windowMs: time.windowMs }
  },
  inWindow: (windowMs, { limit }) => tokenTime(limit, windowMs, 'window'),
  server: {
    code: 2,
    parts: ({ units }) => units,
    granuleMs: (windowMs) => windowMs,
    longestMs: (windowMs) => FULLEST_BUCKET * windowMs,
  },
}

/** In the order of texts. */
export const ALGORITHM_ROWS: Readonly<Record<AlgorithmName, AlgorithmRow>> = {
  'sliding-window': SLIDING_WINDOW,
  'sliding-log': {
    number: 5,
    options: ['maxLimit'],
    units: 'entries',
    cell: logCell,
    mostBuckets: MOST_LOG_TICKS,
    mostLimit: MAX_LIMIT,
    isDated: true,
    counting: (chosen) => {
      checkMostInLog(chosen.limit, chosen.maxLimit, chosen.path)
      return counted(chosen, { buckets: logTicksOf(chosen.windowMs), units: chosen.maxLimit })
    },
    inWindow: (windowMs, { units }) => ({ windowMs, buckets: logTicksOf(windowMs), units }),
    server: {
      parts: ({ windowMs }) => windowMs,
      granuleMs: () => 0,
      longestMs: (windowMs) => windowMs,
    },
  },
  // A sliding window of one bucket with the smooth edge.
  'sliding-counter': {
    ...SLIDING_WINDOW,
    number: 1,
    options: [],
    counting: (chosen) => counted(chosen, { edge: 'smooth', buckets: 1 }),
    inWindow: (windowMs, { buckets }) => ({ windowMs, buckets, units: 0 }),
    server: {
      parts: ({ buckets }) => buckets,
      granuleMs: (windowMs) => windowMs,
      longestMs: (windowMs) => 2 * windowMs,
    },
  },
  'fixed-window': {
    number: 2,
    options: ['align', 'period', 'timeZone'],
    units: 'none',
    cell: wordCell,
    mostBuckets: MAX_BUCKETS,
    mostLimit: MOST_IN_FIXED_WINDOW,
    isDated: false,
    counting: (chosen) => {
      const { limit, windowMs, align = 'clock', path } = chosen
      checkChoice(align, ALIGNMENTS, `${path}align`)
      if (limit > MOST_IN_FIXED_WINDOW) {
        const expected = `at most ${MOST_IN_FIXED_WINDOW} with algorithm: 'fixed-window'; with unit it may be more`
        throw invalidRule(`${path}limit`, limit, expected)
      }
      return counted(chosen, { align, buckets: granulesOf(align, windowMs) })
    },
    inWindow: (windowMs, { align }) => {
      if (align === 'calendar')
        throw invalidRule('window', windowMs, "nothing: the windows of align: 'calendar' are its periods")
      return { windowMs, buckets: granulesOf(align, windowMs), units: 0 }
    },
    server: {
      code: 1,
      parts: ({ align, windowMs }) => windowMs / granulesOf(align, windowMs),
      granuleMs: (windowMs) => windowMs,
      longestMs: (windowMs) => windowMs,
    },
  },
  'token-bucket': TOKEN_BUCKET,
  'leaky-bucket': { ...TOKEN_BUCKET, number: 4 },
}

const NAMES = Object.keys(ALGORITHM_ROWS) as AlgorithmName[]

/** Of an algorithm that counts on a server. */
export const serverOf = (algorithm: AlgorithmName): OnServer => ALGORITHM_ROWS[algorithm].server!

/** The names in the order of their numbers. */
export const ALGORITHMS: readonly AlgorithmName[] = [...NAMES].sort(
  (a, b) => ALGORITHM_ROWS[a].number - ALGORITHM_ROWS[b].number,
)

/** The options of each algorithm that not all of them have. */
export const ALGORITHM_OPTIONS = {
  ...Object.fromEntries(NAMES.map((name) => [name, ALGORITHM_ROWS[name].options])),
  auto: ['granularity', 'rangeSum', 'maxLimit'],
} as unknown as Readonly<Record<AlgorithmChoice, readonly OwnOption[]>>
const OWN_OPTIONS = new Set(Object.values(ALGORITHM_OPTIONS).flat())

/**
 * Checks the algorithm, and that no option is given that it does not have. Errors name an option after `path`.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`
 */
export function checkAlgorithm(
  options: Readonly<Partial<Record<OwnOption | 'algorithm', unknown>>>,
  path: string,
): AlgorithmChoice {
  const { algorithm = DEFAULT_ALGORITHM } = options
  const own = Object.hasOwn(ALGORITHM_OPTIONS, algorithm as string)
    ? ALGORITHM_OPTIONS[algorithm as AlgorithmChoice]
    : undefined
  if (own === undefined) {
    const names = Object.keys(ALGORITHM_OPTIONS).map((name) => `'${name}'`)
    throw invalidRule(`${path}algorithm`, algorithm, `one of ${names.join(', ')}`)
  }
  for (const option of OWN_OPTIONS) {
    if (options[option] === undefined || own.includes(option)) continue
    throw invalidRule(`${path}${option}`, options[option], `nothing beside algorithm: '${algorithm}'`)
  }
  return algorithm as AlgorithmChoice
}

/**
 * Checks the largest limit of a log. It is the limit itself, if it is not given.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`
 */
function checkMostInLog(limit: number, maxLimit: number, path: string): void {
  if (maxLimit < limit) throw invalidRule(`${path}maxLimit`, maxLimit, `at least the limit, ${limit}`)
  if (maxLimit <= MOST_IN_LOG) return
  const expected = `at most ${MOST_IN_LOG} with algorithm: 'sliding-log'; 'sliding-window' may have more`
  throw invalidRule(`${path}${maxLimit === limit ? 'limit' : 'maxLimit'}`, maxLimit, expected)
}

/** The algorithm of `'auto'`, by the largest limit and the buckets of a sliding window. */
export function chosenFor(
  most: number,
  { buckets }: Counting,
  rangeSum: RangeSumName | undefined,
): AlgorithmName {
  const isLog = most <= MOST_IN_LOG && isLogSmaller(most, buckets, sumsFor(buckets, rangeSum))
  return isLog ? 'sliding-log' : DEFAULT_ALGORITHM
}

/** How the window of a rule is summed. */
export const sumsOf = ({ algorithm, buckets, rangeSum }: SummedRule): Sums =>
  ALGORITHM_ROWS[algorithm].cell === wordCell ? 'linear' : sumsFor(buckets, rangeSum)

interface SummedRule extends Pick<Counting, 'buckets'> {
  readonly algorithm: AlgorithmName
  readonly rangeSum?: RangeSumName | undefined
}

/** Whether the units of a record of this algorithm may be so many. */
export function areUnits(algorithm: AlgorithmName, units: number, buckets: number): boolean {
  switch (ALGORITHM_ROWS[algorithm].units) {
    case 'none':
      return units === 0
    case 'time':
      return units >= 1 && units <= MOST_UNITS && units % buckets === 0
    case 'entries':
      return units >= 1 && units <= MOST_IN_LOG
  }
}

/** The limits that a rule may have. */
export interface LimitRange {
  readonly most: number
  /** With another window. */
  readonly mostAnew: number
  readonly rate: Rate | undefined
}

export function rangeOf({
  algorithm,
  units,
  rate,
}: Pick<Counting, 'units' | 'rate'> & { readonly algorithm: AlgorithmName }): LimitRange {
  const row = ALGORITHM_ROWS[algorithm]
  const most = units || row.mostLimit
  return { most, mostAnew: row.units === 'entries' ? most : row.mostLimit, rate }
}
