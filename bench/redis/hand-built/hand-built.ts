import { type Benchmark, type Contender, figureOf, type Round } from '../../benchmark.js'
import { redisMissing, withRedis } from '../server.js'
import {
  incrAndExpire,
  lockAroundGetAndSet,
  type Recipe,
  readThenIncrement,
  twoCounters,
  watchAndMulti,
} from './recipes.js'
import { afterDeath, bursts, poisson, race, speed } from './scenarios.js'
import { strict } from './strict.js'

const OURS = 'Millrace'
export const RECIPES: Readonly<Record<string, Recipe>> = {
  [OURS]: strict,
  'INCR and EXPIRE': incrAndExpire,
  'read, then increment': readThenIncrement,
  'a lock around GET and SET': lockAroundGetAndSet,
  'WATCH and MULTI on a sorted set': watchAndMulti,
  'two counters': twoCounters,
}

const CONNECTIONS = 64
const RACE_LIMIT = 80
const LIMIT = 100
const KEYS = 8
const WINDOW_MS = 1_000
/** Of bursts. In the longer one, a burst is a smaller part of the window. */
const BURST_WINDOW_MS = { full: 2_000, quick: 1_000 }
/** Two of them are longer than the lock of a process that died. */
const DEATH_WINDOW_MS = 500
/** Decisions of an effort for each millisecond of a scenario. */
const OPERATIONS_PER_MS = { speed: 400, poisson: 66 }

function built(name: string, recipe: Recipe): Contender {
  return {
    name,
    measure: ({ operations, quick }) =>
      withRedis(async ({ port }) => {
        const at = [recipe, port] as const
        const speedMs = operations / OPERATIONS_PER_MS.speed
        await speed(at, 8, speedMs / 2) // for V8 to compile the code
        const one = await speed(at, 1, speedMs)
        const some = await speed(at, 8, speedMs)
        const many = await speed(at, CONNECTIONS, speedMs)
        const bound = { limit: LIMIT, windowMs: BURST_WINDOW_MS[quick ? 'quick' : 'full'] }
        const poissonMs = operations / OPERATIONS_PER_MS.poisson
        return {
          perSecond1: one.perSecond,
          perSecond8: some.perSecond,
          perSecond64: many.perSecond,
          tries64: many.tries,
          race: await race(at, CONNECTIONS, RACE_LIMIT),
          burst: await bursts(at, bound),
          poisson: await poisson(at, { limit: LIMIT, windowMs: WINDOW_MS }, KEYS, poissonMs),
          afterDeath: await afterDeath(at, { limit: LIMIT, windowMs: DEATH_WINDOW_MS }),
        }
      }),
  }
}

/** The most that was admitted in any window of any scenario, as a part of its limit. */
const mostOf = (name: string) => (round: Round) =>
  Math.max(
    figureOf(round, name, 'race') / RACE_LIMIT,
    figureOf(round, name, 'burst') / LIMIT,
    figureOf(round, name, 'poisson') / LIMIT,
  )

export const handBuilt: Benchmark = {
  title: 'limiters on Redis as people build them by hand, one key, each connection with one call at a time',
  units: {
    perSecond1: 'decisions per second, 1 connection',
    perSecond8: 'decisions per second, 8 connections',
    perSecond64: `decisions per second, ${CONNECTIONS} connections`,
    tries64: `tries per decision, ${CONNECTIONS} connections`,
    race: `the most admitted in any window by ${CONNECTIONS} connections at once; limit ${RACE_LIMIT}`,
    burst: `the most admitted in any window after bursts at the worst moments; limit ${LIMIT}`,
    poisson: `the most admitted in any window of Poisson traffic at the limit, ${LIMIT}`,
    afterDeath: `the most admitted in any window, from two after a process died in its decision; limit ${LIMIT}`,
  },
  contenders: Object.entries(RECIPES).map(([name, recipe]) => built(name, recipe)),
  goals: Object.keys(RECIPES).map((name) => ({
    label: `${name}: the most admitted in any window / its limit`,
    unit: 'x',
    value: mostOf(name),
    ...(name === OURS && { atMost: 1 }),
  })),
  rounds: { full: 2, quick: 1 }, // windows take their time, and the figures that matter are counts
  unavailable: redisMissing,
}
