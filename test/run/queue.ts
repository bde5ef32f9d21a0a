export interface Job {
  /** No other job may run at the same time. */
  readonly isAlone: boolean
  readonly isFirst: boolean
}

/** Runs all jobs, `width` at a time: those marked first, then the others in order, then each marked alone. */
export async function runAll<J extends Job>(
  jobs: readonly J[],
  width: number,
  act: (job: J) => Promise<void>,
): Promise<void> {
  const together = jobs.filter(({ isAlone }) => !isAlone)
  const ordered = [
    ...together.filter(({ isFirst }) => isFirst),
    ...together.filter(({ isFirst }) => !isFirst),
  ]
  const next = ordered.values()
  const work = async () => {
    for (const job of next) await act(job)
  }
  await Promise.all(Array.from({ length: width }, work))
  for (const job of jobs.filter(({ isAlone }) => isAlone)) await act(job)
}
