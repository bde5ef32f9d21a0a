import { RemoteLimiter } from '../remote/remote-limiter.js'
import { valuesStore } from '../values/values-store.js'
import { CounterNames } from './counter-names.js'
import type { MemcachedPlan } from './memcached-options.js'
import { MemcachedStore } from './memcached-store.js'
import { Servers } from './servers.js'
import { StrictPlace } from './strict-place.js'

/** A limiter whose counts are on Memcached. */
export class MemcachedLimiter extends RemoteLimiter {
  /** @internal */
  constructor(plan: MemcachedPlan) {
    const { client, prefix, rules, skewMs, deadlineMs, testTime } = plan
    super('MemcachedLimiter', plan, (owner) => {
      const servers = new Servers(client, deadlineMs)
      const ruleNames = rules.map(({ rule }) => rule.name)
      if (skewMs === undefined)
        return new MemcachedStore(
          owner,
          servers,
          rules,
          new CounterNames(prefix, ruleNames),
          testTime ?? Date.now,
        )
      return valuesStore({
        ...plan,
        owner,
        place: new StrictPlace(servers),
        names: new CounterNames(prefix, ['']),
        source: 'memcached',
        valueError: 'ERR_MILLRACE_MEMCACHED_VALUE',
        skewMs,
      })
    })
  }
}
