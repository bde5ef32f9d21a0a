import { RemoteLimiter } from '../remote/remote-limiter.js'
import { CounterNames } from './counter-names.js'
import type { MemcachedPlan } from './memcached-options.js'
import { MemcachedStore } from './memcached-store.js'
import { Servers } from './servers.js'

/** A limiter whose counts are on Memcached. */
export class MemcachedLimiter extends RemoteLimiter {
  /** @internal */
  constructor(plan: MemcachedPlan) {
    const { client, prefix, rules, testTime = Date.now, deadlineMs } = plan
    const names = new CounterNames(
      prefix,
      rules.map(({ rule }) => rule.name),
    )
    super('MemcachedLimiter', plan, (owner) => {
      return new MemcachedStore(owner, new Servers(client, deadlineMs), rules, names, testTime)
    })
  }
}
