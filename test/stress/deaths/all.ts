import { setFlagsFromString } from 'node:v8'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { type Findings, type Plan, Round } from './round.js'

/** The manners of death of a round, wave by wave. Three of four are `terminate()`. */
const MANNERS: Plan['manners'] = [
  ['terminate', 'terminate', 'terminate', 'exit'],
  ['terminate', 'memory', 'terminate', 'terminate'],
  ['exit', 'terminate', 'terminate', 'terminate'],
  ['terminate', 'terminate', 'memory', 'terminate'],
]
/**
 * Table sizes: a large one, where new keys take free ways; a small one, where they take the ways of expired
 * keys.
 */
const TABLE_SIZES = [20_000, 200]

/**
 * Runs rounds, each on its own limiter, until `deaths` threads have died. `terminate()` stops a thread at the
 * checks that V8 makes at calls and loops. Optimized code inlines calls, so that it rarely stops between two
 * steps of the protocol. Therefore every other round runs without the optimizer: there each step is a call,
 * and any may be the last.
 */
export async function runDeaths(deaths: number, seed: number, progress: Progress): Promise<Findings> {
  let all: Findings | undefined
  let dead = 0
  try {
    for (let round = 0; dead < deaths && (all?.hangs ?? 0) === 0; round++) {
      setFlagsFromString(round % 2 === 0 ? '--no-opt' : '--opt')
      const maxKeys = TABLE_SIZES[Math.floor(round / 2) % TABLE_SIZES.length]!
      const manners = MANNERS.slice(0, Math.ceil((deaths - dead) / MANNERS[0]!.length))
      const found = await new Round({ manners, maxKeys, seed: seed + 1_000 * round }).run(() => {
        dead++
        progress.at(`${inCommas(dead)} of ${inCommas(deaths)} deaths`)
      })
      all = all === undefined ? found : sum(all, found)
    }
  } finally {
    setFlagsFromString('--opt')
  }
  return all!
}

/** The findings of two runs together. */
export function sum(a: Findings, b: Findings): Findings {
  return {
    deaths: {
      terminate: a.deaths.terminate + b.deaths.terminate,
      exit: a.deaths.exit + b.deaths.exit,
      memory: a.deaths.memory + b.deaths.memory,
    },
    midOperation: a.midOperation + b.midOperation,
    unitsLeft: a.unitsLeft + b.unitsLeft,
    lostWays: a.lostWays + b.lostWays,
    claimed: a.claimed + b.claimed,
    named: a.named + b.named,
    operations: a.operations + b.operations,
    windows: a.windows + b.windows,
    over: a.over + b.over,
    hangs: a.hangs + b.hangs,
    complaints: [...a.complaints, ...b.complaints],
  }
}

export function countOf({ deaths }: Findings): number {
  return deaths.terminate + deaths.exit + deaths.memory
}

/** Lines about the deaths and the state they left. */
export function linesOf(found: Findings): string[] {
  const { terminate, exit, memory } = found.deaths
  return [
    `${inCommas(terminate)} terminated, ${inCommas(exit)} by exit, ${inCommas(memory)} out of memory`,
    `${inCommas(found.midOperation)} died during an operation on a judged key and left ${inCommas(found.unitsLeft)} units charged`,
    `ways left: ${found.claimed} CLAIMED, ${found.named} NAMED; survivors made ${inCommas(found.operations)} decisions`,
    ...found.complaints.slice(0, 20),
  ]
}

export function summaryOf(found: Findings): string {
  const windows = `${found.over} of ${inCommas(found.windows)} windows over the limit`
  const ways = `${found.lostWays} ways lost (at most one per death)`
  const wrong = `${found.complaints.length} other complaints`
  return `${inCommas(countOf(found))} deaths: ${found.hangs} hangs, ${windows}, ${ways}, ${wrong}`
}
