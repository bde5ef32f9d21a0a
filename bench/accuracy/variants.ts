import type { AlgorithmName, RuleOptions } from 'millrace'

/** A limit and its window, which every algorithm gets. */
export interface Limited {
  readonly limit: number
  readonly windowMs: number
}

/** An algorithm with its options. */
export interface Variant {
  readonly name: string
  readonly algorithm: AlgorithmName
  options?(rule: Limited): Partial<RuleOptions>
  /** The most that it may admit in any window, by its documentation. */
  mostInWindow(rule: Limited): number
}

/** What a bucket holds in the variant with a small burst. */
const smallBurst = ({ limit }: Limited): number => limit / 5

const theLimit = ({ limit }: Limited): number => limit
const twiceTheLimit = ({ limit }: Limited): number => 2 * limit

/** All algorithms. Those that admit at most the limit are exact. */
export const VARIANTS: readonly Variant[] = [
  { name: 'sliding-window', algorithm: 'sliding-window', mostInWindow: theLimit },
  {
    name: 'sliding-window, 10 buckets',
    algorithm: 'sliding-window',
    options: ({ windowMs }) => ({ granularity: windowMs / 10 }),
    mostInWindow: theLimit,
  },
  {
    name: 'sliding-window, smooth',
    algorithm: 'sliding-window',
    options: () => ({ edge: 'smooth' }),
    mostInWindow: twiceTheLimit,
  },
  {
    name: 'sliding-counter',
    algorithm: 'sliding-counter',
    mostInWindow: ({ limit }) => Math.floor((31 * limit) / 16),
  },
  { name: 'fixed-window', algorithm: 'fixed-window', mostInWindow: twiceTheLimit },
  {
    name: 'fixed-window, align first',
    algorithm: 'fixed-window',
    options: () => ({ align: 'first' }),
    mostInWindow: twiceTheLimit,
  },
  { name: 'token-bucket', algorithm: 'token-bucket', mostInWindow: twiceTheLimit },
  {
    name: 'token-bucket, burst limit/5',
    algorithm: 'token-bucket',
    options: (rule) => ({ burst: smallBurst(rule) }),
    mostInWindow: (rule) => rule.limit + smallBurst(rule),
  },
  { name: 'leaky-bucket', algorithm: 'leaky-bucket', mostInWindow: twiceTheLimit },
]
