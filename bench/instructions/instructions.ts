/**
 * `npm run bench:instructions`: what a limiter adds to a request, in instructions and in simulated misses of the caches,
 * over the same server with constant headers. In the steady state, and before it, while V8 compiles.
 */
import { SIDES } from '../batches.js'
import {
  type Benchmark,
  type Contender,
  type Figures,
  figureOf,
  type Goal,
  type Round,
} from '../benchmark.js'
import { countRequests, missing } from './cachegrind.js'
import { BY_HAND, CONSTANT, type FrameworkName, modesOf, OWN_MODES, PEER } from './servers.js'
import { wayOf } from './way.js'

/** What is counted in each phase: from one number of requests since the start of the server to the next. */
const PHASES = {
  first: { title: 'the first', full: [100, 3_000], quick: [20, 120] },
  early: { title: 'early', full: [3_000, 9_000], quick: [120, 220] },
  steady: { title: 'steady', full: [15_000, 55_000], quick: [220, 420] },
} as const
type Phase = keyof typeof PHASES
const PHASE_NAMES = Object.keys(PHASES) as Phase[]

const WITHOUT_ADDON = ', without the addon'
const [MILLRACE, ...OTHERS] = OWN_MODES as [string, ...string[]]

/** In the Map's instructions over constant headers, or misses. */
interface Bounds {
  readonly steady: number
  readonly withoutAddon?: number
  readonly early?: number
}

const BOUNDS: Readonly<Record<FrameworkName, Bounds>> = {
  'node:http': { steady: 1.2, early: 2 },
  Express: { steady: 1.2 },
  Fastify: { steady: 1, withoutAddon: 1.3, early: 2 },
}
const LAST_LEVEL = 1.5
/** What each request calls of this package. Without a limiter that is nothing. */
const WAY = {
  wayBytes: 'bytes of bytecode of the functions of Millrace that each request calls',
  wayFunctions: 'such functions',
  wayInlined: 'of them, inlined into others',
} as const
type Way = Readonly<Record<keyof typeof WAY, number>>
const NO_WAY: Way = { wayBytes: 0, wayFunctions: 0, wayInlined: 0 }
/** Several limiters, or routes: in the instructions of one limiter. */
const SEVERAL = 1.3
const TO_PEER = 0.5

export function instructionsOf(framework: FrameworkName): Benchmark {
  const modes = modesOf(framework)
  return {
    title: `what a request of ${framework} executes, by cachegrind`,
    units: {
      ...Object.fromEntries(
        PHASE_NAMES.flatMap((phase) => {
          const [from, to] = PHASES[phase].full
          const requests = `requests ${from.toLocaleString('en')} to ${to.toLocaleString('en')}`
          return [
            [figureNames(phase).instructions, `instructions, ${requests}`],
            [figureNames(phase).firstLevel, `first-level misses, ${requests}`],
            [figureNames(phase).lastLevel, `last-level misses, ${requests}`],
          ]
        }),
      ),
      ...WAY,
    },
    contenders: [MILLRACE, ...modes.filter((mode) => mode !== MILLRACE)].flatMap((mode) => [
      serving(framework, mode, ''),
      ...(mode === MILLRACE ? [serving(framework, mode, WITHOUT_ADDON)] : []),
    ]),
    rounds: { full: 1, quick: 1 }, // counts repeat, and a round takes half an hour
    goals: goalsOf(framework, modes.includes(PEER)),
    unavailable: missing,
  }
}

const figureNames = (phase: Phase) => ({
  instructions: `${phase}Instructions`,
  firstLevel: `${phase}FirstLevel`,
  lastLevel: `${phase}LastLevel`,
})

function goalsOf(framework: FrameworkName, hasPeer: boolean): Goal[] {
  const { steady, withoutAddon, early } = BOUNDS[framework]
  const over = (round: Round, mode: string, figure: string) =>
    figureOf(round, mode, figure) - figureOf(round, CONSTANT, figure)
  const goal = (
    mode: string,
    base: string,
    phase: Phase,
    atMost?: number,
    of: 'instructions' | 'lastLevel' = 'instructions',
  ): Goal => ({
    target: 'P11',
    label: `${framework}, ${of === 'instructions' ? of : 'last-level misses'} over ${CONSTANT}, ${PHASES[phase].title} requests: ${mode} / ${base}`,
    unit: 'x',
    value: (round) => over(round, mode, figureNames(phase)[of]) / over(round, base, figureNames(phase)[of]),
    ...(atMost !== undefined && { atMost }),
  })
  return [
    goal(MILLRACE, BY_HAND, 'steady', steady),
    goal(MILLRACE + WITHOUT_ADDON, BY_HAND, 'steady', withoutAddon),
    goal(MILLRACE, BY_HAND, 'steady', LAST_LEVEL, 'lastLevel'),
    goal(MILLRACE, BY_HAND, 'early', early),
    goal(MILLRACE + WITHOUT_ADDON, BY_HAND, 'early', early),
    goal(MILLRACE, BY_HAND, 'first'),
    ...OTHERS.map((mode) => goal(mode, MILLRACE, 'steady', SEVERAL)),
    ...(hasPeer ? [goal(MILLRACE, PEER, 'steady', TO_PEER), goal(MILLRACE, PEER, 'early')] : []),
  ]
}

function serving(framework: FrameworkName, mode: string, build: '' | typeof WITHOUT_ADDON): Contender {
  return {
    name: mode + build,
    async measure({ quick }) {
      if (build !== '') process.env.MILLRACE_NATIVE = SIDES.TypeScript // the server inherits it
      const way = OWN_MODES.includes(mode) ? await wayFigures(framework, mode) : NO_WAY
      return { ...(await phasesOf(framework, mode, quick ? 'quick' : 'full')), ...way }
    },
  }
}

async function wayFigures(framework: string, mode: string): Promise<Way> {
  const way = await wayOf(framework, mode)
  return {
    wayBytes: way.reduce((sum, { bytes }) => sum + bytes, 0),
    wayFunctions: way.length,
    wayInlined: way.filter(({ isInlined }) => isInlined).length,
  }
}

async function phasesOf(framework: string, mode: string, effort: 'full' | 'quick'): Promise<Figures> {
  const counts = [...new Set(PHASE_NAMES.flatMap((phase) => PHASES[phase][effort]))]
  const costs = await countRequests(framework, mode, counts)
  return Object.fromEntries(
    PHASE_NAMES.flatMap((phase) => {
      const cost = costs[counts.indexOf(PHASES[phase][effort][0])]!
      const names = figureNames(phase)
      return Object.entries(cost).map(([figure, value]) => [names[figure as keyof typeof names], value])
    }),
  )
}
