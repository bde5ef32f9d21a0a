import type { RemoteDecision } from './remote-decision.js'

/** Waits for the calls of a batch. If one fails, the charges of the others are given back: nobody hears of them. */
export async function together(
  calls: readonly Promise<void>[],
  decisions: readonly RemoteDecision[],
  forgive: (decision: RemoteDecision) => void,
): Promise<void> {
  const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected')
  if (failed === undefined) return
  for (const decision of Object.values(decisions)) forgive(decision)
  throw (failed as PromiseRejectedResult).reason
}
