import type { AlgorithmName, RuleOptions } from 'millrace'
import { PROMISES } from 'millrace-cli/dist/replay/promises.js'

/** A limit and its window, which every algorithm gets. */
export interface Limited {
  readonly limit: number
  readonly windowMs: number
}

/** An algorithm with its options. */
export interface Variant {
  readonly name: string
  readonly algorithm: AlgorithmName
  options?(rule: Limited): Options
}

type Options = Pick<RuleOptions, 'granularity' | 'edge' | 'align'> & { readonly burst?: number }

/** All algorithms. */
export const VARIANTS: readonly Variant[] = [
  { name: 'sliding-window', algorithm: 'sliding-window' },
  {
    name: 'sliding-window, 10 buckets',
    algorithm: 'sliding-window',
    options: ({ windowMs }) => ({ granularity: windowMs / 10 }),
  },
  { name: 'sliding-window, smooth', algorithm: 'sliding-window', options: () => ({ edge: 'smooth' }) },
  { name: 'sliding-log', algorithm: 'sliding-log' },
  { name: 'sliding-counter', algorithm: 'sliding-counter' },
  { name: 'fixed-window', algorithm: 'fixed-window' },
  { name: 'fixed-window, align first', algorithm: 'fixed-window', options: () => ({ align: 'first' }) },
  { name: 'token-bucket', algorithm: 'token-bucket' },
  {
    name: 'token-bucket, burst limit/5',
    algorithm: 'token-bucket',
    options: ({ limit }) => ({ burst: limit / 5 }),
  },
  { name: 'leaky-bucket', algorithm: 'leaky-bucket' },
]

/** The most that an algorithm may admit in any window, by its documentation. */
export function mostInWindow({ algorithm, options }: Variant, rule: Limited): number {
  const { edge = 'strict', burst } = options?.(rule) ?? {}
  return PROMISES[algorithm].mostInWindow({ limit: rule.limit, edge, burst })
}
