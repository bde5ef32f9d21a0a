import { type Benchmark, figureOf, type Noise, type Round } from '../benchmark.js'
import { median } from '../statistics.js'
import { CONNECTIONS, Loader } from './load.js'
import { type StartedServer, startServer } from './start-server.js'

/** Requests before the first that is measured: an engine takes three times as long for its first ten thousand. */
const WARM_UP = { full: 100_000, quick: 40_000 }
const SLICE_MS = { full: 500, quick: 300 }
/** Slices of each server. Every other one of the bare route is compared with the rest of it. */
const SLICES = { full: 14, quick: 8 }
const TURNS = 'an engine and a bare route, by turns'
const HALF = 0.5

interface Loaded {
  readonly server: StartedServer
  readonly loader: Loader
}

async function started(name: 'engine' | 'bare route', warmUp: number): Promise<Loaded> {
  const server = await startServer(name)
  const loader = await Loader.connect(server.port)
  await loader.warmUp(warmUp)
  return { server, loader }
}

/** Loads both by turns, as often as there are slices. @returns what each slice measured */
async function byTurns<T>(
  loaded: readonly Loaded[],
  slices: number,
  measure: (loaded: Loaded) => Promise<T>,
): Promise<T[][]> {
  const measured: T[][] = loaded.map(() => [])
  for (let i = 0; i < slices; i++)
    for (const [j, each] of loaded.entries()) measured[j]!.push(await measure(each))
  return measured
}

async function atFullSpeed({ server, loader }: Loaded, sliceMs: number) {
  const before = await server.state()
  const { answers, perSecond } = await loader.atFullSpeed(sliceMs)
  const after = await server.state()
  return { perSecond, cpuUs: (after.cpuUs - before.cpuUs) / answers }
}

/** The medians of every other value, from the first on and from the second on. */
const halves = (values: readonly number[]): [number, number] => [
  median(values.filter((_, i) => i % 2 === 0)),
  median(values.filter((_, i) => i % 2 === 1)),
]

const figure = (name: string) => (round: Round) => figureOf(round, TURNS, name)
const ratio = (name: string) => (round: Round) =>
  figure(`${name}Engine`)(round) / figure(`${name}Bare`)(round)
/** A bare route that differs from itself as much as the ratio from its bound says nothing about the engine. */
const noise = (name: string, bound: number): Noise => ({
  difference: (round) => ratio(name)(round) - bound,
  itself: figure(`${name}Itself`),
})

export const serviceSingle: Benchmark = {
  title: `single POST /v1/check, ${CONNECTIONS} connections, against a bare Fastify route that parses and answers the same JSON`,
  units: {
    speedEngine: 'decisions a second: engine',
    speedBare: 'answers a second: bare route',
    speedItself: 'bare route, every other slice / the rest, less 1',
    cpuEngine: 'microseconds of processor time a decision: engine',
    cpuBare: 'microseconds of processor time an answer: bare route',
    cpuItself: 'processor time of the bare route, every other slice / the rest, less 1',
    p99Engine: '99th percentile at half of that load, ms: engine',
    p99Bare: '99th percentile at that load, ms: bare route',
    p99Itself: '99th percentile of the bare route, every other slice / the rest, less 1',
  },
  rounds: { full: 3, quick: 2 }, // each of them has as many turns as rounds usually are, and more
  contenders: [
    {
      name: TURNS,
      async measure({ quick }) {
        const effort = quick ? 'quick' : 'full'
        const both = [await started('engine', WARM_UP[effort]), await started('bare route', WARM_UP[effort])]
        const full = await byTurns(both, SLICES[effort], (each) => atFullSpeed(each, SLICE_MS[effort]))
        const [speeds, cpus] = (['perSecond', 'cpuUs'] as const).map((name) =>
          full.map((slices) => slices.map((slice) => slice[name])),
        ) as [number[][], number[][]]
        const rate = HALF * median(speeds[0]!)
        const p99s = await byTurns(both, SLICES[effort], ({ loader }) =>
          loader.atRate(rate, SLICE_MS[effort]),
        )
        for (const { server, loader } of both) {
          loader.close()
          await server.stop()
        }
        return { ...figuresOf('speed', speeds), ...figuresOf('cpu', cpus), ...figuresOf('p99', p99s) }
      },
    },
  ],
  goals: [
    {
      target: 'S1',
      label: 'decisions a second: engine / bare route',
      unit: 'x',
      value: ratio('speed'),
      atLeast: 0.8,
      noise: noise('speed', 0.8),
    },
    {
      label: 'processor time: bare route / engine',
      unit: 'x',
      value: (round) => 1 / ratio('cpu')(round),
      noise: noise('cpu', 1),
    },
    {
      target: 'S2',
      label: '99th percentile at half of that load: engine / bare route',
      unit: 'x',
      value: ratio('p99'),
      atMost: 1.25,
      noise: noise('p99', 1.25),
    },
  ],
}

function figuresOf(name: string, [engine, bare]: readonly (readonly number[])[]): Record<string, number> {
  const [some, others] = halves(bare!)
  return {
    [`${name}Engine`]: median(engine!),
    [`${name}Bare`]: median(bare!),
    [`${name}Itself`]: some / others - 1,
  }
}
