/**
 * Who made a decision of a limiter on a server: Redis (`'redis'`), this process by units that Redis has granted it (`'lease'`), counters on Memcached (`'memcached'`), or, while the
 * server did not answer, this process by its share of the limit (`'local'`), or nobody (`'outage'`): the option
 * `onOutage` says then whether requests are allowed. A refusal by `'outage'` says nothing about the client. Nor does one by `'config'`: the policy of the key could not be read yet, and
 * the option `onMiss` is `'refuse'`. A backend of your own adds a name of its own, an engine of a decision service that counts in its memory `'service'`.
 */
export type DecisionSource = 'redis' | 'lease' | 'memcached' | 'local' | 'outage' | 'config' | (string & {})

/** Whether nobody has decided: a refusal says nothing about the client. */
export const isUndecided = (source: DecisionSource | undefined): boolean =>
  source === 'outage' || source === 'config'

/** Whether the store may have charged a decision that it has not answered. What nobody knows is true. */
export const mayBeCharged = (decision: object): boolean =>
  (decision as { readonly mayBeCharged?: boolean }).mayBeCharged ?? true
