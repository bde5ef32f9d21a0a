// The types that every framework's module exports.
export type { Decision } from '../core/decision.js'
export type { FigureCounts, RuleCounts, WithoutStore } from '../core/decision-counts.js'
export type { IpKey, IpKeyOptions } from './addresses/ip-key.js'
export type { TrustProxy } from './addresses/trust-proxy.js'
export type { Standard } from './headers/headers.js'
export type { RateLimitOptions, RouteRules } from './options.js'
export type { RateLimitHandles, RateLimitStats, RequestCounts, RouteStats } from './stats.js'
