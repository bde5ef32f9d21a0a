// Exports for the packages millrace-cli and millrace-service, which depend on this exact version: any release may change them.

export { isSync } from './config/config-store.js'
export { checkPolicy, checkPolicyRule, parsePolicy } from './config/policy.js'
export { candidatesOf, checkPolicyKey } from './config/policy-keys.js'
export {
  readStoreAddress,
  STORE_FORMS,
  type StoreAddress,
  shownUrl,
  WrongAddress,
} from './config/store-address.js'
export { checkedPolicies } from './config/stores/file/policy-file.js'
export { ALGORITHM_OPTIONS } from './core/algorithms.js'
export { monotonicClock } from './core/clock.js'
export { isBlocked } from './core/decision-counts.js'
export { mayBeCharged } from './core/decision-source.js'
export { formatDuration, parseDuration } from './core/duration.js'
export type { InlineDecision } from './core/inline-decision.js'
export { meantBy } from './core/option-names.js'
export { providePackages } from './core/packages.js'
export { Rendezvous } from './core/rendezvous.js'
export { checkRule } from './core/rule.js'
export { RULE_OPTIONS } from './core/rule-options.js'
export { attachPool } from './create/attach-limiter.js'
export { createLimiterOn } from './create/create.js'
export { Together, type TogetherDecision, type TogetherRequest } from './groups/together.js'
export { RateLimitHeaders } from './http/headers/headers.js'
export { type Receipt, type Receipts, receiptsOf } from './limiters/receipts.js'
