import { type Accuracy, accuracyOf, exactly } from './judge.js'
import type { Results } from './page.js'
import { VARIANTS } from './variants.js'
import type { Workload } from './workloads.js'

/** The figures of all algorithms on these workloads. @throws Error if one admitted more than it may */
export async function resultsOf(workloads: readonly Workload[]): Promise<Results> {
  const figures: Accuracy[][] = VARIANTS.map(() => [])
  for (const workload of workloads) {
    const traffic = await workload.traffic()
    const exact = exactly(traffic, workload)
    for (const [i, variant] of VARIANTS.entries())
      figures[i]!.push(accuracyOf(variant, traffic, workload, exact))
  }
  const rows = VARIANTS.map(({ name }, i) => ({ name, figures: figures[i]! }))
  return { workloads: workloads.map(({ name }) => name), rows }
}
