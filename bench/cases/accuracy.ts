import { accuracyOf, exactly } from '../accuracy/judge.js'
import { mostInWindow, VARIANTS } from '../accuracy/variants.js'
import { EXAMPLE_LOG, workloads } from '../accuracy/workloads.js'
import { type Benchmark, type Figures, figureOf, type Round } from '../benchmark.js'

const WORKLOADS = workloads(process.env.ACCESS_LOG || EXAMPLE_LOG)

const nameOf = (workload: { name: string }, variant: { name: string }): string =>
  `${workload.name}: ${variant.name}`

/** The most that an algorithm admitted in any window of any workload, as a part of what it may admit. */
const mostOf = (name: string) => (round: Round) => {
  const variant = VARIANTS.find((each) => each.name === name)!
  const parts = WORKLOADS.map((workload) => {
    const inWindow = workload.limit * (1 + figureOf(round, nameOf(workload, variant), 'excess') / 100)
    return inWindow / mostInWindow(variant, workload)
  })
  return Math.max(...parts)
}

export const accuracy: Benchmark = {
  title: 'each algorithm compared with an exact log of its requests',
  units: {
    wronglyRefused: 'wrongly refused, % of what the exact log admits',
    admitted: 'admitted, % of what the exact log admits',
    wronglyAdmitted: 'admitted into a full window, % of its admissions',
    excess: 'largest excess in a window, % of the limit',
  },
  rounds: { full: 1, quick: 1 }, // counts of the same decisions, not times
  contenders: WORKLOADS.flatMap((workload) =>
    VARIANTS.map((variant) => ({
      name: nameOf(workload, variant),
      async measure(): Promise<Figures> {
        const traffic = await workload.traffic()
        return { ...accuracyOf(variant, traffic, workload, exactly(traffic, workload)) }
      },
    })),
  ),
  goals: [
    {
      label: 'sliding-window: most admitted in a window / the limit',
      unit: 'x',
      value: mostOf('sliding-window'),
      atMost: 1,
    },
    {
      label: 'token-bucket: most admitted in a window / (burst + rate x window)',
      unit: 'x',
      value: mostOf('token-bucket'),
      atMost: 1,
    },
  ],
}
