import { RemoteLimiter } from '../remote/remote-limiter.js'
import type { RemoteStore } from '../remote/remote-store.js'
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
    super(
      'MemcachedLimiter',
      plan,
      (owner) => ({ store: openMemcached(owner, plan) }),
      (own) => new MemcachedLimiter({ ...plan, ...own }),
    )
  }
}

function openMemcached(owner: object, plan: MemcachedPlan): RemoteStore {
  const { client, prefix, rules, skewMs, deadlineMs, testTime, outages } = plan
  const servers = new Servers(client, deadlineMs, outages)
  if (skewMs === undefined) {
    const ruleNames = rules.map(({ rule }) => rule.name)
    const names = new CounterNames(prefix, ruleNames)
    return new MemcachedStore({ ...plan, owner }, servers, names, testTime ?? Date.now)
  }
  return valuesStore({
    ...plan,
    owner,
    place: new StrictPlace(servers),
    names: new CounterNames(prefix, ['']),
    source: 'memcached',
    valueError: 'ERR_MILLRACE_MEMCACHED_VALUE',
    skewMs,
  })
}
