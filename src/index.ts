export type { AsyncLimiter } from './api/async-limiter.js'
export type { AsyncLimiterGroup } from './api/async-limiter-group.js'
export type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  LimiterRule,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from './api/call-options.js'
export type { Limiter, LimiterStats } from './api/limiter.js'
export type {
  GroupKeys,
  GroupOptions,
  GroupStats,
  GroupWaitOptions,
  LimiterGroup,
} from './api/limiter-group.js'
export type {
  EngineChoice,
  EngineOptions,
  LimiterOf,
  LimiterOptions,
  OpeningOptions,
  PoolLimiterOptions,
  RulesEngineOptions,
  RulesLimiterOptions,
  TableOptions,
} from './api/options.js'
export type { PoolOptions } from './api/pool-options.js'
export type { AsyncReservation, Reservation } from './api/reservation.js'
export type { ConfigStore } from './config/config-store.js'
export type { Policy } from './config/policy.js'
export type { AlgorithmChoice, AlgorithmName } from './core/algorithms.js'
export type { BatchDecision, Costs } from './core/batch-decision.js'
export { setEventOptions } from './core/channels.js'
export { type Clock, type ManualClock, manualClock } from './core/clock.js'
export type { ConfigStatistics } from './core/config-statistics.js'
export type { Decision, DecisionFields, RuleDecision, ShadowDecision } from './core/decision.js'
export type { Counts, FigureCounts, RuleCounts, WithoutStore } from './core/decision-counts.js'
export type { DecisionSource } from './core/decision-source.js'
export type { Duration } from './core/duration.js'
export { type ErrorCode, MillraceError } from './core/errors.js'
export type {
  EventOptions,
  EvictionEvent,
  OnOutage,
  OutageChange,
  PolicyEvent,
  RefusalEvent,
} from './core/events.js'
export type { GroupDecision, GroupDecisionFields } from './core/group-decision.js'
export { MillraceLimited } from './core/limited.js'
export type { Signal } from './core/on-abort.js'
export type { TopOptions } from './core/refusals.js'
export type { Alignment, Edge, Period } from './core/rule-algorithms.js'
export type { RuleOptions } from './core/rule-options.js'
export type { Size } from './core/sizes.js'
export type { TopKey } from './core/top-keys.js'
export { type AttachOptions, attachLimiter } from './create/attach-limiter.js'
export { createLimiter, openLimiter } from './create/create.js'
export type { FilePlace, SharedLimiter, SharedPolicies } from './engines/share.js'
export { type GroupMembers, type GroupOf, group } from './groups/group.js'
export type { Key, KeyHandle, PackedKeys } from './memory/keys.js'
export type { OnFull } from './memory/layout.js'
export type { ConfigCacheOptions, ConfigLimiterOptions, ConfigOptions } from './policies/options.js'
export type { ClockSample } from './shared-file/agreement.js'
