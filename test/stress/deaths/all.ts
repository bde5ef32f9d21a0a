import { setFlagsFromString } from 'node:v8'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { type Findings, type Plan, Round } from './round.js'

/** How the threads of a round die, wave by wave: six of eight from outside. */
const MANNERS: Plan['manners'] = [
  ['terminate', 'terminate', 'terminate', 'exit'],
  ['terminate', 'memory', 'terminate', 'terminate'],
  ['exit', 'terminate', 'terminate', 'terminate'],
  ['terminate', 'terminate', 'memory', 'terminate'],
]
/** Roomy, where every new key takes a place; and too small, where it takes one from a key that has expired. */
const TABLES = [20_000, 200]

/**
 * Rounds on one limiter each, until so many threads have died. A thread that is terminated stops where V8 looks for that:
 * at the calls and loops of its code. In optimized code, where calls are inlined, that is rarely between two steps of the
 * protocol; so every other round runs without the optimizer, where each step is a call and any of them may be the last.
 */
export async function runDeaths(deaths: number, seed: number, progress: Progress): Promise<Findings> {
  let all: Findings | undefined
  let dead = 0
  try {
    for (let round = 0; dead < deaths && (all?.hangs ?? 0) === 0; round++) {
      setFlagsFromString(round % 2 === 0 ? '--no-opt' : '--opt')
      const maxKeys = TABLES[Math.floor(round / 2) % TABLES.length]!
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

function sum(a: Findings, b: Findings): Findings {
  return {
    deaths: {
      terminate: a.deaths.terminate + b.deaths.terminate,
      exit: a.deaths.exit + b.deaths.exit,
      memory: a.deaths.memory + b.deaths.memory,
    },
    amidst: a.amidst + b.amidst,
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

/** What the deaths were, and what they left. */
export function linesOf(found: Findings): string[] {
  const { terminate, exit, memory } = found.deaths
  return [
    `${inCommas(terminate)} terminated, ${inCommas(exit)} by exit, ${inCommas(memory)} out of memory`,
    `${inCommas(found.amidst)} died amidst an operation on a judged key and left ${inCommas(found.unitsLeft)} units charged`,
    `places left CLAIMED ${found.claimed}, NAMED ${found.named}; survivors made ${inCommas(found.operations)} decisions`,
    ...found.complaints.slice(0, 20),
  ]
}

export function summaryOf(found: Findings): string {
  const windows = `${found.over} of ${inCommas(found.windows)} windows over the limit`
  const ways = `${found.lostWays} places lost (at most one a death)`
  const wrong = `${found.complaints.length} other complaints`
  return `${inCommas(countOf(found))} deaths: ${found.hangs} hangs, ${windows}, ${ways}, ${wrong}`
}
