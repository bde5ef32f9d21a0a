import { type Benchmark, figureOf, type Noise, type Round } from '../benchmark.js'
import { median } from '../statistics.js'
import { GrpcLoader, IN_FLIGHT } from './grpc-load.js'
import { startServer } from './start-server.js'

/** Calls before the first that is measured. */
const WARM_UP = { full: 60_000, quick: 20_000 }
const SLICE_MS = { full: 500, quick: 300 }
/** Slices of each server. Every other one of the echo is compared with the rest of it. */
const SLICES = { full: 20, quick: 8 }
const TURNS = 'an engine and an echo, by turns'
const SERVERS = ['envoy', 'gRPC echo'] as const

const figure = (name: string) => (round: Round) => figureOf(round, TURNS, name)
const ratio = (name: string) => (round: Round) =>
  figure(`${name}Engine`)(round) / figure(`${name}Echo`)(round)
const noise = (name: string, bound: number): Noise => ({
  difference: (round) => ratio(name)(round) - bound,
  itself: figure(`${name}Itself`),
})

export const serviceEnvoy: Benchmark = {
  title: `ShouldRateLimit, ${IN_FLIGHT} in flight, against a bare grpc-js server that reads and answers the same messages`,
  units: {
    speedEngine: 'decisions a second: engine',
    speedEcho: 'answers a second: echo',
    speedItself: 'echo, every other slice / the rest, less 1',
    p99Engine: '99th percentile, ms: engine',
    p99Echo: '99th percentile, ms: echo',
    p99Itself: '99th percentile of the echo, every other slice / the rest, less 1',
  },
  rounds: { full: 3, quick: 2 },
  contenders: [
    {
      name: TURNS,
      async measure({ quick }) {
        const effort = quick ? 'quick' : 'full'
        const servers = await Promise.all(SERVERS.map((name) => startServer(name)))
        const loaders = servers.map(({ port }) => new GrpcLoader(port))
        for (const loader of loaders) await loader.warmUp(WARM_UP[effort])
        const speeds: number[][] = loaders.map(() => [])
        const p99s: number[][] = loaders.map(() => [])
        for (let i = 0; i < SLICES[effort]; i++)
          for (const [j, loader] of loaders.entries()) {
            const { perSecond, p99Ms } = await loader.atFullSpeed(SLICE_MS[effort])
            speeds[j]!.push(perSecond)
            p99s[j]!.push(p99Ms)
          }
        for (const loader of loaders) loader.close()
        for (const server of servers) await server.stop()
        return { ...figuresOf('speed', speeds), ...figuresOf('p99', p99s) }
      },
    },
  ],
  goals: [
    {
      target: 'S5',
      label: 'decisions a second: engine / echo',
      unit: 'x',
      value: ratio('speed'),
      atLeast: 0.8,
      noise: noise('speed', 0.8),
    },
    {
      target: 'S6',
      label: '99th percentile: engine / echo',
      unit: 'x',
      value: ratio('p99'),
      atMost: 1.25,
      noise: noise('p99', 1.25),
    },
  ],
}

function figuresOf(name: string, [engine, echo]: readonly (readonly number[])[]): Record<string, number> {
  const [some, others] = [0, 1].map((rest) => median(echo!.filter((_, i) => i % 2 === rest)))
  return {
    [`${name}Engine`]: median(engine!),
    [`${name}Echo`]: median(echo!),
    [`${name}Itself`]: some! / others! - 1,
  }
}
