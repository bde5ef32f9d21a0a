import type { RemoteDecision } from './remote-decision.js'
import type { Asked, RemoteStore } from './remote-store.js'

/**
 * Reads the decisions of a call.
 * @throws what `read` throws for one of them; the charges of the others are given back
 */
export function readAll(
  store: RemoteStore,
  asked: readonly Asked[],
  read: (each: Asked) => RemoteDecision,
): RemoteDecision[] {
  const decisions: RemoteDecision[] = []
  const faults: unknown[] = []
  for (const each of asked) {
    try {
      decisions.push(read(each))
    } catch (error) {
      faults.push(error)
    }
  }
  if (faults.length === 0) return decisions
  void takeBack(store, decisions)
  throw faults[0]
}

/** Gives back the charges of decisions that nobody hears of. An outage leaves them: less is admitted. */
async function takeBack(store: RemoteStore, decisions: readonly RemoteDecision[]): Promise<void> {
  const charged = decisions.filter(({ isCharged }) => isCharged)
  await Promise.allSettled(
    charged.map(({ receipts, requested: { key, cost, limits } }) => {
      const units = store.rules.map(({ rule }) => Math.ceil(cost / (rule.unit ?? 1)))
      return store.change('giveBack', key, units, receipts, limits)
    }),
  )
}
