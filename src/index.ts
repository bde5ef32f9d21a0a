export type { AsyncLimiter } from './async-limiter.js'
export type { AsyncLimiterGroup } from './async-limiter-group.js'
export { type AttachOptions, attachLimiter } from './attach-limiter.js'
export type { ConfigStore } from './config/config-store.js'
export type { Policy } from './config/policy.js'
export type { ConfigCacheOptions, ConfigLimiterOptions, ConfigOptions } from './config-options.js'
export { type Clock, type ManualClock, manualClock } from './core/clock.js'
export type { ConfigStatistics } from './core/config-statistics.js'
export type { Decision, DecisionFields, RuleDecision, ShadowDecision } from './core/decision.js'
export type { DecisionSource } from './core/decision-source.js'
export type { Duration } from './core/duration.js'
export { type ErrorCode, MillraceError } from './core/errors.js'
export type { GroupDecision, GroupDecisionFields } from './core/group-decision.js'
export { MillraceLimited } from './core/limited.js'
export type { Signal } from './core/on-abort.js'
export type { AlgorithmChoice, AlgorithmName, Alignment, Edge } from './core/rule-algorithms.js'
export type { RuleOptions } from './core/rule-options.js'
export type { Size } from './core/sizes.js'
export {
  createLimiter,
  type EngineChoice,
  type EngineOptions,
  type LimiterOf,
  type LimiterOptions,
  type OpeningOptions,
  openLimiter,
  type PoolLimiterOptions,
  type RulesEngineOptions,
  type RulesLimiterOptions,
  type TableOptions,
} from './create.js'
export type { BatchDecision, Costs } from './engines/batch.js'
export type { FilePlace, SharedLimiter, SharedPolicies } from './engines/share.js'
export { type GroupMembers, type GroupOf, group } from './group.js'
export type { Limiter, LimiterStats } from './limiter.js'
export type {
  GroupKeys,
  GroupOptions,
  GroupWaitOptions,
  LimiterGroup,
} from './limiter-group.js'
export type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  LimiterRule,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from './limiter-options.js'
export type { Key, KeyHandle, PackedKeys } from './memory/keys.js'
export type { OnFull } from './memory/layout.js'
export type { PoolOptions } from './pool-options.js'
export type { AsyncReservation, Reservation } from './reservation.js'
export type { ClockSample } from './shared-file/agreement.js'
