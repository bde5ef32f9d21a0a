import type { Charges } from './charges.js'
import type { Envoy } from './envoy/envoy.js'
import type { Records } from './idempotency/records.js'
import type { AnyLimiter, Limiters } from './limiters.js'
import type { Settings } from './options/table.js'
import type { Callers } from './security/callers.js'
import type { Policies } from './stores/policies.js'

/** What the routes of an engine act on. */
export interface Engine {
  readonly settings: Settings
  readonly limiters: Limiters
  readonly once: AnyLimiter
  readonly probes: readonly string[]
  readonly charges: Charges
  readonly callers: Callers
  readonly policies: Policies | undefined
  readonly records: Records | undefined
  /** Undefined without `envoyConfig`. */
  readonly envoy: Envoy | undefined
  /** Whether it ends, and takes no more requests of a balancer. */
  isDraining: boolean
}
