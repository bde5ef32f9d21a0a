// The types that every framework's module exports.

export type { GroupStats } from '../api/limiter-group.js'
export type { Decision } from '../core/decision.js'
export type { FigureCounts, RuleCounts, WithoutStore } from '../core/decision-counts.js'
export type { GroupDecision } from '../core/group-decision.js'
export type { IpRequest } from './addresses/clients.js'
export type { ForwardedHeader } from './addresses/forwarded.js'
export type { IpKey, IpKeyOptions } from './addresses/ip-key.js'
export type { TrustProxy } from './addresses/trust-proxy.js'
export type { HttpHeaders, HttpRequest, HttpSocket } from './framework.js'
export type { GroupLimitOptions, GroupMemberRules, MemberKeys } from './groups/options.js'
export type { Standard } from './headers/headers.js'
export type {
  Awaitable,
  CallLimits,
  DelayOptions,
  RateLimitOptions,
  RequestOptions,
  RouteRules,
} from './options.js'
export type { RateLimitHandles, RateLimitStats, RequestCounts, RouteStats } from './stats.js'
