// Groups of two limiters, and where the claims about them are tested.
import type { AsyncLimiterGroup, LimiterGroup, LimiterOptions } from 'millrace'
import { type Claims, conform, FIVE, type Subject } from './suite.js'

export const KEYS = { account: 'alice', address: 'home' }

/** After this many milliseconds, no charge by account counts. */
export const FREE_MS = 120_000

type Logins = LimiterGroup<'account' | 'address'> | AsyncLimiterGroup<'account' | 'address'>
type Own = Partial<LimiterOptions>

/** A group of 5 in a minute by account, and of 8 in an hour by address. */
export function logins({ make, group, clock, times }: Subject, account: Own = {}, address: Own = {}) {
  const byAccount = make({ ...FIVE, ...account })
  const byAddress = make({ ...FIVE, limit: 8, window: '1h', granularity: '1m', ...address })
  const both = group({ account: byAccount, address: byAddress }) as Logins
  const used = ({ account, address } = KEYS) =>
    Promise.all([byAccount.usage(account), byAddress.usage(address)])
  const [minute, hour] = [times(byAccount.rule), times(byAddress.rule)]
  return { clock, byAccount, byAddress, both, used, minute, hour }
}

/** Tests the claims in every place that can have a group. */
export function conformGroups(claims: Claims): void {
  // Of a Cluster, the keys of a request must be in one slot: see test/redis/group.test.ts. Limiters with shards join
  // none.
  conform([[claims, FIVE]], /^sliding (log|counter)/, /./, /./, ['iovalkey'])
}
