import type { AsyncLimiter, Policy } from 'millrace'
import * as assert from 'uvu/assert'

/** Policies of several rules, each with limits that no other has: the keys `k0`, `k1` and so on. */
export function policiesOf(count: number): Record<string, Policy> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `k${i}`,
      {
        rules: [
          { name: 'm', limit: i + 1, window: '1m' },
          { name: 'h', limit: 1_000 + i, window: '1h' },
        ],
      },
    ]),
  )
}

/** Decides all keys of {@link policiesOf} at the same time, by a call each, and compares their limits. */
export async function assertOwnLimits(limiter: AsyncLimiter, count: number): Promise<void> {
  const decisions = await Promise.all(Array.from({ length: count }, (_, i) => limiter.check(`k${i}`)))
  assert.equal(
    decisions.map(({ rules }) => rules.map(({ limit }) => limit)),
    Array.from({ length: count }, (_, i) => [i + 1, 1_000 + i]),
  )
}
