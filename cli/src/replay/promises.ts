import type { AlgorithmName, Edge, LimiterRule } from 'millrace'

/** What an algorithm promises, by its documentation. A replay that breaks it has found a bug. */
export interface Promised {
  /** The most that a key may use in any window. */
  mostInWindow(rule: PromisedRule): number
  /** Whether a refusal is early by one granularity at most. */
  readonly isEarlyByGranularity?: true
}

export interface PromisedRule {
  readonly limit: number
  readonly edge: Edge
  /** Present if it is not the limit. */
  readonly burst?: number | undefined
}

const bucket: Promised = { mostInWindow: ({ limit, burst = limit }) => limit + burst }

export const PROMISES: Readonly<Record<AlgorithmName, Promised>> = {
  'sliding-window': {
    mostInWindow: ({ limit, edge }) => (edge === 'strict' ? limit : 2 * limit),
    isEarlyByGranularity: true,
  },
  'sliding-log': { mostInWindow: ({ limit }) => limit },
  'sliding-counter': { mostInWindow: ({ limit }) => Math.floor((31 * limit) / 16) },
  'fixed-window': { mostInWindow: ({ limit }) => 2 * limit },
  'token-bucket': bucket,
  'leaky-bucket': bucket,
}

/** The algorithm of a limiter's rule, which has none if it is the default. */
export function algorithmOf({ algorithm = 'sliding-window' }: Pick<LimiterRule, 'algorithm'>): AlgorithmName {
  return algorithm
}
