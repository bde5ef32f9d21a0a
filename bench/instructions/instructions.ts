/**
 * `npm run bench:instructions`: what a limiter adds to a request, in instructions and in simulated misses of the caches,
 * over the same server with constant headers. In the steady state, and in the first requests, in which V8 compiles.
 */
import { SIDES } from '../batches.js'
import { type Benchmark, type Contender, figureOf, type Goal, type Round } from '../benchmark.js'
import { countRequests, hasValgrind } from './cachegrind.js'
import { BY_HAND, CONSTANT, FRAMEWORKS, modesOf, OWN_MODES, PEER } from './servers.js'

/** Between which requests is counted. */
const STEADY = { full: { from: 15_000, to: 65_000 }, quick: { from: 3_000, to: 5_000 } }
const FIRST = { full: { from: 100, to: 3_100 }, quick: { from: 100, to: 600 } }

const WITHOUT_ADDON = ', without the addon'
const [MILLRACE, ...OTHERS] = OWN_MODES as [string, ...string[]]

interface Bounds {
  /** Instructions over constant headers, in those of the Map by hand, with the addon and without. */
  readonly addon?: number
  readonly typeScript?: number
  /** Misses of the last level, in those of the Map by hand. */
  readonly lastLevel?: number
  /** The other modes, in the instructions of one limiter. */
  readonly others?: number
}

/** By framework: the bounds in the steady state and in the first requests. */
const BOUNDS: Readonly<Record<string, { readonly steady: Bounds; readonly first: Bounds }>> = {
  'node:http': { steady: { addon: 1.2, lastLevel: 1.5, others: 1.3 }, first: { addon: 2 } },
  Express: { steady: { addon: 1.2, lastLevel: 1.5, others: 1.3 }, first: {} },
  Fastify: { steady: { addon: 1, typeScript: 1.3, lastLevel: 1.5, others: 1.3 }, first: { addon: 2 } },
}

export const steadyInstructions = counting('in the steady state', STEADY, 'steady')
export const firstInstructions = counting('in the first requests', FIRST, 'first')

function counting(when: string, requests: typeof STEADY, phase: 'steady' | 'first'): Benchmark {
  return {
    title: `what a server executes for a request ${when}, by cachegrind`,
    units: {
      instructions: 'instructions a request',
      firstLevel: 'simulated misses of the first-level caches a request',
      lastLevel: 'simulated misses of the last-level cache a request',
    },
    contenders: Object.keys(FRAMEWORKS).flatMap((framework) =>
      modesOf(framework).flatMap((mode) => [
        serving(framework, mode, '', requests),
        ...(mode === MILLRACE ? [serving(framework, mode, WITHOUT_ADDON, requests)] : []),
      ]),
    ),
    rounds: { full: 3, quick: 1 }, // counts repeat, and a round takes half an hour
    goals: Object.keys(FRAMEWORKS).flatMap((framework) => goalsOf(framework, BOUNDS[framework]![phase])),
    unavailable: () => (hasValgrind() ? undefined : 'valgrind is not installed'),
  }
}

function goalsOf(framework: string, { addon, typeScript, lastLevel, others }: Bounds): Goal[] {
  const over = (round: Round, mode: string, figure: string) =>
    figureOf(round, `${framework}: ${mode}`, figure) - figureOf(round, `${framework}: ${CONSTANT}`, figure)
  const goal = (mode: string, base: string, figure: string, atMost: number | undefined): Goal => ({
    target: 'P11',
    label: `${framework}, ${figure === 'instructions' ? figure : 'last-level misses'} over constant headers: ${mode} / ${base}`,
    unit: 'x',
    value: (round) => over(round, mode, figure) / over(round, base, figure),
    ...(atMost !== undefined && { atMost }),
  })
  return [
    goal(MILLRACE, BY_HAND, 'instructions', addon),
    goal(MILLRACE + WITHOUT_ADDON, BY_HAND, 'instructions', typeScript),
    goal(MILLRACE, BY_HAND, 'lastLevel', lastLevel),
    ...OTHERS.map((mode) => goal(mode, MILLRACE, 'instructions', others)),
    ...(modesOf(framework).includes(PEER) ? [goal(MILLRACE, PEER, 'instructions', 0.5)] : []),
  ]
}

function serving(
  framework: string,
  mode: string,
  build: '' | typeof WITHOUT_ADDON,
  requests: typeof STEADY,
): Contender {
  return {
    name: `${framework}: ${mode}${build}`,
    measure({ quick }) {
      if (build !== '') process.env.MILLRACE_NATIVE = SIDES.TypeScript // the server inherits it
      return countRequests(framework, mode, requests[quick ? 'quick' : 'full'])
    },
  }
}
