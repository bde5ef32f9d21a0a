import {
  BUCKET_ALGORITHMS,
  type Forbidden,
  LOG_ALGORITHMS,
  type Scenario,
  WORD_ALGORITHMS,
} from '../scenario.js'
import { adjusting } from './adjusting.js'
import { beginning } from './beginning.js'
import { blocking } from './blocking.js'
import { changing } from './changing.js'
import { deciding } from './deciding.js'
import { inserting } from './inserting.js'
import { several } from './several.js'
import { summing } from './summing.js'

const written: Readonly<Record<string, Scenario>> = {
  ...deciding,
  ...inserting,
  ...blocking,
  ...adjusting,
  ...summing,
  ...several,
  ...changing,
}

/** What the judges of cells without buckets can tell. */
const BY_WORDS: readonly Forbidden[] = [
  'over',
  'early',
  'wrong cell',
  'two cells',
  'stuck way',
  'hang',
  'refused at rest',
  'locked out',
]
/** A window from the first charge on may begin a little later than that charge, if another thread decides then. */
const TO_THE_TICK: readonly Forbidden[] = ['early', 'refused at rest']
const DECISIONS = ['read clock', 'check', 'batch', 'peek', 'attach']

/** The scenarios of decisions alone, for cells without buckets. A fixed window aligned to the clock has one granule. */
const byWords = Object.entries(written).filter(
  ([, { threads, before = [], further, sums, edge, limit = 1 }]) => {
    const ops = [...threads.flat(), ...before.map(([, op]) => op)]
    return (
      further === undefined &&
      sums === undefined &&
      edge === undefined &&
      limit <= 1_000 &&
      ops.every((op) => DECISIONS.includes(op.do))
    )
  },
)

const ofWords: Readonly<Record<string, Scenario>> = Object.fromEntries(
  [...WORD_ALGORITHMS, ...LOG_ALGORITHMS].flatMap((algorithm) =>
    byWords
      .filter(([, { buckets = 1 }]) => algorithm !== 'fixed-window' || buckets === 1)
      .map(([name, scenario]) => {
        const forbidden = scenario.forbidden.filter((what) => BY_WORDS.includes(what))
        return [`${name}; ${algorithm}`, { ...scenario, forbidden, algorithm }]
      }),
  ),
)

/** Fixed windows of several granules, which begin at a key's first charge. */
const ofFirst: Readonly<Record<string, Scenario>> = {
  ...beginning,
  ...Object.fromEntries(
    byWords.map(([name, scenario]) => {
      const forbidden = scenario.forbidden.filter(
        (what) => BY_WORDS.includes(what) && !TO_THE_TICK.includes(what),
      )
      const buckets = Math.max(2, scenario.buckets ?? 1)
      const own = { forbidden, buckets, algorithm: 'fixed-window', align: 'first' } as const
      return [`${name}; fixed-window, from the first charge`, { ...scenario, ...own }]
    }),
  ),
}

/** What the judges of words can tell of a conversion. */
const CONVERTED: readonly Forbidden[] = ['two cells', 'stuck way', 'hang', 'counted twice']

/** The conversions by two threads that only decide, for words. (A log may count what is carried twice.) */
const ofConvertedWords: Readonly<Record<string, Scenario>> = Object.fromEntries(
  WORD_ALGORITHMS.flatMap((algorithm) =>
    Object.entries(changing)
      .filter(
        ([, { forbidden, threads }]) =>
          forbidden.includes('counted twice') && threads.flat().every((op) => DECISIONS.includes(op.do)),
      )
      .map(([name, scenario]) => [`${name}; ${algorithm}`, { ...scenario, forbidden: CONVERTED, algorithm }]),
  ),
)

/** Each scenario with each algorithm. With the first one it keeps its name. */
const alive: Readonly<Record<string, Scenario>> = Object.fromEntries([
  ...BUCKET_ALGORITHMS.flatMap((algorithm, i) =>
    Object.entries(written).map(([name, scenario]) => [
      i === 0 ? name : `${name}; ${algorithm}`,
      { ...scenario, algorithm },
    ]),
  ),
  ...Object.entries(ofWords),
  ...Object.entries(ofFirst),
  ...Object.entries(ofConvertedWords),
])

/** Each scenario, and each once more with a thread that may die at any of its steps. */
export const scenarios: Readonly<Record<string, Scenario>> = Object.fromEntries([
  ...Object.entries(alive),
  ...Object.entries(alive).map(([name, scenario]) => [`${name}; one dies`, withDeath(scenario)]),
])

/**
 * If a full table denies, a key may later need the very way that the dead thread left claimed. A thread that
 * dies inside a block may have lengthened the block of another key.
 */
function withDeath(scenario: Scenario): Scenario {
  const blocks = scenario.threads.flat().some((op) => op.do === 'block')
  return { ...scenario, deaths: true, ...(blocks || scenario.onFull === 'deny' ? { restKeys: [] } : {}) }
}
