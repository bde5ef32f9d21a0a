import type { BatchDecision } from '../core/batch-decision.js'
import { secondsOf } from '../core/decision-fields.js'
import type { DecisionSource } from '../core/decision-source.js'
import { checkEntry } from '../engines/inline/batch.js'
import type { RemoteDecision } from './remote-decision.js'

/** The decisions of `checkMany`, which are all known. */
export class RemoteBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array | Float64Array
  readonly #decisions: readonly RemoteDecision[]

  constructor(decisions: readonly RemoteDecision[], withRemaining: boolean, isWide: boolean) {
    this.length = decisions.length
    this.allowed = Uint8Array.from(decisions, ({ allowed }) => (allowed ? 1 : 0))
    if (withRemaining) {
      const array = isWide ? new Float64Array(this.length) : new Int32Array(this.length)
      for (const [i, { remaining }] of decisions.entries()) array[i] = remaining
      this.remaining = array
    }
    this.#decisions = decisions
  }

  retryAfterMs(i: number): number {
    return this.#decision(i).retryAfterMs
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  source(i: number): DecisionSource | undefined {
    return this.#decision(i).source
  }

  #decision(i: number): RemoteDecision {
    checkEntry(i, this.length)
    return this.#decisions[i]!
  }
}

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
