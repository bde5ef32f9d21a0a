import { KeyNames } from '../remote/key-names.js'
import { RemoteLimiter } from '../remote/remote-limiter.js'
import { valuesStore } from '../values/values-store.js'
import type { BackendPlan } from './backend-options.js'
import { OwnPlace } from './own-place.js'

/** A limiter whose counts are in a store of your own. */
export class BackendLimiter extends RemoteLimiter {
  /** @internal */
  constructor(plan: BackendPlan) {
    const { values, source, prefix, deadlineMs, outages } = plan
    const names = new KeyNames(prefix, [''])
    const place = new OwnPlace(values, source, deadlineMs, names.unused, outages)
    super(
      'BackendLimiter',
      plan,
      (owner) => ({
        store: valuesStore({ ...plan, owner, place, names, valueError: 'ERR_MILLRACE_STORED_VALUE' }),
      }),
      (own) => new BackendLimiter({ ...plan, ...own }),
    )
  }
}
