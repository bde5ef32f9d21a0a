export interface Job {
  /** No other job may run at the same time. */
  readonly isAlone: boolean
  readonly isFirst: boolean
}

/** Does all jobs, as many as `width` at a time: those that are first, the others in order, and last each that is alone. */
export async function doAll<J extends Job>(
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
